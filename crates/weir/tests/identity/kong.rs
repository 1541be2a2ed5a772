//! Kong's own specifications of `session`, `ldap-auth` and `aws-lambda`, as tables of calls and of what comes of them
//! (`kong/*.json`), with a real gateway and a real directory. That of `oauth2` is in `crates/kong/tests/oauth2`. Left
//! out are gRPC (`crates/kong/tests/grpc.rs`), and functions whose region stands in the environment: such files are
//! refused.

use crate::directory::{Directory, echo};
use crate::weir::Weir;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Cases that end differently, and why.
const KNOWN: &[(&str, &str)] = &[
    (
        "anonymous that does not exist",
        "later versions of the original name the consumer; 3.9.3 says what it says of all failures",
    ),
    (
        "large bodies are left out",
        "nothing is kept in files, so large bodies are sent too",
    ),
    (
        "gateway: large bodies are left out",
        "nothing is kept in files, so large bodies are sent too",
    ),
    ("gateway: a route with an expression", PATTERN),
];
/// Routes do not give plugins their patterns.
const PATTERN: &str = "`resource` is the part of the path that matched, not the route's pattern";

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    /// Reads the bytes of a whole connection.
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.get(9..12)?.parse().ok());
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Self {
            status: status.unwrap_or_default(),
            headers: headers.collect(),
            body: body.to_owned(),
        }
    }

    fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

/// A browser of a case: the pairs of its cookies.
#[derive(Default)]
struct Cookies(Vec<(String, String)>);

impl Cookies {
    fn keep(&mut self, answer: &Answer) {
        for set in answer.all("set-cookie") {
            let pair = set.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.0.retain(|(known, _)| known != name);
                if !value.is_empty() {
                    self.0.push((name.to_owned(), value.to_owned()));
                }
            }
        }
    }

    fn line(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }
}

fn text<'v>(step: &'v Value, name: &str) -> Option<&'v str> {
    step.get(name).and_then(Value::as_str)
}

fn object<'v>(step: &'v Value, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    step.get(name).and_then(Value::as_object).into_iter().flatten()
}

/// The texts of a value: one, or several.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// Makes the call of a step.
fn send(address: &str, step: &Value, cookies: &Cookies) -> Answer {
    let host = text(step, "host").expect("a host");
    let mut head = format!(
        "{} HTTP/1.1\r\nHost: {host}\r\n",
        text(step, "call").expect("a call")
    );
    for (name, value) in object(step, "headers") {
        for value in texts(value) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if step["cookie"] == true {
        head.push_str(&format!("Cookie: {}\r\n", cookies.line()));
    }
    let body = text(step, "body").unwrap_or_default();
    if step.get("body").is_some() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("{head}Connection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).expect("an answer");
    Answer::read(&String::from_utf8_lossy(&received))
}

/// Whether a value has all that is expected of it; `null`: it has no such member.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| has(found.get(name).unwrap_or(&Value::Null), expected)),
        (found, expected) => found == expected,
    }
}

/// Whether the lines of a header are as they should be: a text after `=` is a whole line, and others are parts of one.
fn fits(lines: &[&str], expected: &Value) -> bool {
    if expected.is_null() {
        return lines.is_empty();
    }
    let fits = |part: &str| match part.strip_prefix('=') {
        Some(whole) => lines.contains(&whole),
        None => lines.iter().any(|line| line.contains(part)),
    };
    !lines.is_empty() && texts(expected).into_iter().all(fits)
}

/// What is wrong with an answer.
fn fault(step: &Value, answer: &Answer) -> Option<String> {
    if step["status"] != answer.status {
        return Some(format!("status {}", answer.status));
    }
    for (name, expected) in object(step, "answer") {
        if !fits(&answer.all(name), expected) {
            return Some(format!("{name} is {:?}, not {expected}", answer.all(name)));
        }
    }
    for (name, parts) in object(step, "without") {
        for part in texts(parts) {
            if answer.all(name).iter().any(|line| line.contains(part)) {
                return Some(format!("{name} has {part}"));
            }
        }
    }
    // The upstream answers with the head of the request.
    let seen = Answer::read(&answer.body);
    for (name, expected) in object(step, "upstream") {
        let found: Option<&str> = seen.all(name).first().copied();
        if found != expected.as_str() {
            return Some(format!("the upstream got {name}: {found:?}, not {expected}"));
        }
    }
    if let Some(expected) = step.get("json") {
        let found: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if !has(&found, expected) {
            return Some(format!("the body is {}, not {expected}", answer.body));
        }
    }
    if let Some(expected) = text(step, "text")
        && answer.body.trim_end_matches('\n') != expected
    {
        return Some(format!("the body is {:?}, not {expected:?}", answer.body));
    }
    let part = text(step, "contains")?;
    (!answer.body.contains(part)).then(|| format!("the body is {:?}, without {part:?}", answer.body))
}

/// What is wrong with a case.
fn play(address: &str, case: &Value) -> Option<String> {
    let mut cookies = Cookies::default();
    for step in case["steps"].as_array().expect("steps") {
        let answer = send(address, step, &cookies);
        if let Some(fault) = fault(step, &answer) {
            return Some(format!("{}: {fault}: {answer:?}", step["call"]));
        }
        if step["keep"] != false {
            cookies.keep(&answer);
        }
    }
    None
}

/// Plays a table on a gateway with its document.
fn play_all(table: &str, ports: &[(&str, u16)]) {
    let mut table = table.to_owned();
    for (name, port) in ports {
        table = table.replace(&format!("\"@{name}@\""), &port.to_string());
        table = table.replace(&format!("@{name}@"), &port.to_string());
    }
    let table: Value = serde_json::from_str(&table).expect("JSON");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("kong.yml"), table["document"].to_string()).expect("written");
    let weir = Weir::start(folder.path(), &["-c", "kong.yml"]);
    let cases = table["cases"].as_array().expect("cases");
    let mut wrong = Vec::new();
    for case in cases {
        let name = text(case, "case").expect("a name");
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        match (play(&weir.proxy(), case), known) {
            (Some(fault), None) => wrong.push(format!("{name}: {fault}")),
            (None, Some(_)) => wrong.push(format!("{name}: it ends as in the original now")),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// A stand-in for AWS: what functions of these names answer, asked directly or through it as a proxy.
fn functions() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                // A gateway that waits no longer has gone.
                let _is_answered = answer_call(stream);
            });
        }
    });
    port
}

fn read_head(reader: &mut impl BufRead) -> std::io::Result<String> {
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        head.push_str(&std::mem::take(&mut line));
    }
    Ok(head)
}

fn answer_call(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = read_head(&mut reader)?;
    if head.starts_with("CONNECT lambda.invalid:80 ") {
        // The tunnel leads here too.
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        head = read_head(&mut reader)?;
    }
    let function = head
        .split("/functions/")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let function = function.unwrap_or_default().to_owned();
    let head = Answer::read(&head);
    let length = head.all("content-length").first().and_then(|it| it.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let status = match head.all("x-amz-invocation-type").first() {
        Some(&"Event") => "202 Accepted",
        Some(&"DryRun") => "204 No Content",
        _ => "200 OK",
    };
    if function == "slow" {
        // The gateway gives up before the answer, and closes the connection.
        let _end = reader.read(&mut [0; 1]);
        return Ok(());
    }
    let error = if function == "unhandled" {
        "X-Amz-Function-Error: Unhandled\r\n"
    } else {
        ""
    };
    let answer: String = match function.as_str() {
        _ if status != "200 OK" => String::new(),
        "bad-json" => "{\"foo\":\"bar\"".into(),
        "nothing" => String::new(),
        "base64" => r#"{"statusCode": 200, "body": "dGVzdA==", "isBase64Encoded": true}"#.into(),
        "not-base64" => r#"{"statusCode": 200, "body": "dGVzdA=", "isBase64Encoded": false}"#.into(),
        "illegal-base64" => r#"{"statusCode": 200, "body": "dGVzdA=", "isBase64Encoded": "abc"}"#.into(),
        "several-values" => r#"{"statusCode": 200, "headers": {"Age": "3600"}, "multiValueHeaders": {"Access-Control-Allow-Origin": ["site1.test", "site2.test"]}}"#.into(),
        "transfer-encoding" => r#"{"statusCode": 200, "headers": {"Transfer-Encoding": "chunked", "transfer-encoding": "chunked"}}"#.into(),
        "empty-list" => r#"{"statusCode": 200, "testbody": [], "isBase64Encoded": false}"#.into(),
        "several-types" => r#"{"statusCode": 200, "isBase64Encoded": true, "body": "eyJrZXkiOiAidmFsdWUiLCAia2V5MiI6IFtdfQ==", "headers": {}, "multiValueHeaders": {"Content-Type": ["application/json+test"]}}"#.into(),
        // The stand-in of the original's tests ends its lines.
        _ => format!("{}\n", String::from_utf8_lossy(&body)),
    };
    let length = match status {
        "204 No Content" => String::new(),
        _ => format!("Content-Length: {}\r\n", answer.len()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nx-amzn-RequestId: foo\r\nContent-Type: application/json\r\n{error}{length}Connection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{answer}").as_bytes())
}

#[test]
fn sessions_are_as_in_the_original() {
    let Some(directory) = Directory::start() else {
        return;
    };
    let ports = [("UPSTREAM", echo()), ("LDAP", directory.port)];
    play_all(include_str!("kong/session.json"), &ports);
}

#[test]
fn directories_are_asked_as_by_the_original() {
    let Some(directory) = Directory::start() else {
        return;
    };
    let ports = [("UPSTREAM", echo()), ("LDAP", directory.port)];
    play_all(include_str!("kong/ldap-auth.json"), &ports);
}

#[test]
fn functions_of_aws_are_called_as_by_the_original() {
    play_all(include_str!("kong/aws-lambda.json"), &[("LAMBDA", functions())]);
}

#[test]
fn groups_of_a_directory_reach_acl() {
    let Some(directory) = Directory::start() else {
        return;
    };
    let ports = [("UPSTREAM", echo()), ("LDAP", directory.port)];
    play_all(include_str!("kong/groups.json"), &ports);
}
