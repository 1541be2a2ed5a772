//! Calls and their answers, as tables.

use super::*;
use serde_json::json;
use weir_plugins_testkit::{build, example, exchange, prepare};

/// What a call comes to: `pass` with the status that the service then answers, or the gateway's own status.
fn call(filter: &dyn Filter, line: &str, status: Option<u16>) -> Result<(), u16> {
    let mut exchange = exchange();
    prepare(&mut exchange, line, &[]);
    match filter.on_request(&mut exchange) {
        Outcome::Continue => {}
        Outcome::Refuse(refusal) => return Err(refusal.status),
        Outcome::Reply(reply) => return Err(reply.status),
        other => panic!("{other:?}"),
    }
    exchange.upstream = status.is_some().then(|| ([127, 0, 0, 1], 80).into());
    exchange.response.status = status.unwrap_or(500);
    filter.on_response(&mut exchange);
    Ok(())
}

#[test]
fn failures_open_and_successes_close() {
    let config = json!({
        "failures": 2, "failure_statuses": [500, 502], "successes": 2, "success_statuses": [200], "status": 599,
    });
    // `(answers of the service, or `None` if it is not called; whether the next call passes)`
    for (answers, passes) in [
        (vec![], true),
        (vec![Some(500)], true),
        (vec![Some(500), Some(502)], false),
        (vec![Some(500), None, None], true),
        (vec![Some(500), Some(404), Some(500)], false),
        (vec![Some(500), Some(200), Some(500)], false),
        (vec![Some(500), Some(200), Some(200), Some(500)], true),
        (vec![Some(503), Some(503)], true),
    ] {
        let filter = build(&CircuitBreaker::default(), &config).expect("valid");
        for answer in &answers {
            assert_eq!(call(&*filter, "GET /a", *answer), Ok(()), "{answers:?}");
        }
        let expected = if passes { Ok(()) } else { Err(599) };
        assert_eq!(call(&*filter, "GET /a", Some(200)), expected, "{answers:?}");
    }
}

#[test]
fn what_has_a_breaker_of_its_own() {
    for (by, other_path, other_query) in [("instance", Err(503), Err(503)), ("path", Ok(()), Err(503))] {
        let plugin = CircuitBreaker::default();
        let filter = build(&plugin, &json!({"failures": 1, "by": by})).expect("valid");
        assert_eq!(call(&*filter, "GET /a", Some(500)), Ok(()));
        assert_eq!(call(&*filter, "GET /a?x=1", Some(200)), other_query, "{by}");
        assert_eq!(call(&*filter, "GET /b", Some(404)), other_path, "{by}");
        let again = build(&plugin, &json!({"failures": 1, "by": by})).expect("valid");
        assert_eq!(
            call(&*again, "POST /a", None),
            Err(503),
            "a reload forgets nothing"
        );
    }
}

#[test]
fn answers_are_as_configured() {
    let config = json!({
        "failures": 1, "status": 429, "body": "{}", "content_type": "application/json",
        "headers": [["X-Client", "$remote_addr"], ["X-Plain", "1"]],
    });
    let filter = build(&CircuitBreaker::default(), &config).expect("valid");
    assert_eq!(call(&*filter, "GET /", Some(500)), Ok(()));
    match filter.on_request(&mut exchange()) {
        Outcome::Reply(reply) => {
            assert_eq!(
                (reply.status, reply.content_type.as_ref()),
                (429, "application/json")
            );
            assert_eq!(reply.body, b"{}");
            let headers = [("X-Client", "10.0.0.1"), ("X-Plain", "1")];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
            assert_eq!(reply.headers, headers);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn configurations_are_checked() {
    let plugin = CircuitBreaker::default();
    for config in [json!({}), example(include_str!("mod.rs"))] {
        assert!(build(&plugin, &config).is_ok(), "{config}");
    }
    for (config, place) in [
        (json!({"failures": 0}), "failures"),
        (json!({"successes": 0}), "successes"),
        (json!({"max_open_seconds": 0}), "max_open_seconds"),
        (json!({"failure_statuses": [500, 5]}), "failure_statuses[1]"),
        (json!({"status": 101}), "status"),
        (json!({"body": "", "headers": [["a b", ""]]}), "headers[0]"),
        (json!({"headers": [["a", ""]]}), "headers"),
        (json!({"body": "", "content_type": "a\nb"}), "content_type"),
        (json!({"nope": 1}), "nope"),
    ] {
        let found = build(&plugin, &config).err().expect("a fault");
        assert!(
            found.iter().any(|it| it.path.to_string() == place),
            "{config}: {found:?}"
        );
    }
}
