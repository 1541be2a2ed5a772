//! Which calls are exported.

use super::*;

const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const NOT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn config(sampling: Value) -> Value {
    json!({
        "sampling": sampling,
        "export": {"otlp_http": {"url": "http://127.0.0.1:9/v1/traces"}},
    })
}

#[test]
fn parents_and_ratios_decide() {
    for (sampling, parent, expected) in [
        (json!({"ratio": 1.0}), None, true),
        (json!({"ratio": 0.0}), None, false),
        (json!({"ratio": 0.0}), Some(SAMPLED), true),
        (json!({"ratio": 1.0}), Some(NOT), false),
        (json!({"ratio": 0.0, "parent": "limit"}), Some(SAMPLED), false),
        (json!({"ratio": 1.0, "parent": "limit"}), Some(SAMPLED), true),
        (json!({"ratio": 1.0, "parent": "limit"}), Some(NOT), false),
        (json!({"ratio": 0.0, "parent": "ignore"}), Some(SAMPLED), false),
        (json!({"ratio": 1.0, "parent": "ignore"}), Some(NOT), true),
    ] {
        let filter = filter(&config(sampling.clone()));
        let mut exchange = exchange();
        let headers: Vec<(&str, &str)> = parent.iter().map(|it| ("traceparent", *it)).collect();
        prepare(&mut exchange, "GET /", &headers);
        let entries = run(&*filter, &mut exchange, &record());
        assert_eq!(entries.len(), usize::from(expected), "{sampling} {parent:?}");
        let suffix = if expected { "-01" } else { "-00" };
        assert!(
            header(&exchange, "traceparent").ends_with(suffix),
            "{sampling} {parent:?}"
        );
        assert_eq!(exchange.trace.expect("a place").is_sampled, expected);
    }
}

#[test]
fn a_share_of_the_traces_is_exported() {
    let filter = filter(&config(json!({"ratio": 0.1})));
    let mut exchange = exchange();
    let mut sampled = 0;
    for _ in 0..10_000 {
        prepare(&mut exchange, "GET /", &[]);
        sampled += run(&*filter, &mut exchange, &record()).len();
    }
    assert!((850..1150).contains(&sampled), "{sampled}");
}

#[test]
fn all_gateways_decide_alike() {
    let sampler = Sampling {
        ratio: 0.5,
        parent: Parent::Follow,
    }
    .sampler();
    let extracted = propagation::Extracted::default();
    for (trace, expected) in [
        (1, true),
        ((1 << 62) - 1, true),
        (1 << 62, false),
        // The upper half and the highest bit of the lower one play no part.
        (7_u128 << 64 | 1, true),
        (1 << 63 | 1, true),
    ] {
        assert_eq!(sampler.samples(&extracted, trace), expected, "{trace:x}");
    }
}

#[test]
fn a_call_that_was_answered_before_has_its_place_too() {
    let filter = filter(&config(json!({"ratio": 0.0})));
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", &[("traceparent", SAMPLED)]);
    // Another filter has refused it; no request work was done here.
    exchange.response.status = 401;
    exchange.response.is_gateway = true;
    assert_eq!(account(&*filter, &mut exchange, &record()).len(), 1);
    let trace = exchange.trace.expect("a place");
    assert_eq!(trace.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
}

#[test]
fn two_instances_share_a_place_and_decide_for_themselves() {
    let all = filter(&config(json!({"ratio": 1.0})));
    let none = filter(&config(json!({"ratio": 0.0, "parent": "ignore"})));
    let mut exchange = exchange();
    all.on_request(&mut exchange);
    let first = exchange.trace.expect("a place");
    none.on_request(&mut exchange);
    let second = exchange.trace.expect("a place");
    assert_eq!((first.trace_id, first.span_id), (second.trace_id, second.span_id));
    assert!(second.is_sampled);
    assert_eq!(account(&*none, &mut exchange, &record()).len(), 0);
    assert_eq!(account(&*all, &mut exchange, &record()).len(), 1);
}
