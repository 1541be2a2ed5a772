//! The experiments as data: what the gateway must do, what is asked of it, and how. The answers that prove that it does
//! it are in `probe.rs`.
//!
//! Names and shapes are those of the published comparisons: N1 to N4 of the NGINX comparison of 2019, A1 to A4 of the
//! Apache APISIX comparison of 2022, G0 to G4 of the GigaOm comparison of 2021; with three sizes of body, 100,000 routes
//! and the other protocols added. The list itself is in `list.rs`.

mod list;

use std::fmt;

use anyhow::{Result, bail};

use crate::client::Header;
use crate::token;

pub use list::{EXPERIMENTS, PLAIN, closed};

/// The consumer's key in every gateway's configuration, so that each gets the same bytes.
pub const KEY: &str = "bench-user-key";
/// The consumer's secret for JSON Web Tokens (APISIX wants 32 bytes for HS256).
pub const SECRET: &str = "a-secret-of-the-bench-with-more-than-32-bytes";

/// The header that a flood is limited by.
pub const FLOOD_HEADER: &str = "X-Bench-Key";

/// The length of the message that a call of gRPC sends.
const REQUEST_MESSAGE_BYTES: usize = 32;

/// A message of this length as gRPC frames it. Its content does not matter.
pub fn grpc_message(length: usize) -> Vec<u8> {
    let mut message = vec![0];
    message.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    message.resize(message.len() + length, b'x');
    message
}

/// A rate limit by the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Calls in a window.
    pub count: u32,
    /// The window in seconds: 1 or 60, which every gateway can spell.
    pub seconds: u32,
}

/// What clients speak with the gateway, and the gateway with the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProtocol {
    /// HTTP/1.1 on both sides.
    Http,
    /// HTTP/1.1 over TLS 1.3 with clients, HTTP/1.1 with the API.
    Https,
    /// HTTP/1.1 with clients, HTTP/1.1 over TLS 1.3 with the API.
    HttpsUpstream,
    /// HTTP/2 in cleartext with clients, HTTP/1.1 with the API.
    Http2,
    /// HTTP/2 in cleartext on both sides.
    Http2Both,
    /// gRPC in cleartext on both sides.
    Grpc,
    /// Nothing that the gateway looks at: a TCP stream, which carries HTTP/1.1 here.
    Tcp,
}

impl WireProtocol {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Http,
        Self::Https,
        Self::HttpsUpstream,
        Self::Http2,
        Self::Http2Both,
        Self::Grpc,
        Self::Tcp,
    ];

    /// Its name in a gateway's description and templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::HttpsUpstream => "https-upstream",
            Self::Http2 => "h2",
            Self::Http2Both => "h2-h2",
            Self::Grpc => "grpc",
            Self::Tcp => "tcp",
        }
    }

    /// The scheme of the URLs that clients ask for.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            _ => "http",
        }
    }

    /// Clients speak HTTP/2.
    pub fn is_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Http2Both | Self::Grpc)
    }

    /// Clients speak HTTP/1.1 in cleartext.
    pub fn is_plain_http(self) -> bool {
        matches!(self, Self::Http | Self::HttpsUpstream)
    }

    /// The API is to be spoken to in HTTP/2.
    pub fn is_http2_upstream(self) -> bool {
        matches!(self, Self::Http2Both | Self::Grpc)
    }
}

/// A flood in addition to the load: 10,000 calls a second that are limited by a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// No flood.
    No,
    /// All its calls have one key.
    OneKey,
    /// Each of its calls has a key of its own, so that counters have to make room.
    ManyKeys,
}

impl Flood {
    /// Calls per second.
    pub const RATE: u32 = 10_000;
    /// Different keys: more than the gateways have room for, as each has several counters.
    const KEYS: u32 = 250_000;

    /// The keys of its calls, in turn.
    pub fn keys(self) -> impl Iterator<Item = String> {
        let count = match self {
            Self::No => 0,
            Self::OneKey => 1,
            Self::ManyKeys => Self::KEYS,
        };
        (0..count).map(|number| format!("flood-{number:08}"))
    }
}

/// What the gateway's configuration must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The protocols.
    pub speaks: WireProtocol,
    /// Its certificate, if it needs one, is of RSA with 2,048 bits; otherwise of ECDSA with P-256.
    pub rsa: bool,
    /// A rate limit by address, high enough never to refuse.
    pub limit: Option<Limit>,
    /// Key authentication.
    pub key: bool,
    /// A JSON Web Token (HS256) verified on each call, its expiry included.
    pub jwt: bool,
    /// Routes with paths of their own.
    pub routes: u32,
    /// Further routes without calls, for changes of the configuration.
    pub changes: u32,
    /// Calls come with `X-Forwarded-For` from a balancer that is trusted.
    pub forwarded: bool,
    /// The flood that comes with the load, whose calls are then limited by a header, too.
    pub flood: Flood,
    /// Threads or processes that take calls, each on a core of its own if there are enough.
    pub workers: u32,
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
    /// Full TLS 1.3 handshakes and nothing more, each over a new connection.
    Handshakes,
}

/// Whether the API itself is measured too, without a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// It is not.
    No,
    /// It is, together with the gateways.
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
    /// Calls that are under way on each connection at once, if the protocol knows such.
    pub streams: u32,
    /// Size of the upstream's answer in bytes.
    pub body_bytes: usize,
    /// Whether the API itself is measured too.
    pub direct: Direct,
    /// It belongs to the set that runs when none is named.
    pub default: bool,
    /// What was published, on other machines.
    pub published: &'static str,
    /// Gateways other than NGINX to which ratios are shown.
    pub bars: &'static [&'static str],
}

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
        if self.setup.flood != Flood::No {
            headers.push((FLOOD_HEADER, "steady".to_owned()));
        }
        if self.setup.forwarded {
            headers.push(("X-Forwarded-For", "203.0.113.7, 198.51.100.2".to_owned()));
            headers.push(("X-Forwarded-Proto", "https".to_owned()));
        }
        if self.setup.speaks == WireProtocol::Grpc {
            headers.push(("content-type", "application/grpc".to_owned()));
            headers.push(("te", "trailers".to_owned()));
        }
        headers
    }

    /// The rates at which it is run; one `None` if it sets none.
    pub fn rates(&self) -> Vec<Option<u32>> {
        match self.load {
            Load::Rates(rates) => rates.iter().copied().map(Some).collect(),
            Load::Closed | Load::Single | Load::Handshakes => vec![None],
        }
    }

    /// The body that each call of the load sends, if it sends one: a message of gRPC.
    pub fn request_body(&self) -> Option<Vec<u8>> {
        (self.setup.speaks == WireProtocol::Grpc).then(|| grpc_message(REQUEST_MESSAGE_BYTES))
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
            (vec!["https", "TCP"], Some(vec!["https", "tcp", "tcp-100K"])),
            (vec!["tls"], Some(vec!["tls-upstream", "tls-100K"])),
            (vec!["h2"], Some(vec!["h2", "h2-few", "h2-h2", "h2-h2-few"])),
            (vec!["flood"], Some(vec!["FLOOD-one", "FLOOD-many"])),
            (vec!["W2"], Some(vec!["W2-A1", "W2-A3"])),
            (vec!["tls-100k", "xff"], Some(vec!["XFF", "tls-100K"])),
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
