//! Tests of `safeline-waf` from a user's view, with a detector instead of the engine's network.

use super::t1k::DetectorResponse;
use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome, ProtocolDriver, Received, Step};
use weir_plugins_testkit::*;

/// A good call, and an attack, as the detector says it.
const PASSED: &[u8] = b"\xc1\x01\0\0\0.";
const BLOCKED: &[u8] =
    b"\x41\x01\0\0\0?\x02\x03\0\0\x00405\x23\x0b\0\0\0X-Event:a1\n\xa4\x15\0\0\0<!-- event_id: a1 -->";

fn filter(change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
    let mut config = Config {
        nodes: ["one", "two"]
            .map(|host| Node {
                host: host.to_owned(),
                port: 8000,
            })
            .into(),
        header: Some("X-Waf".to_owned()),
        debug_headers: true,
        ..Config::default()
    };
    change(&mut config);
    build(&SafelineWaf, &serde_json::to_value(config).expect("JSON")).expect("valid")
}

/// What the detector is asked, and what it makes of the answer.
fn converse(dialogue: &mut dyn ProtocolDriver, answer: &[u8]) -> (Vec<u8>, Step) {
    let Step::Write(question) = dialogue.begin(true) else {
        panic!("a question comes first");
    };
    (question, dialogue.next(&mut Received::new(answer)))
}

/// How a call ends, and what the detector was asked. Without an answer, it is down.
fn run(filter: &Arc<dyn Filter>, call: &mut Exchange, answer: Option<&[u8]>) -> (Outcome, Option<Vec<u8>>) {
    let mut asked = None;
    loop {
        match filter.on_request(call) {
            Outcome::Converse(mut conversation) => {
                let (question, step) = converse(conversation.dialogue.as_mut(), answer.unwrap_or_default());
                asked = Some(question);
                let is_done = answer.is_some() && step == Step::Done;
                call.filter_state
                    .put_answer(is_done.then(|| conversation.dialogue.finish()));
            }
            outcome => return (outcome, asked),
        }
    }
}

fn response_lines(call: &Exchange) -> Vec<String> {
    let mut lines = lines(&call.response_headers);
    lines.retain(|line| !line.starts_with("X-Waf-TIME: "));
    lines
}

#[test]
fn the_mode_and_the_answer_decide() {
    let reject = ["X-Waf: yes", "X-Waf-STATUS: 405", "X-Waf-ACTION: reject"];
    let passed = ["X-Waf: yes", "X-Waf-STATUS: 200", "X-Waf-ACTION: pass"];
    let error = "X-Waf-ERROR: the detector gives no answer that can be used";
    for (mode, answer, expected, headers) in [
        (Mode::Block, Some(PASSED), "continue", passed.to_vec()),
        (
            Mode::Block,
            Some(BLOCKED),
            "reply 405",
            [&reject[..1], &["X-Event: a1"], &reject[1..]].concat(),
        ),
        (
            Mode::Block,
            None,
            "plugin_failed 500",
            vec!["X-Waf: waf-err", error],
        ),
        (
            Mode::Block,
            Some(b"HTTP/1.1 200 OK\r\n"),
            "plugin_failed 500",
            vec!["X-Waf: waf-err", error],
        ),
        (Mode::Monitor, Some(PASSED), "continue", passed.to_vec()),
        (Mode::Monitor, Some(BLOCKED), "continue", reject.to_vec()),
        (Mode::Monitor, None, "continue", vec!["X-Waf: waf-err", error]),
        (Mode::Off, Some(BLOCKED), "continue", vec!["X-Waf: off"]),
    ] {
        let filter = filter(|config| config.mode = mode);
        let mut call = exchange();
        let (outcome, asked) = run(&filter, &mut call, answer);
        assert_eq!(word(&outcome), expected, "{mode:?} {answer:?}");
        assert_eq!(asked.is_some(), mode != Mode::Off, "{mode:?}");
        let mut found = response_lines(&call);
        assert_eq!(found.remove(0), "X-Waf-SERVER: one");
        assert_eq!(found, headers, "{mode:?} {answer:?}");
        if let Outcome::Reply(reply) = outcome {
            let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
            assert_eq!((&body["code"], &body["event_id"]), (&json!(405), &json!("a1")));
            assert_eq!(reply.content_type, "application/json");
        }
    }
}

#[test]
fn without_a_detector_calls_are_refused_and_without_a_header_nothing_is_told() {
    let nothing = filter(|config| config.nodes.clear());
    let mut call = exchange();
    assert_eq!(word(&nothing.on_request(&mut call)), "plugin_failed 500");
    assert_eq!(
        response_lines(&call),
        ["X-Waf: err", "X-Waf-ERROR: missing metadata"]
    );
    let silent = filter(|config| config.header = None);
    let mut call = exchange();
    assert_eq!(word(&run(&silent, &mut call, Some(PASSED)).0), "continue");
    assert!(call.response_headers.is_empty());
}

#[test]
fn calls_that_no_condition_holds_for_are_not_checked() {
    let conditions = [yaml("[http_waf, ==, \"true\"]"), yaml("[arg_a, ==, \"1\"]")];
    let filter = filter(|config| {
        config.matches = conditions
            .map(|it| serde_json::from_value(it).expect("a condition"))
            .into();
    });
    for (line, header, is_checked) in [
        ("GET /", "false", false),
        ("GET /", "true", true),
        ("GET /?a=1", "", true),
        ("GET /?a=2", "", false),
    ] {
        let mut call = exchange();
        prepare(&mut call, line, &[("waf", header)]);
        let (_, asked) = run(&filter, &mut call, Some(PASSED));
        assert_eq!(asked.is_some(), is_checked, "{line} {header}");
        let expected = if is_checked { "X-Waf: yes" } else { "X-Waf: no" };
        assert!(
            response_lines(&call).iter().any(|line| line == expected),
            "{line} {header}"
        );
    }
}

#[test]
fn detectors_are_asked_in_turn() {
    let filter = filter(|_| ());
    let servers: Vec<String> = (0..3)
        .map(|_| {
            let mut call = exchange();
            run(&filter, &mut call, Some(PASSED));
            response_lines(&call).remove(0)
        })
        .collect();
    assert_eq!(
        servers,
        ["X-Waf-SERVER: one", "X-Waf-SERVER: two", "X-Waf-SERVER: one"]
    );
}

#[test]
fn a_detector_sees_the_call_as_it_came() {
    for (body, start, max, real, length, expected) in [
        (
            None,
            None,
            4,
            true,
            None,
            vec![
                "GET /a%20b?q=1 HTTP/1.1\r\nHost: api.example\r\nX-A: 1\r\n\r\n",
                "\x13203.0.113.9\n",
            ],
        ),
        (
            Some("abc"),
            None,
            4,
            false,
            Some(3),
            vec![
                "\r\nContent-Length: 3\r\n\r\n\x02\x03\0\0\0abc\x03",
                "\x1310.0.0.1\n",
            ],
        ),
        (
            Some("abcdef"),
            None,
            4,
            true,
            None,
            vec!["\r\nTransfer-Encoding: chunked\r\n\r\n\x02\x04\0\0\0abcd\x03"],
        ),
        (
            None,
            Some("abcd"),
            4,
            true,
            Some(6),
            vec!["\r\nContent-Length: 6\r\n\r\n\x02\x04\0\0\0abcd\x03"],
        ),
        (
            None,
            None,
            0,
            true,
            Some(6),
            vec!["\r\nContent-Length: 6\r\n\r\n\x03", "\n\x16http\n\x17weir\n\x18"],
        ),
    ] {
        let filter = filter(|config| (config.max_body_bytes, config.real_client_ip) = (max, real));
        let mut call = exchange();
        prepare(&mut call, "GET /a%20b?q=1", &[("X-A", "1")]);
        let request = &mut call.request;
        request.client = "203.0.113.9".parse().expect("an address");
        (request.content_length, request.has_body) = (length, body.is_some() || length.is_some());
        if request.has_body && max > 0 {
            let outcome = filter.on_request(&mut call);
            assert!(
                matches!(outcome, Outcome::NeedBodyStart { max_bytes: 4 }),
                "{outcome:?}"
            );
            call.request.body = body.map(|body| body.as_bytes().to_vec());
            call.request.body_start = start.map(|start| start.as_bytes().to_vec());
        }
        let (outcome, asked) = run(&filter, &mut call, Some(PASSED));
        assert_eq!(word(&outcome), "continue");
        let asked = asked.expect("a question");
        let asked = String::from_utf8_lossy(&asked);
        for part in expected {
            assert!(asked.contains(part), "{part:?} in {asked:?}");
        }
    }
}

#[test]
fn answers_may_come_in_pieces() {
    let filter = filter(|_| ());
    let Outcome::Converse(mut conversation) = filter.on_request(&mut exchange()) else {
        panic!("the detector is asked");
    };
    assert_eq!((conversation.host.as_str(), conversation.port), ("one", 8000));
    let (_, step) = converse(conversation.dialogue.as_mut(), &BLOCKED[..9]);
    assert_eq!(step, Step::Read);
    let mut received = Received::new(BLOCKED);
    assert_eq!(conversation.dialogue.next(&mut received), Step::Done);
    assert_eq!(received.consumed(), BLOCKED.len());
    let answer = conversation
        .dialogue
        .finish()
        .downcast::<Option<DetectorResponse>>();
    assert!(answer.is_ok_and(|answer| answer.is_some()));
}

#[test]
fn faults_are_found_where_they_are() {
    let node = json!({"host": "a"});
    for (config, places) in [
        (
            json!({"nodes": [{"host": ""}, {"host": "a", "port": 0}]}),
            vec!["nodes[0].host", "nodes[1].port"],
        ),
        (json!({"nodes": vec![node.clone(); MAX_NODES + 1]}), vec!["nodes"]),
        (
            json!({"nodes": [node], "header": "a b", "timeout_ms": 0}),
            vec!["header", "timeout_ms"],
        ),
        (
            json!({"timeout_ms": 60_001, "max_body_bytes": MAX_BODY + 1}),
            vec!["max_body_bytes", "timeout_ms"],
        ),
        (json!({"matches": [["uri", "~~", "("]]}), vec!["matches[0]"]),
        (json!({"mode": "warn"}), vec!["mode"]),
        (example(include_str!("mod.rs")), vec![]),
    ] {
        assert_eq!(refused_at(&SafelineWaf, &config), places, "{config}");
    }
}
