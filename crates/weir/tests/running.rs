//! What `weir run` does with addresses in use and with signals.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The proxy's address.
    address: String,
    folder: TempDir,
}

fn command(folder: &TempDir, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command
        .args([
            "run",
            "-c",
            "weir.yaml",
            "--workers",
            "1",
            "--status",
            "127.0.0.1:0",
            "--listen",
            listen,
        ])
        .current_dir(folder.path())
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(configuration: &str) -> Running {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("weir.yaml"), configuration).expect("a file");
    let mut child = command(&folder, "127.0.0.1:0").spawn().expect("the binary runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut ready = String::new();
    stdout.read_line(&mut ready).expect("a line");
    let (_, rest) = ready.split_once("http://").expect("an address");
    let (address, _) = rest.split_once(',').expect("an address");
    Running {
        address: address.to_owned(),
        child,
        stdout,
        folder,
    }
}

impl Running {
    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Its exit status.
    fn end(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("readable");
        self.child.wait().expect("it ends").code()
    }
}

#[test]
fn a_second_gateway_takes_no_part_in_the_calls_of_the_first() {
    let first = start("weir: 1\n");
    let second = command(&first.folder, &first.address)
        .output()
        .expect("the binary runs");
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&second.stderr),
        format!(
            "weir: cannot listen on {}: address in use; is another gateway running?\n",
            first.address
        )
    );
    first.signal(rustix::process::Signal::TERM);
    assert_eq!(first.end(), Some(0));
}

#[test]
fn signals_reload_drain_and_cut_short() {
    use rustix::process::Signal;
    let quit = start("weir: 1\n");
    quit.signal(Signal::HUP);
    quit.signal(Signal::QUIT);
    assert_eq!(quit.end(), Some(0));

    // An upstream that never answers keeps the drain waiting.
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = upstream.local_addr().expect("bound");
    let mut cut = start(&format!(
        "weir: 1\nservices: [{{name: a, url: 'http://{url}', routes: [{{name: a, paths: [/]}}]}}]\n"
    ));
    let mut client = std::net::TcpStream::connect(&cut.address).expect("a connection");
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    let _call = upstream.accept().expect("the call");
    cut.signal(Signal::TERM);
    let mut log = BufReader::new(cut.child.stderr.take().expect("piped")).lines();
    assert!(log.any(|line| line.expect("readable").contains("draining")));
    cut.signal(Signal::INT);
    assert_eq!(cut.end(), Some(1));
}

#[test]
fn a_kong_yml_is_served_below_http() {
    let target = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = target.local_addr().expect("bound").port();
    let folder = tempfile::tempdir().expect("a folder");
    let document = format!(
        "_format_version: '3.0'\nservices:\n- {{name: db, protocol: tcp, host: 127.0.0.1, port: {port}, routes: [\
         {{name: all, protocols: [tcp], sources: [{{ip: 127.0.0.0/8}}]}}]}}\n"
    );
    std::fs::write(folder.path().join("weir.yaml"), document).expect("a file");
    let mut child = command(&folder, "127.0.0.1:0")
        .args([
            "--listen-stream",
            "127.0.0.1:0",
            "--listen-stream",
            "127.0.0.1:0,udp",
        ])
        .args(["--proxy-protocol", "127.0.0.1", "--proxy-protocol-on", "stream"])
        .args(["--access-log", "log"])
        .spawn()
        .expect("the binary runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut ready = String::new();
    stdout.read_line(&mut ready).expect("a line");
    assert!(
        ready.starts_with("ready: 1 routes on http://") && ready.contains(" and udp://127.0.0.1:"),
        "{ready}"
    );
    let (_, rest) = ready.split_once("tcp://").expect("an address");
    let (address, _) = rest.split_once(' ').expect("an address");
    let mut client = std::net::TcpStream::connect(address).expect("a connection");
    client
        .write_all(b"PROXY TCP4 127.9.9.9 127.0.0.1 5 6\r\nhello")
        .expect("sent");
    let (mut server, _) = target.accept().expect("a session");
    let mut bytes = [0; 5];
    server.read_exact(&mut bytes).expect("read");
    assert_eq!(&bytes, b"hello");
    server.write_all(b"bye").expect("sent");
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("read");
    assert_eq!(answer, "bye");
    drop(client);
    let running = Running {
        address: address.to_owned(),
        child,
        stdout,
        folder,
    };
    running.signal(rustix::process::Signal::TERM);
    let log = running.folder.path().join("log");
    let kept = std::fs::File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(log)
        .expect("the log");
    assert_eq!(running.end(), Some(0));
    let mut line = String::new();
    BufReader::new(kept).read_line(&mut line).expect("a line");
    for part in [
        r#""client":"127.9.9.9","protocol":"tcp","bytes_in":5,"bytes_out":3"#,
        r#""route":"all","service":"db""#,
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}
