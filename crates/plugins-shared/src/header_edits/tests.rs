//! Header steps as messages show them.

use super::*;
use serde_json::{Value, json};
use weir_plugin::system_clock;

fn compile(steps: Value, variables: bool) -> Result<HeaderEdits, Vec<Diagnostic>> {
    let steps: Vec<HeaderEdit> = serde_json::from_value(steps).expect("valid");
    HeaderEdits::compile(&steps, variables, &DocPath::root().field("headers"))
}

#[test]
fn a_response_has_one_content_type() {
    for (side, expected) in [
        (HeaderTarget::Response, "text/x"),
        (HeaderTarget::Request, "a/b, text/x"),
    ] {
        let mut exchange = Exchange::new(system_clock, 1);
        side.headers(&mut exchange).append(b"Content-Type", b"a/b");
        let steps = json!([{"append": {"content-type": "text/x"}}, {"append": {"Content-Type": ""}}]);
        let steps = compile(steps, true).expect("valid");
        steps.apply(&mut exchange, side, &RegexMatch::default());
        let values = side.headers(&mut exchange).get_all(b"content-type");
        let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
        assert_eq!(values.join(", "), expected);
    }
}

#[test]
fn steps_work_in_order() {
    for (steps, variables, expected) in [
        (json!([]), true, "A: 1, B: 2, A: 3"),
        (json!([{"remove": ["a", "x"]}]), true, "B: 2"),
        (
            json!([{"rename": {"a": "C", "x": "y"}}]),
            true,
            "B: 2, C: 1, C: 3",
        ),
        (
            json!([{"set": {"a": "4", "b": "", "C": "5"}}]),
            true,
            "C: 5, a: 4",
        ),
        (json!([{"replace": {"a": "4", "x": "5"}}]), true, "B: 2, a: 4"),
        (
            json!([{"add": {"a": "4", "x": "5"}}]),
            true,
            "A: 1, B: 2, A: 3, x: 5",
        ),
        (
            json!([{"append": {"b": "4", "x": ""}}]),
            true,
            "A: 1, B: 2, A: 3, b: 4",
        ),
        (
            json!([{"remove": ["A"]}, {"append": {"A": "9"}}, {"set": {"A": "8"}}]),
            true,
            "B: 2, A: 8",
        ),
        (
            json!([{"set": {"C": "$http_b-$request_method"}}]),
            true,
            "A: 1, B: 2, A: 3, C: 2-GET",
        ),
        (json!([{"set": {"C": "$http_none"}}]), true, "A: 1, B: 2, A: 3"),
        (
            json!([{"add": {"Host": "a"}}, {"append": {"host": "b"}}]),
            true,
            "A: 1, B: 2, A: 3, host: b",
        ),
        (
            json!([{"remove": ["Content-Length", "connection"]}, {"set": {"TE": ""}}]),
            true,
            "A: 1, B: 2, A: 3",
        ),
        (
            json!([{"set": {"C": "$http_b"}}]),
            false,
            "A: 1, B: 2, A: 3, C: $http_b",
        ),
    ] {
        let mut exchange = Exchange::new(system_clock, 1);
        exchange.request.method = b"GET".to_vec();
        for (name, value) in [("A", "1"), ("B", "2"), ("A", "3")] {
            exchange.request.headers.append(name.as_bytes(), value.as_bytes());
        }
        let compiled = compile(steps.clone(), variables).expect("valid");
        compiled.apply(&mut exchange, HeaderTarget::Request, &RegexMatch::default());
        let headers = exchange.request.headers.iter().map(|header| {
            let (name, value) = (header.name, header.value);
            format!(
                "{}: {}",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value)
            )
        });
        assert_eq!(headers.collect::<Vec<_>>().join(", "), expected, "{steps}");
    }
}

#[test]
fn headers_of_the_gateway_are_not_written() {
    for name in OWN.into_iter().chain(["content_length", "transfer_encoding"]) {
        let name = name.to_uppercase();
        for step in ["set", "replace", "add", "append", "rename"] {
            let faults = compile(json!([{step: {name.as_str(): "x"}}]), true).expect_err("the gateway's");
            assert_eq!(faults[0].path.to_string(), format!("headers[0].{step}.{name}"));
            assert!(
                faults[0]
                    .message
                    .starts_with("the gateway itself writes this header")
            );
        }
        let faults = compile(json!([{"rename": {"x": name}}]), true).expect_err("the gateway's");
        assert_eq!(faults[0].path.to_string(), "headers[0].rename.x");
    }
    assert!(compile(json!([{"rename": {"x": "Host"}}]), true).is_err());
}

#[test]
fn what_cannot_stand_in_a_message_is_refused() {
    for (steps, place) in [
        (json!([{"remove": ["a", "b c"]}]), "headers[0].remove[1]"),
        (json!([{"rename": {"a": ""}}]), "headers[0].rename.a"),
        (json!([{"add": {}}, {"set": {"a": "x\r\ny"}}]), "headers[1].set.a"),
    ] {
        let faults = compile(steps, true).expect_err("invalid");
        assert_eq!(faults[0].path.to_string(), place);
    }
}
