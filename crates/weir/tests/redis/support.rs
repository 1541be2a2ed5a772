//! Redis servers, gateways and an upstream, each a process or a thread of this test, on ports that the kernel gave.

mod upstream;

pub use upstream::Upstream;

pub use crate::ports::free_port;
use crate::weir::Weir;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest that anything may take that is waited for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Whether the servers of these tests are installed. Says so if not.
pub fn is_installed() -> bool {
    let found = Command::new("redis-server")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if found.is_err() {
        crate::tools::report_missing("redis-server");
    }
    found.is_ok()
}

/// A port of 127.0.0.1 without a listener, now or later: that of a service (tcpmux) which no machine offers.
pub const CLOSED_PORT: u16 = 1;

/// Looks again and again until it holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running `redis-server`.
pub struct Redis {
    child: Child,
    arguments: Vec<String>,
    pub port: u16,
    folder: Option<TempDir>,
}

fn pid_file(folder: &TempDir, port: u16) -> PathBuf {
    folder.path().join(format!("{port}.pid"))
}

impl Redis {
    /// A server without persistence, with these options more.
    pub fn start(options: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder"), options)
    }

    pub fn start_in(folder: TempDir, options: &[&str]) -> Self {
        let mut folder = folder;
        loop {
            match Self::try_start(folder, options) {
                Ok(redis) => return redis,
                // Another process took the port in between.
                Err(again) => folder = again,
            }
        }
    }

    fn try_start(folder: TempDir, options: &[&str]) -> Result<Self, TempDir> {
        let port = free_port();
        let mut arguments: Vec<String> = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
            .map(str::to_owned)
            .into();
        arguments.extend(["--dir".to_owned(), folder.path().display().to_string()]);
        // It is written once the server listens.
        arguments.extend([
            "--pidfile".to_owned(),
            pid_file(&folder, port).display().to_string(),
        ]);
        let options = options.iter().map(|it| it.replace("PORT", &port.to_string()));
        arguments.extend(options);
        if !arguments.iter().any(|it| it == "--port" || it == "--tls-port") {
            arguments.extend(["--port".to_owned(), port.to_string()]);
        }
        let mut redis = Self {
            child: spawn(&arguments),
            arguments,
            port,
            folder: Some(folder),
        };
        match redis.listens() {
            true => Ok(redis),
            false => Err(redis.folder.take().expect("it is there")),
        }
    }

    /// Whether it has come to listen; otherwise it has ended.
    fn listens(&mut self) -> bool {
        let folder = self.folder.as_ref().expect("it is there");
        let file = pid_file(folder, self.port);
        let mut has_ended = false;
        until("a Redis listens", || {
            has_ended = self.child.try_wait().expect("its state").is_some();
            has_ended || file.exists()
        });
        !has_ended
    }

    /// A sentinel with this file.
    pub fn start_sentinel(folder: TempDir, configuration: &str) -> Self {
        let port = free_port();
        let mut arguments = vec![configuration.to_owned(), "--port".to_owned(), port.to_string()];
        arguments.extend(["--bind", "127.0.0.1", "--sentinel"].map(str::to_owned));
        let redis = Self {
            child: spawn(&arguments),
            arguments,
            port,
            folder: Some(folder),
        };
        redis.wait();
        redis
    }

    fn wait(&self) {
        until("a Redis listens", || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// Sends commands of plain words, one a line, and gives the replies as they come.
    pub fn ask(&self, commands: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        let text: String = commands.lines().map(|line| format!("{line}\r\n")).collect();
        stream.write_all(text.as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let mut replies = String::new();
        for _ in commands.lines() {
            read_reply(&mut reader, &mut replies);
        }
        replies
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    pub fn restart(&mut self) {
        self.child = spawn(&self.arguments);
        self.wait();
    }

    pub fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }
}

fn read_reply(reader: &mut impl BufRead, replies: &mut String) {
    let start = replies.len();
    reader.read_line(replies).expect("a line");
    let line = replies[start..].trim_end().to_owned();
    let size = line.get(1..).and_then(|digits| digits.parse::<usize>().ok());
    match (line.as_bytes().first(), size) {
        (Some(b'*'), Some(count)) => (0..count).for_each(|_| read_reply(reader, replies)),
        (Some(b'$'), Some(size)) => {
            let mut text = vec![0; size + 2];
            reader.read_exact(&mut text).expect("a text");
            replies.push_str(&String::from_utf8_lossy(&text));
        }
        _ => {}
    }
}

fn spawn(arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server runs")
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _was_running = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A running gateway.
pub struct Gateway {
    weir: Weir,
    pub address: String,
    folder: TempDir,
}

impl Gateway {
    /// Serves a document with two workers.
    pub fn start(document: &str) -> Self {
        Self::with(document, &[])
    }

    /// With these variables of the environment.
    pub fn with(document: &str, environment: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("weir.yaml"), document).expect("a file");
        let log = std::fs::File::create(folder.path().join("log")).expect("a file");
        let mut command = Weir::command(folder.path(), &["-c", "weir.yaml", "--workers", "2"]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let weir = Weir::run(command.stderr(log));
        Self {
            address: weir.proxy(),
            weir,
            folder,
        }
    }

    /// Its address for streams.
    pub fn stream_address(&self) -> String {
        self.weir.address("tcp://")
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).expect("a log")
    }

    /// Calls a path, and gives the answer's status.
    pub fn call(&self, path: &str) -> u16 {
        self.get(path, "").0
    }

    /// Calls a path with these header lines; the status and the rest of the answer.
    pub fn get(&self, path: &str, headers: &str) -> (u16, String) {
        get(&self.address, path, headers)
    }

    /// The number behind a metric with these words.
    pub fn metric(&self, words: &str) -> u64 {
        let (_, text) = get(&self.weir.status(), "/metrics", "");
        let line = text.lines().find(|line| line.starts_with(words));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        number.unwrap_or(0)
    }

    /// Ends it without a good-bye.
    pub fn kill(mut self) {
        self.weir.child.kill().expect("it runs");
    }

    /// Has it end once its calls have.
    pub fn ask_to_end(&self) {
        self.weir.signal(rustix::process::Signal::TERM);
    }

    /// Lets it end properly.
    pub fn end(self) {
        self.ask_to_end();
        self.wait();
    }

    /// Waits until it has ended.
    pub fn wait(mut self) {
        self.weir.end();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _was_running = self.weir.child.kill();
        let _ended = self.weir.child.wait();
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("the gateway's log:\n{log}");
        } else {
            assert!(!log.contains("panicked"), "{log}");
        }
    }
}

/// Calls a path on a connection of its own.
pub fn get(address: &str, path: &str, headers: &str) -> (u16, String) {
    send(address, "GET", path, headers)
}

/// The same with any method.
pub fn send(address: &str, method: &str, path: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.get(9..12).and_then(|digits| digits.parse().ok());
    (status.unwrap_or(0), answer)
}

/// Calls the gateways by turns, from several threads, and counts the answers with status 200.
pub fn passed(gateways: &[&Gateway], calls: usize, path: &str) -> usize {
    let passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let passed = &passed;
            scope.spawn(move || {
                for number in 0..calls / 8 {
                    let gateway = gateways[(thread + number) % gateways.len()];
                    match gateway.call(path) {
                        200 => passed.fetch_add(1, Ordering::SeqCst),
                        429 | 503 => 0,
                        other => panic!("status {other}"),
                    };
                }
            });
        }
    });
    passed.into_inner()
}

/// A native document: everything is answered by the upstream after this plugin.
pub fn native(upstream: &Upstream, plugin: &str) -> String {
    let url = upstream.address;
    format!(
        "weir: 1\nservices:\n- {{name: s, url: 'http://{url}', routes: [{{name: r, paths: [/], plugins: [{plugin}]}}]}}\n"
    )
}
