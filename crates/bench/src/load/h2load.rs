//! `h2load`, the load of HTTP/2 and gRPC: its arguments, and its output. HTTP/1.1 has a load of its own.

use std::ffi::OsString;
use std::path::Path;

use super::{LoadResult, Work};

/// The body that each call sends, if it sends one.
pub const BODY: &str = "message";

/// The arguments of `h2load`; the body is in `directory`.
pub fn arguments(work: &Work<'_>, directory: &Path) -> Vec<OsString> {
    let (target, experiment) = (work.target, work.experiment);
    let mut arguments: Vec<OsString> = ["-t", "1", "-c"].map(OsString::from).into();
    arguments.push(work.connections.to_string().into());
    arguments.push("-m".into());
    arguments.push(experiment.streams.to_string().into());
    arguments.push("-D".into());
    arguments.push(work.duration.as_secs().to_string().into());
    if experiment.request_body().is_some() {
        arguments.push("-d".into());
        arguments.push(directory.join(BODY).into());
    }
    for (name, value) in experiment.headers() {
        arguments.push("-H".into());
        arguments.push(format!("{name}: {value}").into());
    }
    arguments.extend(
        experiment
            .paths()
            .iter()
            .map(|path| format!("http://{target}{path}").into()),
    );
    arguments
}

/// Reads the text that `h2load` prints. It has no percentiles.
pub fn parse(output: &str) -> Option<LoadResult> {
    let mut counted = LoadResult::default();
    let (mut calls, mut rate) = (None, None);
    let number_before = |line: &str, word: &str| -> Option<u64> {
        let mut parts = line.split([',', ':']).map(str::trim);
        parts
            .find_map(|part| part.strip_suffix(word))
            .and_then(|number| number.trim().parse().ok())
    };
    for line in output.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("finished in ") {
            let word = rest.split(',').nth(1)?.trim();
            rate = Some(word.strip_suffix("req/s")?.trim().parse().ok()?);
        } else if line.starts_with("requests:") {
            calls = Some(number_before(line, "done")?);
            // What was under way at the end is no failure; it is not "done" either.
            counted.socket_errors = number_before(line, "errored")? + number_before(line, "timeout")?;
        } else if line.starts_with("status codes:") {
            counted.refused = number_before(line, "4xx")? + number_before(line, "5xx")?;
        }
    }
    Some(LoadResult {
        calls: calls?,
        calls_per_second: rate?,
        ..counted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "starting benchmark...
spawning thread #0: 10 total client(s). Timing-based test with 0s of warm-up time and 2s of main duration.
Warm-up started for thread #0.
progress: 10% of clients started
Application protocol: h2c

finished in 2.00s, 41873.50 req/s, 42.31MB/s
requests: 83747 total, 83847 started, 83747 done, 83747 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 83747 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 84.63MB (88735232) total, 576.68KB (590516) headers (space savings 95.96%), 81.79MB (85756928) data
                     min         max         mean         sd        +/- sd
time for request:      390us     10.11ms      2.38ms       614us    75.26%
";

    #[test]
    fn outputs_of_h2load() {
        let good = LoadResult {
            calls: 83_747,
            calls_per_second: 41_873.5,
            ..LoadResult::default()
        };
        let cases = [
            (PRINTED.to_owned(), Some(good.clone())),
            (
                PRINTED.replace("0 5xx", "7 5xx"),
                Some(LoadResult {
                    refused: 7,
                    ..good.clone()
                }),
            ),
            (
                PRINTED.replace("0 errored, 0 timeout", "2 errored, 3 timeout"),
                Some(LoadResult {
                    socket_errors: 5,
                    ..good.clone()
                }),
            ),
            (PRINTED.replace("finished", "ended"), None),
            (String::new(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text), expected, "{text}");
        }
    }
}
