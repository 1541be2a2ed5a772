//! `opa` with a real Open Policy Agent, in all spellings.

use crate::directory::{echo, until};
use crate::ports::free_port;
use crate::tools::program;
use crate::weir::Weir;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// `decision` is for the native form, `allow` with the fields next to it for APISIX's, `kong` for Kong's.
const POLICY: &str = r#"
package example

default allow := false

allow if {
    input.request.method == "GET"
    input.request.headers["x-user"] == "alice"
}

decision := {"allow": true, "headers": {"X-User": "alice of the agent"}} if allow

decision := {"allow": false, "status_code": 401, "reason": "who are you?", "headers": {"X-Why": "unknown"}} if not allow

default kong := false

kong if input.request.http.headers["x-user"] == "alice"

default sees_route := false

sees_route if input.request.http.path == "/kong"

status_code := 402 if not allow
"#;

/// A running agent.
struct Agent {
    child: Child,
    program: PathBuf,
    folder: TempDir,
    port: u16,
}

impl Agent {
    /// `None`: it is not installed.
    fn start() -> Option<Self> {
        let program = program("opa")?;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("policy.rego"), POLICY).expect("written");
        let port = free_port();
        let agent = Self {
            child: Self::spawn(&program, &folder, port),
            program,
            folder,
            port,
        };
        agent.listens();
        Some(agent)
    }

    fn spawn(program: &PathBuf, folder: &TempDir, port: u16) -> Child {
        let address = format!("127.0.0.1:{port}");
        let arguments = ["run", "--server", "--disable-telemetry", "--addr", &address];
        let mut command = Command::new(program);
        command.args(arguments).arg("policy.rego");
        let started = command.current_dir(folder.path()).stderr(Stdio::null()).spawn();
        started.expect("it runs")
    }

    fn listens(&self) {
        let address = format!("127.0.0.1:{}", self.port);
        until("the agent has read its policy", || {
            ask(&address, "GET", "/health", "").is_ok_and(|answer| answer.contains(" 200 "))
        });
    }

    fn end(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn start_again(&mut self) {
        self.child = Self::spawn(&self.program, &self.folder, self.port);
        self.listens();
    }

    /// Stops the agent: it is there, and answers nothing.
    fn pause(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it runs");
        // The signal takes effect at some time after it was sent.
        let options = rustix::process::WaitOptions::UNTRACED;
        let stopped = rustix::process::waitpid(Some(pid), options).expect("a child");
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
    }

    fn go_on(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it runs");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have been stopped.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// The whole of an answer.
fn ask(address: &str, method: &str, path: &str, headers: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The status and the whole of an answer.
fn send(address: &str, method: &str, path: &str, headers: &str) -> (u16, String) {
    let answer = ask(address, method, path, headers).expect("an answer");
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    (status.expect("a status"), answer)
}

/// A gateway for each spelling: its document, and the path of its route.
fn gateways(folder: &TempDir, agent: u16, upstream: u16) -> Vec<(Weir, &'static str)> {
    let native = format!(
        "weir: 1\nservices:\n  - name: api\n    url: http://127.0.0.1:{upstream}\n    routes:\n\
         \x20     - {{name: open, paths: [/open]}}\n\
         \x20     - name: closed\n        paths: [/native]\n        plugins:\n\
         \x20         - opa: {{url: \"http://127.0.0.1:{agent}/v1/data/example/decision\", upstream_headers: [X-User], http: {{timeout_ms: 1000}}}}\n"
    );
    let apisix = format!(
        "routes:\n- id: open\n  uri: /open\n  upstream_id: u\n- id: closed\n  uri: /apisix\n  upstream_id: u\n\
         \x20 plugins:\n    opa: {{host: \"http://127.0.0.1:{agent}\", policy: example, timeout: 1000}}\n\
         upstreams:\n- id: u\n  type: roundrobin\n  nodes: {{\"127.0.0.1:{upstream}\": 1}}\n#END\n"
    );
    let kong = format!(
        "_format_version: \"3.0\"\nservices:\n- name: api\n  url: http://127.0.0.1:{upstream}\n  routes:\n\
         \x20 - {{name: open, paths: [/open], strip_path: false}}\n\
         \x20 - name: closed\n    paths: [/kong]\n    strip_path: false\n    plugins:\n\
         \x20   - name: opa\n      config: {{opa_host: 127.0.0.1, opa_port: {agent}, opa_path: /v1/data/example/kong}}\n"
    );
    let documents = [
        ("weir.yaml", native, "/native"),
        ("apisix.yaml", apisix, "/apisix"),
        ("kong.yml", kong, "/kong"),
    ];
    let start = |(file, text, path): (&str, String, &'static str)| {
        std::fs::write(folder.path().join(file), text).expect("written");
        (Weir::start(folder.path(), &["-c", file]), path)
    };
    documents.into_iter().map(start).collect()
}

#[test]
fn a_real_agent_decides() {
    let Some(mut agent) = Agent::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let gateways = gateways(&folder, agent.port, echo());
    let alice = "X-User: alice\r\n";
    // What becomes of a call that is not allowed, and of one while the agent is away.
    let statuses = [(401, 503), (402, 403), (403, 500)];
    let check = |what: &str| {
        for ((gateway, path), (refused, _)) in gateways.iter().zip(statuses) {
            let proxy = gateway.proxy();
            for (headers, expected) in [
                (alice, 200),
                ("", refused),
                ("X-User: mallory\r\n", refused),
                (alice, 200),
            ] {
                let (status, answer) = send(&proxy, "GET", path, headers);
                assert_eq!(status, expected, "{what} {path} {headers:?}: {answer}");
            }
        }
    };
    check("at first");
    let native = gateways[0].0.proxy();
    let (_, answer) = send(&native, "GET", "/native", alice);
    let lower = answer.to_lowercase();
    assert!(lower.contains("x-user: alice of the agent"), "{answer}");
    assert!(!lower.contains("x-user: alice\r"), "{answer}");
    let (status, answer) = send(
        &native,
        "POST",
        "/native",
        "X-User: alice\r\nContent-Length: 0\r\n",
    );
    assert_eq!(status, 401, "{answer}");
    assert!(
        answer.contains("who are you?") && answer.contains("unknown"),
        "{answer}"
    );
    // Without an answer calls are refused, and those of other routes go on.
    let away = || {
        for ((gateway, path), (_, away)) in gateways.iter().zip(statuses) {
            let start = Instant::now();
            let proxy = gateway.proxy();
            assert_eq!(send(&proxy, "GET", "/open", "").0, 200);
            if *path != "/kong" {
                let (status, answer) = send(&proxy, "GET", path, alice);
                assert_eq!(status, away, "{path} {answer}");
                assert!(start.elapsed() < Duration::from_secs(20));
            }
        }
    };
    agent.pause();
    away();
    agent.go_on();
    agent.end();
    away();
    assert_eq!(
        send(&gateways[2].0.proxy(), "GET", "/kong", alice).0,
        statuses[2].1
    );
    agent.start_again();
    for (gateway, path) in &gateways {
        until("it decides again", || {
            send(&gateway.proxy(), "GET", path, alice).0 == 200
        });
    }
    check("at the end");
}
