//! What the tests of this plugin have in common: calls whose servers answer as a table says.

mod bounds;
mod failures;
mod refusals;
mod requests;
mod responses;

use super::*;
use serde_json::json;
use weir_plugin::{Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

/// A response of a server: status, `Content-Type` and body; `None`: there is none.
type Answer<'a> = Option<(u16, &'a str, &'a str)>;

fn filter(nodes: Value) -> Arc<dyn Filter> {
    let config = json!({"nodes": nodes});
    build(&Orchestration::default(), &config).unwrap_or_else(|faults| panic!("{config}: {faults:?}"))
}

/// Goes on with a call until it needs no server. Returns the requests and the outcome.
fn run(
    exchange: &mut Exchange,
    answers: &[Answer<'_>],
    work: impl Fn(&mut Exchange) -> Outcome,
) -> (Vec<String>, Outcome) {
    let (mut asked, mut answers) = (Vec::new(), answers.iter());
    loop {
        match work(exchange) {
            Outcome::Subrequest(subrequest) => {
                asked.push(String::from_utf8(subrequest.message.clone()).expect("text"));
                let answer = answers
                    .next()
                    .unwrap_or_else(|| panic!("no answer for {asked:?}"));
                exchange.subrequest_response =
                    Some(answer.map(|(status, content_type, body)| SubrequestResponse {
                        status,
                        headers: header_fields(&[("Content-Type", content_type), ("X-Kind", "good")]),
                        body: body.as_bytes().to_vec(),
                    }));
            }
            other => {
                assert_eq!(answers.next(), None, "all is asked");
                return (asked, other);
            }
        }
    }
}

fn call(line: &str, content_type: &str, body: Option<&str>) -> Exchange {
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        line,
        &[("X-User", "alice"), ("Content-Type", content_type)],
    );
    exchange.request.body = body.map(|body| body.as_bytes().to_vec());
    exchange.request.has_body = body.is_some();
    exchange
}

fn requested(filter: &dyn Filter, exchange: &mut Exchange, answers: &[Answer<'_>]) -> (Vec<String>, Outcome) {
    run(exchange, answers, |exchange| filter.on_request(exchange))
}

/// Has the service answer; the outcome after the filter's work on it.
fn answered(
    filter: &dyn Filter,
    exchange: &mut Exchange,
    (status, content_type, body): (u16, &str, &str),
    answers: &[Answer<'_>],
) -> (Vec<String>, Outcome) {
    exchange.response.status = status;
    for (name, value) in [
        ("Content-Type", content_type),
        ("ETag", "\"a\""),
        ("X-Secret", "s"),
    ] {
        exchange
            .response
            .headers
            .append(name.as_bytes(), value.as_bytes());
    }
    filter.on_response(exchange);
    if !exchange.response.waits {
        return (Vec::new(), Outcome::Continue);
    }
    let holds = exchange.response.hold.is_some();
    exchange.response.replaced_body = holds.then(|| body.as_bytes().to_vec());
    run(exchange, answers, |exchange| filter.on_waiting_response(exchange))
}

/// A reply as status, type, headers and body.
fn reply(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(reply) => {
            let headers: Vec<String> = (reply.headers.iter())
                .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
                .collect();
            let body = String::from_utf8_lossy(&reply.body);
            format!("{} [{}] {headers:?} {body}", reply.status, reply.content_type)
        }
        other => word(other),
    }
}

#[test]
fn the_example_of_the_header_is_good() {
    build(&Orchestration::default(), &example(include_str!("../mod.rs"))).expect("valid");
}
