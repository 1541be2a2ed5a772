//! The commands of `docs/multi-cluster.md`, run as they stand there, and what the page says of their answers.
//!
//! `weir run …` starts a process. A line that ends with `# STATUS`, or `# STATUS, TEXT`, is a call; it is repeated until it
//! gives that status and an answer with that text. Other lines prepare those behind them. Addresses of the page become
//! those that the processes have.

use crate::support::{server, until};
use crate::weir::Weir;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const PAGE: &str = include_str!("../../../../docs/multi-cluster.md");
/// Ends the answer to a line.
const END: &str = "end-of-answer";

/// A shell that runs one line after the other.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start(folder: &Path) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a folder");
        let path = format!(
            "{}:{}",
            binary.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut child = Command::new("bash")
            .current_dir(folder)
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash runs");
        Self {
            input: child.stdin.take().expect("piped"),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    fn run(&mut self, line: &str) -> String {
        let text = format!("{{ {line}\n}} 2>&1; echo; echo {END}\n");
        self.input.write_all(text.as_bytes()).expect("it runs");
        let mut answer = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).expect("an answer") > 0,
                "bash has ended: {answer}"
            );
            if line.trim_end() == END {
                return answer;
            }
            answer.push_str(&line);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// The processes of the page, and what its addresses are here.
#[derive(Default)]
struct Cluster {
    weirs: Vec<Weir>,
    addresses: BTreeMap<String, String>,
}

impl Cluster {
    fn here(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (page, here) in &self.addresses {
            line = line.replace(page, here);
        }
        line
    }

    /// Starts what `weir run` names.
    fn start(&mut self, folder: &Path, shell: &mut Shell, line: &str) {
        let line = shell.run(&format!("echo {}", self.here(line.trim_end_matches('&'))));
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        let mut listeners = Vec::new();
        let mut flags: Vec<String> = Vec::new();
        for word in words {
            let before = flags.last().cloned().unwrap_or_default();
            let announcement = match before.as_str() {
                "--listen" => Some("routes on http://"),
                "--status" => Some("status on http://"),
                "--console" => Some("Weir's API on http://"),
                "--kong-admin" => Some("Kong's Admin API on http://"),
                _ => None,
            };
            if let Some(announcement) = announcement {
                listeners.push((word.to_owned(), announcement));
            }
            flags.push(if announcement.is_some() {
                "127.0.0.1:0".to_owned()
            } else {
                word.to_owned()
            });
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut command = Weir::command(folder, &flags);
        if listeners
            .iter()
            .any(|(_, announcement)| announcement.starts_with("routes"))
        {
            command.env_remove("WEIR_LISTEN");
        }
        let weir = Weir::run(&mut command);
        for (page, announcement) in listeners {
            self.addresses.insert(page, weir.address(announcement));
        }
        self.weirs.push(weir);
    }
}

/// The command of a line, and what the page says of its answer.
fn expected(line: &str) -> Option<(&str, &str, &str)> {
    let (command, expected) = line.rsplit_once("# ")?;
    let (status, text) = expected.split_once(", ").unwrap_or((expected, ""));
    let is_status = status.len() == 3 && status.bytes().all(|it| it.is_ascii_digit());
    is_status.then_some((command.trim_end(), status, text))
}

#[test]
fn the_page_about_several_clusters_is_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = server(|_| (200, "hello".to_owned()));
    let mut cluster = Cluster::default();
    cluster
        .addresses
        .insert("127.0.0.1:1980".to_owned(), upstream.to_string());
    let mut shell = Shell::start(folder.path());
    let mut checked = 0;
    let blocks = PAGE.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|it| it.split("```").next()).collect();
    for line in blocks.iter().flat_map(|it| it.lines()) {
        if line.starts_with("weir run ") {
            cluster.start(folder.path(), &mut shell, line);
            continue;
        }
        let Some((command, status, text)) = expected(line) else {
            let output = shell.run(&cluster.here(line));
            // The page says that rights come before what they name.
            let is_warning = |it: &str| {
                it.starts_with("weir: warning: ") && (it.contains(" yet") || it.ends_with("is empty"))
            };
            assert!(output.trim().lines().all(is_warning), "{line}\n{output}");
            continue;
        };
        let (command, mut last) = (cluster.here(command), String::new());
        let has_it = format!("HTTP/1.1 {status} ");
        // What changes something is done once; what reads waits for what was done before.
        if command.contains("-X ") {
            last = shell.run(&command);
            assert!(last.contains(&has_it) && last.contains(text), "{line}\n{last}");
        } else {
            until(&format!("{line}\n{last}"), || {
                last = shell.run(&command);
                last.contains(&has_it) && last.contains(text)
            });
        }
        checked += 1;
    }
    assert!(checked > 30, "{checked}");
}
