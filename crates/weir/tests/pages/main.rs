//! Every page of `docs/plugins` shows an example and calls of it: the gateway is started with the example, the calls
//! are made as they stand there, and their answers are compared with what the page says behind each.
//!
//! Behind the example, a block of YAML, stands a block of shell. A line of it ends with `# STATUS`, or `# STATUS, TEXT`
//! if the answer holds that text too; lines without one prepare those that follow. Addresses of the page become those
//! of servers that the test has started.

mod books;
#[path = "../../examples/demo_upstream.rs"]
#[allow(dead_code, reason = "its main is for the example")]
mod demo_upstream;
#[path = "../support/grpc.rs"]
mod grpc;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;

use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use weir::Weir;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins");
/// The addresses on the pages: of the gateway, of its upstreams, and of a gRPC service.
const GATEWAY: &str = "127.0.0.1:8000";
const UPSTREAMS: [&str; 5] = ["1980", "1981", "1985", "4318", "9000"];
const GRPC: &str = "127.0.0.1:50051";

/// An example of a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Example {
    configuration: String,
    calls: Vec<Call>,
}

/// A line of shell, with those that prepare it, and what it says of its answer.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    script: String,
    status: String,
    holds: String,
}

/// The whole configurations of a page, each with the calls behind it.
fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut blocks = page.split("```");
    // Every second part is a block.
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        match block.split_once('\n') {
            Some(("yaml", text)) if text.starts_with("weir:") => found.push(Example {
                configuration: text.to_owned(),
                calls: Vec::new(),
            }),
            Some(("sh", text)) => {
                if let Some(example) = found.last_mut() {
                    example.calls.extend(calls(text));
                }
            }
            _ => {}
        }
    }
    found
}

fn calls(block: &str) -> Vec<Call> {
    let (mut calls, mut prepared) = (Vec::new(), String::new());
    for line in block.replace("\\\n", " ").lines() {
        let comment = line
            .rsplit_once(" # ")
            .map(|(command, comment)| (command, comment.trim()));
        let comment = comment.filter(|(_, comment)| comment.starts_with(|it: char| it.is_ascii_digit()));
        match comment {
            Some((command, comment)) => {
                let (status, holds) = comment.split_once(", ").unwrap_or((comment, ""));
                calls.push(Call {
                    script: format!("{prepared}{command}"),
                    status: status.to_owned(),
                    holds: holds.to_owned(),
                });
            }
            None => prepared.push_str(&format!("{line}\n")),
        }
    }
    calls
}

/// A server on a free port that says what it got.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || demo_upstream::serve_all(&listener));
    address
}

/// What is wrong with an example's answers.
fn findings(page: &str, example: &Example, upstream: SocketAddr, grpc: SocketAddr) -> Vec<String> {
    let with_servers = |text: &str| {
        let text = UPSTREAMS.iter().fold(text.to_owned(), |text, port| {
            text.replace(&format!("127.0.0.1:{port}"), &upstream.to_string())
        });
        text.replace(GRPC, &grpc.to_string())
    };
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = with_servers(&example.configuration);
    std::fs::write(folder.path().join("weir.yaml"), &configuration).expect("a file");
    let gateway = Weir::start(folder.path(), &["-c", "weir.yaml"]);
    let answered = example.calls.iter().map(|call| {
        let script = with_servers(&call.script).replace(GATEWAY, &gateway.proxy());
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(folder.path());
        let output = shell.output().expect("a shell");
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let status = answer
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("HTTP/1.1 "));
        let status = status.map_or("none", |line| line.get(..3).unwrap_or(line));
        let is_good = status == call.status && answer.contains(&call.holds);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (!is_good).then(|| format!("{page}: {call:?}\n{answer}\n{stderr}"))
    });
    answered.flatten().collect()
}

#[test]
fn examples_of_pages_do_what_they_say() {
    if Command::new("curl").arg("--version").output().is_err() {
        tools::report_missing("curl");
        return;
    }
    let (upstream, grpc) = (upstream(), books::start());
    let mut pages: Vec<_> = std::fs::read_dir(FOLDER)
        .expect("the pages")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    pages.sort();
    let wanted = std::env::var("PAGE").unwrap_or_default();
    let mut wrong = Vec::new();
    for path in pages
        .iter()
        .filter(|path| path.to_string_lossy().contains(&wanted))
    {
        let page = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let examples = examples(&std::fs::read_to_string(path).expect("a page"));
        if examples
            .first()
            .is_none_or(|it| it.calls.is_empty() || !it.configuration.contains(&page))
        {
            wrong.push(format!("{page}: no example with calls"));
        }
        for example in &examples {
            wrong.extend(findings(&page, example, upstream, grpc));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn calls_are_found() {
    let page = "a\n```yaml\nweir: 1\n```\nb\n```sh\nKEY=x\ncurl -i \\\n  $KEY   # 200\ncurl -d '#' # 404, not here\n```\n";
    let call = |script: &str, status: &str, holds: &str| Call {
        script: script.to_owned(),
        status: status.to_owned(),
        holds: holds.to_owned(),
    };
    let expected = Example {
        configuration: "weir: 1\n".to_owned(),
        calls: vec![
            call("KEY=x\ncurl -i    $KEY  ", "200", ""),
            call("KEY=x\ncurl -d '#'", "404", "not here"),
        ],
    };
    assert_eq!(examples(page), [expected]);
}
