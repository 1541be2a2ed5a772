//! The calls that prove, before anything is measured, that a gateway does what the experiment asks for: good calls get
//! the upstream's whole body, bad ones are refused, and the rate limit really counts.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};

use crate::client::Header;
use crate::curl;
use crate::experiment::{Experiment, KEY, Limit, Setup, Speaks};
use crate::token;

/// The limit of the proof that limits count: so many calls, then refusals.
pub const LOW_LIMIT: u32 = 5;
/// A gateway that has let so many calls more pass does not count them.
const TOLERATED: u32 = 15;

/// A call and the answer that it must get.
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

/// Calls that must succeed with the upstream's whole body, through every gateway.
pub fn accepted(experiment: &Experiment) -> Vec<Probe> {
    let paths = experiment.paths();
    let chosen = match paths.len() {
        1 => vec![0],
        count => vec![0, count / 2, count - 1],
    };
    chosen
        .into_iter()
        .map(|at| Probe {
            what: "a good call",
            path: paths[at].clone(),
            headers: experiment.headers(),
            status: 200,
        })
        .collect()
}

/// Calls that a gateway which enforces the experiment's rules must refuse.
pub fn refused(experiment: &Experiment) -> Vec<Probe> {
    // A stream leads to the API, whatever is asked there.
    if experiment.setup.speaks == Speaks::Tcp {
        return Vec::new();
    }
    let path = experiment.paths().swap_remove(0);
    let probe = |what, path: &str, headers, status| Probe {
        what,
        path: path.to_owned(),
        headers,
        status,
    };
    let mut probes = vec![probe("an unknown path", "/unknown", experiment.headers(), 404)];
    if experiment.setup.key {
        let wrong = vec![("apikey", "wrong".to_owned())];
        probes.push(probe("a wrong key", &path, wrong, 401));
        probes.push(probe("no key", &path, Vec::new(), 401));
    }
    if experiment.setup.jwt {
        let forged = token::hs256(KEY, "another secret of more than 32 bytes");
        let forged = vec![("Authorization", format!("Bearer {forged}"))];
        probes.push(probe("a token with a wrong signature", &path, forged, 401));
        let late = token::expired(KEY, crate::experiment::SECRET);
        let late = vec![("Authorization", format!("Bearer {late}"))];
        probes.push(probe("an expired token", &path, late, 401));
        probes.push(probe("no token", &path, Vec::new(), 401));
    }
    probes
}

/// Asks the probe calls of `experiment` at `target` and checks every answer; a plain proxy refuses nothing.
///
/// # Errors
/// An answer is not what the experiment needs; it is shown.
pub fn check(target: SocketAddr, experiment: &Experiment, plain: bool) -> Result<()> {
    let mut probes = accepted(experiment);
    if !plain {
        probes.extend(refused(experiment));
    }
    for probe in probes {
        check_one(target, experiment, &probe)
            .with_context(|| format!("probe refused, {}: GET {}", probe.what, probe.path))?;
    }
    Ok(())
}

fn check_one(target: SocketAddr, experiment: &Experiment, probe: &Probe) -> Result<()> {
    let response = curl::ask(target, experiment, &probe.path, &probe.headers)?;
    // gRPC has a status of its own for what is not there, which callers get in its place.
    if experiment.setup.speaks == Speaks::Grpc
        && probe.status == 404
        && response.head.contains("grpc-status: 12")
    {
        return Ok(());
    }
    let whole = probe.status != 200 || response.body.len() == experiment.body_bytes;
    if response.status != probe.status || !whole {
        let expected = match probe.status {
            200 => format!("status 200 with a body of {} bytes", experiment.body_bytes),
            status => format!("status {status}"),
        };
        bail!("expected {expected}, got {}", response.summary());
    }
    Ok(())
}

/// The experiment with a limit so low that its counting can be seen; `None` when it has no limit.
pub fn with_low_limit(experiment: &Experiment) -> Option<Experiment> {
    experiment.setup.limit?;
    let limit = Some(Limit {
        count: LOW_LIMIT,
        seconds: 60,
    });
    let setup = Setup {
        limit,
        ..experiment.setup
    };
    Some(Experiment { setup, ..*experiment })
}

/// Checks that a gateway configured by [`with_low_limit`] lets calls pass and then refuses them.
///
/// # Errors
/// It refuses the first call, or none.
pub fn check_low_limit(target: SocketAddr, experiment: &Experiment) -> Result<()> {
    let good = accepted(experiment).swap_remove(0);
    for call in 1..=LOW_LIMIT + TOLERATED {
        let response = curl::ask(target, experiment, &good.path, &good.headers)?;
        match response.status {
            200 => {}
            429 | 503 if call > 1 => return Ok(()),
            _ => bail!(
                "call {call} of a limit of {LOW_LIMIT} a minute: {}",
                response.summary()
            ),
        }
    }
    bail!(
        "a limit of {LOW_LIMIT} calls a minute let {} pass: it does not count",
        LOW_LIMIT + TOLERATED
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::select;

    #[test]
    fn rules_are_probed() {
        let cases = [
            ("A1", 1, vec![404], false),
            ("A2", 1, vec![404], true),
            ("A3", 1, vec![404, 401, 401], true),
            ("A4", 3, vec![404], false),
            ("N4", 1, vec![404, 401, 401, 401], false),
            ("G3", 1, vec![404, 401, 401, 401], true),
            ("https", 1, vec![404], false),
            ("tcp", 1, vec![], false),
        ];
        for (id, good, statuses, limited) in cases {
            let experiment = select(&[id.to_owned()]).unwrap()[0];
            assert_eq!(accepted(experiment).len(), good, "{id}");
            let found: Vec<u16> = refused(experiment).iter().map(|probe| probe.status).collect();
            assert_eq!(found, statuses, "{id}");
            assert_eq!(with_low_limit(experiment).is_some(), limited, "{id}");
        }
    }
}
