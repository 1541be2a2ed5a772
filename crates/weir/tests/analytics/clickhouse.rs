//! Counts in ClickHouse: today's engine behind a small HTTP front, which asks for a password and can be away. That its
//! answers are those of SQLite, the tests of `weir-analytics` show.

use super::{FLAGS, all_calls, configure, repeat, totals};
use crate::support::{Call, Weir, until, upstream};
use crate::tools;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PASSWORD: &str = "clickhouse-s3cret";

/// The engine in a process of its own.
struct Front {
    child: Child,
    port: u16,
}

impl Front {
    /// `None`: the machine lacks it.
    fn start() -> Option<Self> {
        let python = format!("{ROOT}/target/test-tools/clickhouse/bin/python");
        let has_it = Command::new(&python).args(["-c", "import chdb"]).output();
        if !has_it.is_ok_and(|it| it.status.success()) {
            tools::report_missing("chdb");
            return None;
        }
        let mut child = Command::new(&python)
            .arg(format!("{ROOT}/crates/analytics/tests/clickhouse_front.py"))
            .arg(PASSWORD)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines.next().expect("a line").expect("readable").parse();
        Some(Self {
            child,
            port: port.expect("a port"),
        })
    }

    /// It is away from now on, or is there again.
    fn toggle(&self) {
        kill_process(Pid::from_child(&self.child), Signal::USR1).expect("it runs");
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// The status and the body of a query's answer.
fn query_calls(weir: &Weir) -> (u16, Value) {
    let query = json!({ "metrics": ["calls"], "from": "-1h" });
    let call = Call::new("POST", &weir.console(), "/api/v1/analytics/query");
    let answer = call.body(&query.to_string()).make();
    (answer.status, answer.json())
}

#[test]
fn counts_are_kept_in_clickhouse_and_wait_while_it_is_away() {
    let Some(front) = Front::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    std::fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).expect("written");
    std::fs::write(folder.path().join("wrong"), "guessed").expect("written");
    let url = format!("clickhouse://weir@127.0.0.1:{}/default", front.port);
    let flags = |password: &'static str| {
        let more = [
            "--analytics-store",
            &url,
            "--analytics-store-password-file",
            password,
        ];
        [&FLAGS[..], &more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let start = |password: &'static str| {
        let flags = flags(password);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Weir::start(folder.path(), &flags)
    };
    let weir = start("password");
    repeat(&weir.proxy(), "/ok", "", 300, 200);
    repeat(&weir.proxy(), "/teapot", "", 50, 418);
    until("all calls are counted", || all_calls(&weir) == 350.0);
    let by_status = totals(&weir, "calls", "status", &json!({}));
    assert_eq!(
        by_status,
        [("200".to_owned(), 300.0), ("418".to_owned(), 50.0)].into()
    );
    let definition = Call::new("GET", &weir.console(), "/api/v1/analytics/definition");
    assert_eq!(definition.make().expect(200).json()["store"], "clickhouse");
    front.toggle();
    until("it is away", || query_calls(&weir).0 == 503);
    let (_, problem) = query_calls(&weir);
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("ClickHouse: 503") && detail.contains("the server is away"),
        "{problem}"
    );
    repeat(&weir.proxy(), "/ok", "", 100, 200);
    // What waits is on disk, and another process hands it over.
    let waiting = || std::fs::read_dir(folder.path().join("analytics/backlog")).map_or(0, Iterator::count);
    let mut weir = weir;
    weir.signal(Signal::TERM);
    assert_eq!(weir.end(), Some(0));
    assert!(waiting() > 0);
    let weir = start("password");
    front.toggle();
    until("what waited is counted, once", || {
        waiting() == 0 && query_calls(&weir).0 == 200 && all_calls(&weir) == 450.0
    });
    drop(weir);
    // With a wrong password, calls are served and the refusal is reported.
    let weir = start("wrong");
    repeat(&weir.proxy(), "/ok", "", 10, 200);
    let (status, problem) = query_calls(&weir);
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(
        status == 503 && detail.contains("Authentication failed"),
        "{problem}"
    );
    assert!(!problem.to_string().contains("guessed"));
}

#[test]
fn wrong_stores_are_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let refusal_of = |flags: &[&str]| {
        let mut command = Weir::command(folder.path(), flags);
        let output = command.stderr(Stdio::piped()).output().expect("it runs");
        assert!(!output.status.success(), "{flags:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let good = "clickhouse://ch.example/weir";
    for (flags, part) in [
        (
            &["--data", "data", "--analytics-store", "http://ch.example"][..],
            "expected clickhouse://",
        ),
        (
            &[
                "--data",
                "data",
                "--analytics-store",
                "clickhouse://ann:s3cret@ch.example/weir",
            ],
            "--analytics-store-password-file",
        ),
        (
            &["-c", "weir.yaml", "--analytics-store", good],
            "needs --data DIR or --analytics FOLDER",
        ),
        (
            &[
                "--data",
                "data",
                "--role",
                "gateway",
                "--control",
                "http://127.0.0.1:1",
                "--analytics-store",
                good,
            ],
            "give --analytics-store to the control plane",
        ),
        (
            &[
                "--data",
                "data",
                "--analytics-store",
                good,
                "--analytics-store-password-file",
                "gone",
            ],
            "--analytics-store-password-file gone",
        ),
    ] {
        let stderr = refusal_of(flags);
        assert!(
            stderr.contains(part) && !stderr.contains("s3cret"),
            "{flags:?}: {stderr}"
        );
    }
}
