//! The experiments as data: what the gateway must do, what is asked of it, and the answers that prove it does it.
//!
//! Names and shapes are those of the published comparisons (A1 to A4 of the Apache APISIX 3.0 comparison, N4 of the
//! NGINX API management comparison), with three sizes of body and 100,000 routes added.

use anyhow::{Result, bail};

use crate::client::Header;
use crate::token;

/// The consumer's key in every gateway's configuration, so that each gets the same bytes.
pub const KEY: &str = "bench-user-key";
/// The consumer's secret for JSON Web Tokens (APISIX wants 32 bytes for HS256).
pub const SECRET: &str = "a-secret-of-the-bench-with-more-than-32-bytes";

/// Which configuration of a gateway an experiment uses; each gateway has one template for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// One route, no plugin.
    A1,
    /// A1 and a rate limit by address.
    A2,
    /// A2 and key authentication.
    A3,
    /// Many unique routes, no plugin.
    A4,
    /// A1 and a JSON Web Token verified on each call.
    N4,
    /// A1 and any number of routes that nobody asks for, for changes of the configuration.
    Reload,
}

/// One experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// As written on the command line and in the report.
    pub id: &'static str,
    /// What it is, for the report.
    pub title: &'static str,
    /// The configuration that it needs.
    pub setup: Setup,
    /// Number of routes in the configuration.
    pub routes: u32,
    /// Size of the upstream's answer in bytes.
    pub body_bytes: usize,
    /// It belongs to the set that runs when none is named.
    pub default: bool,
}

const fn experiment(id: &'static str, title: &'static str, setup: Setup) -> Experiment {
    Experiment {
        id,
        title,
        setup,
        routes: 1,
        body_bytes: 1024,
        default: true,
    }
}

/// Every experiment, in the order in which they run.
pub const EXPERIMENTS: [Experiment; 9] = [
    experiment("A1", "one route, no plugin", Setup::A1),
    experiment("A2", "one route, rate limit by address", Setup::A2),
    experiment(
        "A3",
        "one route, rate limit by address, key authentication",
        Setup::A3,
    ),
    Experiment {
        routes: 5_000,
        ..experiment("A4", "5,000 unique routes, no plugin", Setup::A4)
    },
    experiment(
        "N4",
        "one route, JSON Web Token (HS256) verified on each call",
        Setup::N4,
    ),
    Experiment {
        routes: 100_000,
        default: false,
        ..experiment("R100K", "100,000 unique routes, no plugin", Setup::A4)
    },
    Experiment {
        body_bytes: 0,
        default: false,
        ..experiment("B0", "A1 with an empty body", Setup::A1)
    },
    Experiment {
        default: false,
        ..experiment("B1K", "A1 with a body of 1 KB", Setup::A1)
    },
    Experiment {
        body_bytes: 102_400,
        default: false,
        ..experiment("B100K", "A1 with a body of 100 KB", Setup::A1)
    },
];

/// The experiments named, `all` of them, or the default set when none is named.
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
    let known = |name: &String| {
        EXPERIMENTS
            .iter()
            .any(|experiment| experiment.id.eq_ignore_ascii_case(name))
    };
    if let Some(unknown) = names
        .iter()
        .find(|name| !name.eq_ignore_ascii_case("all") && !known(name))
    {
        let ids: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
        bail!(
            "unknown experiment {unknown:?}: there are {} and all",
            ids.join(", ")
        );
    }
    let wanted = |experiment: &&Experiment| {
        names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(experiment.id) || name.eq_ignore_ascii_case("all"))
    };
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

/// A call that shows whether a gateway does what the experiment needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What it shows, for an error message.
    pub what: &'static str,
    /// Path asked for.
    pub path: String,
    /// Headers beside `Host`.
    pub headers: Vec<Header>,
    /// The status that it must have.
    pub status: u16,
}

impl Experiment {
    /// The one path of the load, or `None` when it asks for routes at random.
    pub fn path(&self) -> Option<&'static str> {
        (self.setup != Setup::A4).then_some("/hello")
    }

    /// Part of the name of a header that the answers of a gateway carry when it enforces the rules.
    pub fn mark(&self) -> Option<&'static str> {
        matches!(self.setup, Setup::A2 | Setup::A3).then_some("ratelimit-remaining")
    }

    /// The headers that each call of the load carries.
    pub fn headers(&self) -> Vec<Header> {
        match self.setup {
            Setup::A1 | Setup::A2 | Setup::A4 | Setup::Reload => Vec::new(),
            Setup::A3 => vec![("apikey", KEY.to_owned())],
            Setup::N4 => vec![("Authorization", format!("Bearer {}", token::hs256(KEY, SECRET)))],
        }
    }

    /// Calls that must succeed with the upstream's whole body, through every gateway.
    pub fn accepted(&self) -> Vec<Probe> {
        let probe = |path: String| Probe {
            what: "a good call",
            path,
            headers: self.headers(),
            status: 200,
        };
        match self.path() {
            Some(path) => vec![probe(path.to_owned())],
            None => [1, self.routes / 2, self.routes]
                .map(|route| probe(format!("/hello{route}")))
                .into(),
        }
    }

    /// Calls that a gateway which enforces the experiment's rules must refuse.
    pub fn refused(&self) -> Vec<Probe> {
        let probe = |what, path: &str, headers, status| Probe {
            what,
            path: path.to_owned(),
            headers,
            status,
        };
        let bearer = |token: String| vec![("Authorization", format!("Bearer {token}"))];
        let mut probes = vec![probe("an unknown path", "/unknown", self.headers(), 404)];
        match self.setup {
            Setup::A1 | Setup::A2 | Setup::A4 | Setup::Reload => {}
            Setup::A3 => {
                let wrong = vec![("apikey", "wrong".to_owned())];
                probes.push(probe("a wrong key", "/hello", wrong, 401));
                probes.push(probe("no key", "/hello", Vec::new(), 401));
            }
            Setup::N4 => {
                let forged = token::hs256(KEY, "another secret of more than 32 bytes");
                probes.push(probe(
                    "a token with a wrong signature",
                    "/hello",
                    bearer(forged),
                    401,
                ));
                probes.push(probe("no token", "/hello", Vec::new(), 401));
            }
        }
        probes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection() {
        let cases = [
            (vec![], Some(vec!["A1", "A2", "A3", "A4", "N4"])),
            (vec!["n4", "A1"], Some(vec!["A1", "N4"])),
            (vec!["b100k"], Some(vec!["B100K"])),
            (
                vec!["all"],
                Some(EXPERIMENTS.iter().map(|experiment| experiment.id).collect()),
            ),
            (vec!["A9"], None),
        ];
        for (names, expected) in cases {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            let selected = select(&names).ok();
            let ids = selected.map(|all| all.iter().map(|experiment| experiment.id).collect::<Vec<_>>());
            assert_eq!(ids, expected, "{names:?}");
        }
    }

    #[test]
    fn rules_are_probed() {
        let cases = [
            ("A1", 1, vec![404]),
            ("A3", 1, vec![404, 401, 401]),
            ("A4", 3, vec![404]),
            ("N4", 1, vec![404, 401, 401]),
        ];
        for (id, accepted, refused) in cases {
            let experiment = select(&[id.to_owned()]).unwrap()[0];
            assert_eq!(experiment.accepted().len(), accepted, "{id}");
            let statuses: Vec<u16> = experiment.refused().iter().map(|probe| probe.status).collect();
            assert_eq!(statuses, refused, "{id}");
        }
    }
}
