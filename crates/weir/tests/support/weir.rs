//! A running gateway: the binary in a process of its own, on ports that the kernel gave. What is served, and the calls
//! to it, are the tests' own.
#![allow(dead_code, reason = "no test asks for all of it")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a start may take. Much more than it should: the machine may be busy.
const START: Duration = Duration::from_secs(60);

/// A process that ends with the test.
pub struct Weir {
    pub child: Child,
    stdout: BufReader<ChildStdout>,
    /// The line that says that it is ready, with its addresses.
    pub ready: String,
}

impl Weir {
    /// Starts it in a folder and waits until it is ready.
    #[track_caller]
    pub fn start(folder: &Path, flags: &[&str]) -> Self {
        Self::run(&mut Self::command(folder, flags))
    }

    /// Likewise, with variables in its environment.
    #[track_caller]
    pub fn start_with(folder: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::run(Self::command(folder, flags).envs(variables.iter().copied()))
    }

    /// `weir run` with what does not matter to any test, which flags may change.
    pub fn command(folder: &Path, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .arg("run")
            .args(flags)
            .current_dir(folder)
            .env_clear()
            .env("WEIR_LISTEN", "127.0.0.1:0")
            .env("WEIR_STATUS", "127.0.0.1:0")
            .env("WEIR_WORKERS", "1")
            .stdout(Stdio::piped());
        if std::env::var_os("WEIR_TEST_LOG").is_none() {
            command.stderr(Stdio::null());
        }
        command
    }

    /// Starts a command and waits until it is ready.
    ///
    /// # Panics
    /// If it ends before, or is not ready in time: its store may be away.
    #[track_caller]
    pub fn run(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the binary runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let mut ready = String::new();
            let read = stdout.read_line(&mut ready);
            let _too_late = sender.send((read, ready, stdout));
        });
        let Ok((read, ready, stdout)) = heard.recv_timeout(START) else {
            let _ended = child.kill();
            let _ended = child.wait();
            panic!("{command:?}: not ready after {START:?}");
        };
        read.expect("a line");
        assert!(ready.starts_with("ready: "), "{command:?}: {ready:?}");
        Self { child, stdout, ready }
    }

    /// The address behind these words of the line that says that it is ready.
    pub fn address(&self, before: &str) -> String {
        // One route is in the singular.
        let ready = self.ready.replacen(": 1 route on ", ": 1 routes on ", 1);
        let (_, rest) = ready.split_once(before).expect("an address");
        let end = rest.find([',', ' ', '/', '\n']).expect("an end");
        rest[..end].to_owned()
    }

    pub fn proxy(&self) -> String {
        self.address("routes on http://")
    }

    pub fn status(&self) -> String {
        self.address("status on http://")
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Waits for its end; its exit status.
    pub fn end(&mut self) -> Option<i32> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("readable");
        self.child.wait().expect("it ends").code()
    }

    /// Ends it without a word.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
