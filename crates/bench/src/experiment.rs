//! The experiments as data: what the gateway must do, what is asked of it, and how. The answers that prove that it does
//! it are in `probe.rs`.
//!
//! Names and shapes are those of the published comparisons: N1 to N4 of the NGINX comparison of 2019, A1 to A4 of the
//! Apache APISIX comparison of 2022, G0 to G4 of the GigaOm comparison of 2021; with three sizes of body and 100,000
//! routes added.

use std::fmt;

use anyhow::{Result, bail};

use crate::client::Header;
use crate::token;

/// The consumer's key in every gateway's configuration, so that each gets the same bytes.
pub const KEY: &str = "bench-user-key";
/// The consumer's secret for JSON Web Tokens (APISIX wants 32 bytes for HS256).
pub const SECRET: &str = "a-secret-of-the-bench-with-more-than-32-bytes";

/// A rate limit by the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Calls in a window.
    pub count: u32,
    /// The window in seconds: 1 or 60, which every gateway can spell.
    pub seconds: u32,
}

/// What the gateway's configuration must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// A rate limit by address, high enough never to refuse.
    pub limit: Option<Limit>,
    /// Key authentication.
    pub key: bool,
    /// A JSON Web Token (HS256) verified on each call, its expiry included.
    pub jwt: bool,
    /// Routes with paths of their own.
    pub routes: u32,
    /// Routes more that nobody asks for, for changes of the configuration.
    pub changes: u32,
}

/// How the calls come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// As many as the gateway takes: each connection sends its next call when it has its answer.
    Closed,
    /// At constant rates (calls per second), one after the other.
    Rates(&'static [u32]),
    /// One call at a time, each over a new connection.
    Single,
}

/// Whether the API itself is measured too, without a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// It is not.
    No,
    /// It is, beside the gateways.
    Also,
    /// It alone.
    Only,
}

/// One experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// As written on the command line and in the report.
    pub id: &'static str,
    /// What it is, for the report.
    pub title: &'static str,
    /// The configuration that it needs.
    pub setup: Setup,
    /// How it is called.
    pub load: Load,
    /// Connections of the load.
    pub connections: u32,
    /// Size of the upstream's answer in bytes.
    pub body_bytes: usize,
    /// Whether the API itself is measured too.
    pub direct: Direct,
    /// It belongs to the set that runs when none is named.
    pub default: bool,
    /// What was published, on other machines.
    pub published: &'static str,
}

const PLAIN: Setup = Setup {
    limit: None,
    key: false,
    jwt: false,
    routes: 1,
    changes: 0,
};
const LIMITED: Setup = Setup {
    limit: Some(Limit {
        count: 999_999_999,
        seconds: 60,
    }),
    ..PLAIN
};
const LIMITED_PER_SECOND: Setup = Setup {
    limit: Some(Limit {
        count: 2_999_999,
        seconds: 1,
    }),
    ..PLAIN
};

const fn closed(id: &'static str, title: &'static str, setup: Setup) -> Experiment {
    Experiment {
        id,
        title,
        setup,
        load: Load::Closed,
        connections: 50,
        body_bytes: 1024,
        direct: Direct::No,
        default: false,
        published: "",
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
pub const EXPERIMENTS: [Experiment; 19] = [
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
        Setup { key: true, ..LIMITED },
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
    closed(
        "R100K",
        "100,000 unique routes, no plugin",
        Setup {
            routes: 100_000,
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
];

/// The experiments named, `all` of them, or the default set when none is named. A name's beginning up to a dash stands
/// for all that begin so.
///
/// # Errors
/// A name is unknown.
pub fn select(names: &[String]) -> Result<Vec<&'static Experiment>> {
    if names.is_empty() {
        return Ok(EXPERIMENTS
            .iter()
            .filter(|experiment| experiment.default)
            .collect());
    }
    let is_named = |experiment: &Experiment, name: &str| {
        let family = experiment.id.split('-').next().unwrap_or_default();
        [experiment.id, family, "all"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    };
    let is_unknown = |name: &&String| !EXPERIMENTS.iter().any(|experiment| is_named(experiment, name));
    if let Some(unknown) = names.iter().find(is_unknown) {
        let ids: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
        bail!(
            "unknown experiment {unknown:?}: there are {} and all",
            ids.join(", ")
        );
    }
    let wanted = |experiment: &&Experiment| names.iter().any(|name| is_named(experiment, name));
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

impl Experiment {
    /// The paths that the load asks for, in turn or at random.
    pub fn paths(&self) -> Vec<String> {
        match self.setup.routes {
            1 => vec!["/hello".to_owned()],
            routes => (1..=routes).map(|route| format!("/hello{route}")).collect(),
        }
    }

    /// The headers that each call of the load carries.
    pub fn headers(&self) -> Vec<Header> {
        let mut headers = Vec::new();
        if self.setup.key {
            headers.push(("apikey", KEY.to_owned()));
        }
        if self.setup.jwt {
            headers.push(("Authorization", format!("Bearer {}", token::hs256(KEY, SECRET))));
        }
        headers
    }

    /// The rates at which it is run; one `None` where it sets none.
    pub fn rates(&self) -> Vec<Option<u32>> {
        match self.load {
            Load::Rates(rates) => rates.iter().copied().map(Some).collect(),
            Load::Closed | Load::Single => vec![None],
        }
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection() {
        let all: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
        let cases = [
            (vec![], Some(vec!["N4", "A1", "A2", "A3", "A4"])),
            (vec!["n4", "A1"], Some(vec!["N4", "A1"])),
            (vec!["n1"], Some(vec!["N1-0K", "N1-1K"])),
            (vec!["n2-1k"], Some(vec!["N2-1K"])),
            (vec!["b100k"], Some(vec!["B100K"])),
            (vec!["all"], Some(all)),
            (vec!["A9"], None),
            (vec!["A1", ""], None),
        ];
        for (names, expected) in cases {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            let selected = select(&names).ok();
            let ids = selected.map(|all| all.iter().map(|experiment| experiment.id).collect::<Vec<_>>());
            assert_eq!(ids, expected, "{names:?}");
        }
    }
}
