//! Answers whose whole body several plugins work on, each after the one before it.

use crate::tools::program;
use crate::{gateway, head};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// The plugins, each with what it adds to a body.
fn plugins() -> [(&'static str, Value, Option<&'static str>); 4] {
    let schema = json!({"type": "object", "required": ["up"]});
    let response = json!({"description": "", "content": {"application/json": {"schema": schema}}});
    let spec = json!({"openapi": "3.0.0", "info": {"title": "a", "version": "1"},
        "paths": {"/a": {"get": {"responses": {"200": response}}}}});
    [
        ("jq", json!({"response_jq_program": ".jq = 1"}), Some("jq")),
        (
            "response-transformer",
            json!({"add": {"json": ["rt:1"]}}),
            Some("rt"),
        ),
        (
            "response-transformer-advanced",
            json!({"add": {"json": ["rta:1"]}}),
            Some("rta"),
        ),
        (
            "oas-validation",
            json!({"api_spec": spec.to_string(), "validate_response_body": true}),
            None,
        ),
    ]
}

/// Every set of at least two plugins, as the bits of a number.
fn sets() -> impl Iterator<Item = usize> {
    (1..1_usize << plugins().len()).filter(|set| set.count_ones() > 1)
}

#[test]
fn each_plugin_gets_the_body_that_the_one_before_it_made() {
    let Some(curl) = program("curl") else { return };
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let all = plugins();
    let chosen = |set: usize| {
        let numbered = all.iter().enumerate();
        numbered
            .filter(move |(at, _)| set & 1 << at != 0)
            .map(|(_, it)| it)
    };
    let routes: Vec<Value> = sets()
        .map(|set| {
            let plugins: Vec<Value> = chosen(set)
                .map(|(name, config, _)| json!({"name": name, "config": config}))
                .collect();
            json!({"name": format!("r{set}"), "hosts": [format!("r{set}.test")], "plugins": plugins})
        })
        .collect();
    let service = json!({"name": "s", "url": "http://UPSTREAM", "routes": routes});
    // JSON is YAML.
    let file = json!({"_format_version": "3.0", "services": [service]}).to_string();
    let (_folder, weir) = gateway(&file, &upstream);
    for set in sets() {
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let client = Command::new(&curl)
                .args(["-sS", "-i", version, "--max-time", "30"])
                .args(["-H", &format!("Host: r{set}.test")])
                .arg(format!("http://{}/a", weir.proxy()))
                .stdout(Stdio::piped())
                .spawn()
                .expect("curl runs");
            let (mut server, _) = upstream.accept().expect("a call");
            head(&server);
            server
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{\"up\":1}")
                .expect("sent");
            let output = client.wait_with_output().expect("curl ends");
            let answer = String::from_utf8(output.stdout).expect("text");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            let mut wanted = json!({"up": 1});
            for (name, _, added) in chosen(set) {
                if let Some(added) = added {
                    // What `add` adds is a text.
                    wanted[added] = if *name == "jq" { json!(1) } else { json!("1") };
                }
            }
            let names: Vec<&str> = chosen(set).map(|(name, ..)| *name).collect();
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            assert!(head.contains(" 200"), "{names:?} {version}: {answer}");
            assert_eq!(body, wanted, "{names:?} {version}: {answer}");
        }
    }
}
