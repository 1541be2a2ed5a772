//! The calls that prove, before anything is measured, that a gateway does what the experiment asks for: good calls get
//! the upstream's whole body, bad ones are refused, and the rate limit really counts.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::Header;
use crate::curl;
use crate::experiment::{Experiment, KEY, Limit, Setup, WireProtocol};
use crate::token;

/// The limit of the proof that limits count: so many calls, then refusals.
pub const LOW_LIMIT: u32 = 5;
/// A gateway that has let so many calls more pass does not count them yet, or at all.
const TOLERATED: u32 = 15;
/// For how long a gateway may not count after its start: Kong's workers begin to when they have read their configuration.
const NOT_YET: Duration = Duration::from_secs(1);
/// How long until it is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// A call and the answer that it must get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What it shows, for an error message.
    pub what: &'static str,
    /// Path asked for.
    pub path: String,
    /// Headers in addition to `Host`.
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
    if experiment.setup.speaks == WireProtocol::Tcp {
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
    if experiment.setup.speaks == WireProtocol::Grpc
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

/// Checks that a gateway configured by [`with_low_limit`] lets calls pass and then refuses them. It has a second until it
/// counts.
///
/// # Errors
/// It refuses the first call, or none.
pub fn check_low_limit(target: SocketAddr, experiment: &Experiment) -> Result<()> {
    let good = accepted(experiment).swap_remove(0);
    let begun = Instant::now();
    let mut calls = 0;
    loop {
        for _ in 0..LOW_LIMIT + TOLERATED {
            calls += 1;
            let response = curl::ask(target, experiment, &good.path, &good.headers)?;
            match response.status {
                200 => {}
                429 | 503 if calls > 1 => return Ok(()),
                _ => bail!(
                    "call {calls} of a limit of {LOW_LIMIT} a minute: {}",
                    response.summary()
                ),
            }
        }
        if begun.elapsed() >= NOT_YET {
            bail!("a limit of {LOW_LIMIT} calls a minute let {calls} pass: it does not count");
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::select;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that answers its first calls, up to a number, with 200 and all others with 429.
    fn limited(uncounted: u32) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut calls = 0;
            for mut stream in listener.incoming().flatten() {
                calls += 1;
                let _head = stream.read(&mut [0; 4096]);
                let status = if calls <= uncounted {
                    "200 OK"
                } else {
                    "429 Too Many Requests"
                };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _gone = stream.write_all(answer.as_bytes());
            }
        });
        address
    }

    #[test]
    fn a_limit_may_begin_to_count_a_little_later() {
        let experiment = with_low_limit(select(&["A2".to_owned()]).unwrap()[0]).unwrap();
        for (uncounted, is_counting) in [(LOW_LIMIT, true), (30, true), (u32::MAX, false), (0, false)] {
            let checked = check_low_limit(limited(uncounted), &experiment);
            assert_eq!(checked.is_ok(), is_counting, "{uncounted}: {checked:?}");
        }
    }

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
