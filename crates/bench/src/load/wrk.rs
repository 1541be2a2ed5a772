//! `wrk`: the load of HTTP/1.1, in cleartext, over TLS and through a TCP stream.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use super::{LoadResult, Work};
use crate::experiment::Experiment;
use crate::template::{Values, render};

/// The script that chooses among many routes.
pub const SCRIPT: &str = "random_route.lua";

/// The arguments of `wrk`; its script is in `directory`.
pub fn arguments(work: &Work<'_>, directory: &Path) -> Vec<OsString> {
    let (target, experiment) = (work.target, work.experiment);
    let mut arguments: Vec<OsString> = ["-t", "1", "--latency", "-c"].map(OsString::from).into();
    arguments.push(work.connections.to_string().into());
    arguments.push(format!("-d{}s", work.duration.as_secs()).into());
    for (name, value) in experiment.headers() {
        arguments.push("-H".into());
        arguments.push(format!("{name}: {value}").into());
    }
    let path = if experiment.setup.routes > 1 {
        arguments.push("-s".into());
        arguments.push(directory.join(SCRIPT).into());
        "/"
    } else {
        "/hello"
    };
    let scheme = experiment.setup.speaks.scheme();
    arguments.push(format!("{scheme}://{target}{path}").into());
    arguments
}

/// The script with which `wrk` asks for the experiment's routes at random.
///
/// # Errors
/// The template is wrong.
pub fn random_routes(experiment: &Experiment) -> Result<String> {
    let mut values = Values::default();
    values.text("routes", experiment.setup.routes);
    render(include_str!("../../load/random_route.lua"), &values)
}

/// Reads the text that `wrk --latency` prints.
pub fn parse(output: &str) -> Option<LoadResult> {
    let mut counted = LoadResult::default();
    let (mut calls, mut rate, mut p50, mut p90, mut p99) = (None, None, None, None, None);
    for line in output.lines().map(str::trim) {
        if let Some(value) = line.strip_prefix("50%") {
            p50 = Some(parse_time(value.trim())?);
        } else if let Some(value) = line.strip_prefix("90%") {
            p90 = Some(parse_time(value.trim())?);
        } else if let Some(value) = line.strip_prefix("99%") {
            p99 = Some(parse_time(value.trim())?);
        } else if let Some((count, _)) = line.split_once(" requests in ") {
            calls = Some(count.parse().ok()?);
        } else if let Some(value) = line.strip_prefix("Requests/sec:") {
            rate = Some(value.trim().parse().ok()?);
        } else if let Some(kinds) = line.strip_prefix("Socket errors:") {
            for kind in kinds.split(',') {
                counted.socket_errors += kind.rsplit(' ').next()?.parse::<u64>().ok()?;
            }
        } else if let Some(value) = line.strip_prefix("Non-2xx or 3xx responses:") {
            counted.refused = value.trim().parse().ok()?;
        }
    }
    Some(LoadResult {
        calls: calls?,
        calls_per_second: rate?,
        latency_us: vec![("p50", p50?), ("p90", p90?), ("p99", p99?)],
        ..counted
    })
}

/// A time as wrk prints it, in microseconds.
fn parse_time(text: &str) -> Option<f64> {
    // "us" and "ms" end in "s" too: the longer units come first.
    const UNITS: [(&str, f64); 5] = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)];
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Running 2s test @ http://127.0.0.1:8080/hello
  1 threads and 50 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
    Req/Sec    56.20k     8.07k   62.00k    86.54%
  Latency Distribution
     50%  250.00us
     75%  491.00us
     90%  700.00us
     99%    5.80ms
  112400 requests in 2.00s, 17.76MB read
";
    const RATE: &str = "Requests/sec:  56196.53\nTransfer/sec:    606.33MB\n";

    #[test]
    fn outputs_of_wrk() {
        let good = LoadResult {
            calls: 112_400,
            calls_per_second: 56_196.53,
            latency_us: vec![("p50", 250.0), ("p90", 700.0), ("p99", 5800.0)],
            ..LoadResult::default()
        };
        let socket = "  Socket errors: connect 1, read 2, write 0, timeout 3\n";
        let refused = "  Non-2xx or 3xx responses: 77\n";
        let cases = [
            (format!("{PRINTED}{RATE}"), Some(good.clone())),
            (
                format!("{PRINTED}{socket}{RATE}"),
                Some(LoadResult {
                    socket_errors: 6,
                    ..good.clone()
                }),
            ),
            (
                format!("{PRINTED}{refused}{RATE}"),
                Some(LoadResult {
                    refused: 77,
                    ..good.clone()
                }),
            ),
            (
                format!("{PRINTED}{socket}{refused}{RATE}"),
                Some(LoadResult {
                    socket_errors: 6,
                    refused: 77,
                    ..good
                }),
            ),
            (PRINTED.to_owned(), None),
            (
                "unable to connect to 127.0.0.1:1 Connection refused\n".to_owned(),
                None,
            ),
            (String::new(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text), expected, "{text}");
        }
    }

    #[test]
    fn times_of_wrk() {
        let cases = [
            ("635.91us", Some(635.91)),
            ("5.80ms", Some(5800.0)),
            ("1.25s", Some(1_250_000.0)),
            ("2.00m", Some(120_000_000.0)),
            ("12", None),
            ("us", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_time(text), expected, "{text:?}");
        }
    }
}
