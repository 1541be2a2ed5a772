//! `/status/ready`, asked from the first moment on: the ports are known beforehand, as those of a unit of a cluster are.

use crate::ports::free_port;
use crate::support::{Answer, Call};
use crate::weir::Weir;
use std::time::{Duration, Instant};

/// A process that is ended with the test.
struct Started(std::process::Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The first answer that is 200, or the last one.
fn ready(status: &str) -> u16 {
    let begun = Instant::now();
    loop {
        let answer = Call::get(status, "/status/ready").attempt();
        match answer.map_or(0, |it| it.status) {
            200 => return 200,
            other if begun.elapsed() > Duration::from_secs(60) => return other,
            _ => std::thread::yield_now(),
        }
    }
}

/// An answer of a process whose store is not open is a problem document.
fn check(answer: &Answer, case: &str) {
    if answer.status == 503 {
        let kind = answer.header("content-type");
        assert_eq!(
            kind.as_deref(),
            Some("application/problem+json"),
            "{case}: {answer:?}"
        );
        assert_eq!(answer.json()["status"], 503, "{case}");
    }
}

#[test]
fn a_process_is_ready_when_its_console_and_its_portal_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    // The second time there is a store already.
    for (role, turn) in [("control", 1), ("control", 2), ("all", 1), ("all", 2)] {
        let case = format!("{role}, start {turn}");
        let [status, console, portal] = [(); 3].map(|()| format!("127.0.0.1:{}", free_port()));
        let flags = [
            "--role",
            role,
            "--data",
            role,
            "--console",
            &console,
            "--portal",
            &portal,
        ];
        let mut command = Weir::command(folder.path(), &flags);
        command.env("WEIR_STATUS", &status);
        let _started = Started(command.spawn().expect("the binary runs"));
        // Whatever is asked meanwhile gets a problem document, if anything listens.
        for (address, path) in [(&console, "/api/v1/environments"), (&portal, "/portal/v1/me")] {
            if let Some(answer) = Call::get(address, path).attempt() {
                check(&answer, &case);
            }
        }
        assert_eq!(ready(&status), 200, "{case}");
        let of_console = Call::get(&console, "/api/v1/environments").make();
        assert_eq!(of_console.status, 200, "{case}: {of_console:?}");
        let of_portal = Call::get(&portal, "/portal/v1/me").make();
        assert_eq!(of_portal.status, 200, "{case}: {of_portal:?}");
    }
}

/// What is waited for is named at once, without its password.
#[test]
fn a_store_that_is_away_at_the_start_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (status, away) = (format!("127.0.0.1:{}", free_port()), free_port());
    let store = format!("etcd://u:secret@127.0.0.1:{away}/w");
    let mut command = Weir::command(folder.path(), &["--store", &store]);
    command
        .env("WEIR_STATUS", &status)
        .stderr(std::process::Stdio::piped());
    let mut started = Started(command.spawn().expect("the binary runs"));
    let begun = Instant::now();
    let log = started.0.stderr.take().expect("piped");
    let named = format!("the store etcd://127.0.0.1:{away}/w");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(log)).map(|line| line.expect("readable"));
    let line = lines.find(|line| line.contains("waiting for")).expect("a line");
    assert!(line.contains(&named) && !line.contains("secret"), "{line}");
    // Within a second on a machine that has time.
    assert!(begun.elapsed() < Duration::from_secs(10), "{line}");
    let answer = Call::get(&status, "/status/ready").make().expect(503).json();
    assert_eq!(
        (&answer["ready"], &answer["reason"], &answer["waits_for"]),
        (&false.into(), &"starting".into(), &named.as_str().into())
    );
    let line = lines
        .find(|line| line.contains("still waiting for"))
        .expect("a line");
    assert!(line.contains(&named) && !line.contains("secret"), "{line}");
}
