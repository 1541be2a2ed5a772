//! A gateway without calls sleeps: its threads wait for events, and look for nothing again and again.

use crate::weir::Weir;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often all threads together may wake in a second. Each of the worker's and the health checks' is one for
/// housekeeping.
const MAX_WAKES: u64 = 18;
/// How long a start may go on in the background.
const SETTLED: Duration = Duration::from_secs(30);

const CONFIGURATION: &str = "
weir: 1
upstreams: [{name: u, targets: [{host: 127.0.0.1, port: 1}]}]
services: [{name: s, upstream: u}]
routes: [{name: r, match: [{}], to: {service: s}}]
";

/// How often threads have waited, by their ids.
fn waits(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of = |folder: &Path| {
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let line = status
            .lines()
            .find(|it| it.starts_with("voluntary_ctxt_switches:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    tasks.filter_map(|task| of(&task.ok()?.path())).sum()
}

#[test]
fn idle_gateways_sleep() {
    for with_store in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("w.yaml"), CONFIGURATION).unwrap();
        let flags = match with_store {
            false => vec!["-c", "w.yaml"],
            true => vec!["--data", "d", "--console", "127.0.0.1:0"],
        };
        let weir = Weir::start(folder.path(), &flags);
        let end = Instant::now() + SETTLED;
        let mut found = Vec::new();
        // A busy machine makes it wake less often, never more.
        while Instant::now() < end {
            let (before, since) = (waits(weir.child.id()), Instant::now());
            std::thread::park_timeout(Duration::from_secs(2));
            let rate = (waits(weir.child.id()) - before) as f64 / since.elapsed().as_secs_f64();
            found.push(rate as u64);
            if rate < MAX_WAKES as f64 {
                break;
            }
        }
        assert!(
            found.last().is_some_and(|rate| *rate < MAX_WAKES),
            "{with_store}: {found:?} a second"
        );
    }
}
