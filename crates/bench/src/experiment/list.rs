//! The list of the experiments: what each sets up and loads. How they are run stands elsewhere.

use super::{Direct, Experiment, Flood, Limit, Load, Setup, WireProtocol};

/// One route, and nothing to be done.
pub const PLAIN: Setup = Setup {
    speaks: WireProtocol::Http,
    rsa: false,
    limit: None,
    key: false,
    jwt: false,
    routes: 1,
    changes: 0,
    forwarded: false,
    flood: Flood::No,
    workers: 1,
};
const LIMITED: Setup = Setup {
    limit: Some(Limit {
        count: 999_999_999,
        seconds: 60,
    }),
    ..PLAIN
};
const LIMITED_WITH_KEY: Setup = Setup { key: true, ..LIMITED };
const LIMITED_PER_SECOND: Setup = Setup {
    limit: Some(Limit {
        count: 2_999_999,
        seconds: 1,
    }),
    ..PLAIN
};

/// As many calls of 1 KB as the gateway takes, over 50 connections.
pub const fn closed(id: &'static str, title: &'static str, setup: Setup) -> Experiment {
    Experiment {
        id,
        title,
        setup,
        load: Load::Closed,
        connections: 50,
        streams: 1,
        body_bytes: 1024,
        direct: Direct::No,
        default: false,
        published: "",
        bars: &[],
    }
}

/// One of the protocols other than HTTP/1.1 in cleartext.
const fn protocol(
    id: &'static str,
    title: &'static str,
    speaks: WireProtocol,
    (connections, streams): (u32, u32),
    bars: &'static [&'static str],
) -> Experiment {
    Experiment {
        connections,
        streams,
        bars,
        ..closed(id, title, Setup { speaks, ..PLAIN })
    }
}

/// With several workers. CPU per call says what they cost each other.
const fn workers(id: &'static str, title: &'static str, setup: Setup, workers: u32) -> Experiment {
    Experiment {
        connections: 50 * workers,
        ..closed(id, title, Setup { workers, ..setup })
    }
}

const fn handshakes(id: &'static str, title: &'static str, rsa: bool) -> Experiment {
    let setup = Setup {
        speaks: WireProtocol::Https,
        rsa,
        ..PLAIN
    };
    Experiment {
        load: Load::Handshakes,
        connections: 8,
        ..closed(id, title, setup)
    }
}

const fn apisix(id: &'static str, title: &'static str, setup: Setup, published: &'static str) -> Experiment {
    Experiment {
        default: true,
        published,
        ..closed(id, title, setup)
    }
}

const fn nginx(id: &'static str, title: &'static str, load: Load, body_bytes: usize) -> Experiment {
    Experiment {
        load,
        body_bytes,
        connections: 300,
        ..closed(id, title, PLAIN)
    }
}

const fn gigaom(
    id: &'static str,
    title: &'static str,
    setup: Setup,
    rates: &'static [u32],
    published: &'static str,
) -> Experiment {
    Experiment {
        load: Load::Rates(rates),
        published,
        ..closed(id, title, setup)
    }
}

/// Every experiment, in the order in which they run.
pub const EXPERIMENTS: [Experiment; 43] = [
    Experiment {
        direct: Direct::Also,
        published: "Kong 1.0 adds 44 % more than NGINX's module",
        ..nginx(
            "N1-0K",
            "latency added to single calls, empty body",
            Load::Single,
            0,
        )
    },
    Experiment {
        direct: Direct::Also,
        published: "Kong 1.0 adds 24 % more than NGINX's module",
        ..nginx(
            "N1-1K",
            "latency added to single calls, body of 1 KB",
            Load::Single,
            1024,
        )
    },
    nginx(
        "N2-0K",
        "one route, no plugin, 300 connections, empty body",
        Load::Closed,
        0,
    ),
    Experiment {
        published: "NGINX's module 2.6 times Kong 1.0",
        ..nginx(
            "N2-1K",
            "one route, no plugin, 300 connections, 1 KB",
            Load::Closed,
            1024,
        )
    },
    Experiment {
        connections: 50,
        published: "Kong 1.0 is full at 5,000 calls/s with 93 % of a core; NGINX's module uses 40 % less",
        ..nginx(
            "N3",
            "CPU use over rising rates",
            Load::Rates(&[1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 25_000, 30_000]),
            1024,
        )
    },
    Experiment {
        setup: Setup { jwt: true, ..PLAIN },
        connections: 50,
        default: true,
        published: "NGINX's module more than 2 times Kong 1.0",
        ..nginx(
            "N4",
            "one route, JSON Web Token (HS256) verified on each call",
            Load::Closed,
            1024,
        )
    },
    apisix(
        "A1",
        "one route, no plugin",
        PLAIN,
        "APISIX 3.0: 14,104; Kong 3.0: 9,857 calls/s",
    ),
    apisix(
        "A2",
        "one route, rate limit by address",
        LIMITED,
        "APISIX 3.0: 9,154; Kong 3.0: 4,810 calls/s",
    ),
    apisix(
        "A3",
        "one route, rate limit by address, key authentication",
        LIMITED_WITH_KEY,
        "APISIX 3.0: 8,933; Kong 3.0: 3,977 calls/s",
    ),
    apisix(
        "A4",
        "5,000 unique routes, no plugin",
        Setup {
            routes: 5_000,
            ..PLAIN
        },
        "APISIX 3.0: 13,787; Kong 3.0: 9,840 calls/s",
    ),
    Experiment {
        direct: Direct::Only,
        ..gigaom(
            "G0",
            "the API itself, without a gateway",
            PLAIN,
            &[10_000, 20_000],
            "below all others",
        )
    },
    gigaom(
        "G1",
        "10,000 calls/s, rate limit by address",
        LIMITED_PER_SECOND,
        &[10_000],
        "p99.99: API7 1.7 almost 14 times lower than Kong EE 2.2",
    ),
    gigaom(
        "G2",
        "20,000 calls/s, rate limit by address",
        LIMITED_PER_SECOND,
        &[20_000],
        "p90: API7 1.7 3 ms; Kong EE 2.2 5,681 ms with 9.4 % errors",
    ),
    gigaom(
        "G3",
        "10,000 calls/s, rate limit by address, JSON Web Token",
        Setup {
            jwt: true,
            ..LIMITED_PER_SECOND
        },
        &[10_000],
        "max: API7 1.7 14 ms; Kong EE 2.2 3,778 ms with 6 % errors",
    ),
    gigaom(
        "G4",
        "10,000 calls/s over 1,000 routes, rate limit by address",
        Setup {
            routes: 1_000,
            ..LIMITED_PER_SECOND
        },
        &[10_000],
        "API7 1.7: single-digit milliseconds",
    ),
    gigaom(
        "FLOOD-one",
        "2,000 calls/s beside 10,000 calls/s of one key, rate limits by a header",
        Setup {
            flood: Flood::OneKey,
            ..LIMITED
        },
        &[2_000],
        "",
    ),
    gigaom(
        "FLOOD-many",
        "2,000 calls/s beside 10,000 calls/s of as many keys, rate limits by a header",
        Setup {
            flood: Flood::ManyKeys,
            ..LIMITED
        },
        &[2_000],
        "",
    ),
    closed(
        "R100K",
        "100,000 unique routes, no plugin",
        Setup {
            routes: 100_000,
            ..PLAIN
        },
    ),
    workers("W2-A1", "A1 with 2 workers", PLAIN, 2),
    workers("W2-A3", "A3 with 2 workers", LIMITED_WITH_KEY, 2),
    workers("W4-A1", "A1 with 4 workers", PLAIN, 4),
    workers("W4-A3", "A3 with 4 workers", LIMITED_WITH_KEY, 4),
    workers("W8-A1", "A1 with 8 workers", PLAIN, 8),
    workers("W8-A3", "A3 with 8 workers", LIMITED_WITH_KEY, 8),
    workers("W16-A1", "A1 with 16 workers", PLAIN, 16),
    workers("W16-A3", "A3 with 16 workers", LIMITED_WITH_KEY, 16),
    closed(
        "XFF",
        "A1 with X-Forwarded-For from a trusted peer",
        Setup {
            forwarded: true,
            ..PLAIN
        },
    ),
    Experiment {
        body_bytes: 0,
        ..closed("B0", "A1 with an empty body", PLAIN)
    },
    closed("B1K", "A1 with a body of 1 KB", PLAIN),
    Experiment {
        body_bytes: 102_400,
        ..closed("B100K", "A1 with a body of 100 KB", PLAIN)
    },
    protocol(
        "https",
        "HTTP/1.1 over TLS 1.3, connections kept",
        WireProtocol::Https,
        (50, 1),
        &[],
    ),
    protocol(
        "tls-upstream",
        "HTTP/1.1, over TLS 1.3 to the API, connections kept",
        WireProtocol::HttpsUpstream,
        (50, 1),
        &[],
    ),
    Experiment {
        body_bytes: 102_400,
        ..protocol(
            "tls-100K",
            "HTTP/1.1 over TLS 1.3, connections kept, a body of 100 KB",
            WireProtocol::Https,
            (50, 1),
            &[],
        )
    },
    protocol(
        "h2",
        "HTTP/2 in cleartext, HTTP/1.1 to the API, 100 streams on each of 10 connections",
        WireProtocol::Http2,
        (10, 100),
        &["envoy"],
    ),
    protocol(
        "h2-few",
        "HTTP/2 in cleartext, HTTP/1.1 to the API, 10 streams on each of 10 connections",
        WireProtocol::Http2,
        (10, 10),
        &["envoy"],
    ),
    protocol(
        "h2-h2",
        "HTTP/2 in cleartext in and out (NGINX: HTTP/1.1 to the API), 100 streams on each of 10 connections",
        WireProtocol::Http2Both,
        (10, 100),
        &["envoy"],
    ),
    protocol(
        "h2-h2-few",
        "HTTP/2 in cleartext in and out (NGINX: HTTP/1.1 to the API), 10 streams on each of 10 connections",
        WireProtocol::Http2Both,
        (10, 10),
        &["envoy"],
    ),
    protocol(
        "grpc",
        "gRPC, single messages, 100 streams on each of 10 connections",
        WireProtocol::Grpc,
        (10, 100),
        &["envoy"],
    ),
    protocol(
        "grpc-few",
        "gRPC, single messages, 10 streams on each of 10 connections",
        WireProtocol::Grpc,
        (10, 10),
        &["envoy"],
    ),
    handshakes(
        "handshakes",
        "full TLS 1.3 handshakes (X25519, ECDSA P-256)",
        false,
    ),
    handshakes(
        "handshakes-rsa",
        "full TLS 1.3 handshakes (X25519, RSA 2048)",
        true,
    ),
    protocol(
        "tcp",
        "a TCP stream that carries calls of 1 KB",
        WireProtocol::Tcp,
        (50, 1),
        &["haproxy"],
    ),
    Experiment {
        body_bytes: 102_400,
        ..protocol(
            "tcp-100K",
            "a TCP stream that carries calls of 100 KB",
            WireProtocol::Tcp,
            (50, 1),
            &["haproxy"],
        )
    },
];
