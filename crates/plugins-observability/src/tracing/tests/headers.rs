//! Trace headers: what is read, and what is sent to upstreams.

use super::*;

const T: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const LOW: &str = "a3ce929d0e0e4736";
const S: &str = "00f067aa0ba902b7";
const P: &str = "0000000000000abc";

/// The ids of a call: trace, parent of the gateway's span, and the span that upstreams receive.
pub fn ids(exchange: &Exchange) -> (String, String, String) {
    let trace = exchange.trace.expect("a place");
    (
        format!("{:032x}", trace.trace_id),
        format!("{:016x}", trace.parent_id),
        format!("{:016x}", trace.upstream_id),
    )
}

/// The header of a client, its format, and its ids and decision; an empty trace means that nothing is read.
type HeaderCase = (
    &'static str,
    Vec<(&'static str, String)>,
    &'static str,
    &'static str,
    Option<bool>,
);

fn w3c_readings() -> Vec<HeaderCase> {
    let w3c = |flags: &str| vec![("traceparent", format!("00-{T}-{S}-{flags}"))];
    let bad = |text: String| ("w3c", vec![("traceparent", text)], "", "", None);
    vec![
        ("w3c", w3c("01"), T, S, Some(true)),
        ("w3c", w3c("00"), T, S, Some(false)),
        ("w3c", w3c("03"), T, S, Some(true)),
        (
            "w3c",
            vec![("traceparent", format!("cc-{T}-{S}-01-later"))],
            T,
            S,
            Some(true),
        ),
        bad(format!("00-{T}-{S}-01-more")),
        bad(format!("ff-{T}-{S}-01")),
        bad(format!("00-{}-{S}-01", T.to_uppercase())),
        bad(format!("00-{}-{S}-01", "0".repeat(32))),
        bad(format!("00-{T}-{}-01", "0".repeat(16))),
        bad(format!("00-{T}-{S}-0g")),
        bad(format!("00_{T}-{S}-01")),
        bad(String::new()),
        ("w3c", [w3c("01"), w3c("01")].concat(), "", "", None),
    ]
}

fn b3_readings() -> Vec<HeaderCase> {
    vec![
        (
            "b3",
            vec![
                ("X-B3-TraceId", T.into()),
                ("X-B3-SpanId", S.into()),
                ("X-B3-Sampled", "1".into()),
            ],
            T,
            S,
            Some(true),
        ),
        (
            "b3",
            vec![
                ("x-b3-traceid", LOW.into()),
                ("x-b3-spanid", S.into()),
                ("x-b3-sampled", "false".into()),
            ],
            LOW,
            S,
            Some(false),
        ),
        ("b3", vec![("x-b3-flags", "1".into())], "", "", Some(true)),
        ("b3", vec![("x-b3-sampled", "0".into())], "", "", Some(false)),
        (
            "b3",
            vec![
                ("x-b3-traceid", "xyz".into()),
                ("x-b3-spanid", S.into()),
                ("x-b3-sampled", "1".into()),
            ],
            "",
            "",
            Some(true),
        ),
        ("b3", vec![("b3", format!("{T}-{S}-1-{P}"))], T, S, Some(true)),
        ("b3", vec![("b3", format!("{T}-{S}"))], T, S, None),
        ("b3", vec![("b3", format!("{LOW}-{S}-d"))], LOW, S, Some(true)),
        ("b3", vec![("b3", "0".into())], "", "", Some(false)),
        ("b3", vec![("b3", format!("{T}-{S}-1-short"))], "", "", None),
        (
            "b3",
            vec![("tracestate", format!("b3={T}-{S}-1"))],
            T,
            S,
            Some(true),
        ),
        ("b3", vec![("tracestate", "vendor=1".into())], "", "", None),
    ]
}

fn other_readings() -> Vec<HeaderCase> {
    vec![
        (
            "jaeger",
            vec![("uber-trace-id", format!("{T}:{S}:0:1"))],
            T,
            S,
            Some(true),
        ),
        (
            "jaeger",
            vec![("uber-trace-id", "abc:def:0:0".into())],
            "abc",
            "def",
            Some(false),
        ),
        (
            "jaeger",
            vec![("uber-trace-id", format!("{T}:0:0:1"))],
            "",
            "",
            None,
        ),
        (
            "jaeger",
            vec![("uber-trace-id", format!("{T}:{S}:0"))],
            "",
            "",
            None,
        ),
        (
            "ot",
            vec![
                ("ot-tracer-traceid", LOW.into()),
                ("ot-tracer-spanid", S.into()),
                ("ot-tracer-sampled", "true".into()),
            ],
            LOW,
            S,
            Some(true),
        ),
        ("ot", vec![("ot-tracer-traceid", "12".into())], "", "", None),
        (
            "aws",
            vec![(
                "x-amzn-trace-id",
                format!("Root=1-{}-{}; Parent={S};Sampled=1;Lineage=x", &T[..8], &T[8..]),
            )],
            T,
            S,
            Some(true),
        ),
        (
            "aws",
            vec![("x-amzn-trace-id", "Root=2-0-0".into())],
            "",
            "",
            None,
        ),
        (
            "gcp",
            vec![("x-cloud-trace-context", format!("{T}/255;o=1"))],
            T,
            "ff",
            Some(true),
        ),
        (
            "gcp",
            vec![("x-cloud-trace-context", format!("{T}/255"))],
            T,
            "ff",
            Some(false),
        ),
        (
            "gcp",
            vec![("x-cloud-trace-context", format!("{T}/x"))],
            "",
            "",
            None,
        ),
        (
            "datadog",
            vec![
                ("x-datadog-trace-id", "255".into()),
                ("x-datadog-parent-id", "16".into()),
                ("x-datadog-sampling-priority", "2".into()),
            ],
            "ff",
            "10",
            Some(true),
        ),
        ("datadog", vec![("x-datadog-trace-id", "-1".into())], "", "", None),
    ]
}

#[test]
fn what_clients_send_is_read() {
    for (format, headers, trace, span, sampled) in [w3c_readings(), b3_readings(), other_readings()].concat()
    {
        let filter =
            filter(&json!({"extract": [format], "spans": {"attempts": null}, "sampling": {"ratio": 0}}));
        let mut exchange = exchange();
        let lines: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        prepare(&mut exchange, "GET /", &lines);
        filter.on_request(&mut exchange);
        let (found, parent, _) = ids(&exchange);
        if trace.is_empty() {
            assert!(!found.starts_with("00000000"), "{headers:?}: a trace of its own");
            assert_eq!(parent, "0".repeat(16), "{headers:?}");
        } else {
            assert_eq!(found, format!("{trace:0>32}"), "{headers:?}");
            assert_eq!(parent, format!("{span:0>16}"), "{headers:?}");
        }
        // Upstreams get the client's decision.
        let out = Format::extract(
            serde_json::from_value(json!(format)).expect("a format"),
            &exchange.request.headers,
        );
        let expected = sampled.unwrap_or(false);
        assert!(out.is_none_or(|it| it.sampled == Some(expected)), "{headers:?}");
    }
}

#[test]
fn upstreams_get_each_format() {
    let table = [
        ("w3c", vec![("traceparent", "00-$T-$U-01")]),
        (
            "b3",
            vec![
                ("x-b3-traceid", "$T"),
                ("x-b3-spanid", "$U"),
                ("x-b3-parentspanid", "$O"),
                ("x-b3-sampled", "1"),
            ],
        ),
        ("b3-single", vec![("b3", "$T-$U-1-$O")]),
        ("jaeger", vec![("uber-trace-id", "$T:$U:$O:01")]),
        (
            "ot",
            vec![
                ("ot-tracer-traceid", "$T"),
                ("ot-tracer-spanid", "$U"),
                ("ot-tracer-sampled", "1"),
            ],
        ),
        (
            "aws",
            vec![("x-amzn-trace-id", "Root=1-$A-$B;Parent=$U;Sampled=1")],
        ),
        ("gcp", vec![("x-cloud-trace-context", "$T/$D;o=1")]),
        (
            "datadog",
            vec![
                ("x-datadog-trace-id", "$L"),
                ("x-datadog-parent-id", "$D"),
                ("x-datadog-sampling-priority", "1"),
            ],
        ),
    ];
    for (format, expected) in table {
        let filter = filter(&json!({"extract": ["w3c"], "inject": [format]}));
        let mut exchange = exchange();
        let traceparent = format!("00-{T}-{S}-01");
        prepare(&mut exchange, "GET /", &[("traceparent", &traceparent)]);
        filter.on_request(&mut exchange);
        let trace = exchange.trace.expect("a place");
        assert_ne!(trace.upstream_id, trace.span_id);
        for (name, template) in expected {
            let value = template
                .replace("$T", T)
                .replace("$U", &format!("{:016x}", trace.upstream_id))
                .replace("$O", &format!("{:016x}", trace.span_id))
                .replace("$A", &T[..8])
                .replace("$B", &T[8..])
                .replace("$D", &trace.upstream_id.to_string())
                .replace("$L", &(trace.trace_id as u64).to_string());
            assert_eq!(header(&exchange, name), value, "{format} {name}");
        }
    }
}

#[test]
fn a_client_that_debugs_has_the_decision_forwarded_too() {
    let filter = filter(&json!({"extract": ["b3"], "inject": ["b3"], "sampling": {"ratio": 0}}));
    for (sent, expected) in [
        (vec![("x-b3-flags", "1")], ["1", "1"]),
        (vec![("x-b3-flags", "1"), ("x-b3-sampled", "0")], ["1", "1"]),
        (vec![("b3", "d")], ["1", "1"]),
        (vec![("x-b3-sampled", "1")], ["", "1"]),
        (vec![], ["", "0"]),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &sent);
        filter.on_request(&mut exchange);
        let values = ["x-b3-flags", "x-b3-sampled"].map(|name| header(&exchange, name));
        assert_eq!(values, expected, "{sent:?}");
    }
}

#[test]
fn the_clients_form_is_preserved_and_others_stand_beside() {
    let b3 = format!("{LOW}-{S}-d");
    let w3c = format!("00-{T}-{S}-00");
    for (config, sent, expected, absent) in [
        // In the client's own form, with an id as long as its own.
        (
            json!({}),
            vec![("b3", b3.as_str())],
            vec![("b3", format!("{LOW}-$U-d-$O"))],
            vec!["traceparent"],
        ),
        (
            json!({"inject": ["preserve", "w3c"]}),
            vec![("b3", b3.as_str())],
            vec![
                ("b3", format!("{LOW}-$U-d-$O")),
                ("traceparent", format!("00-{LOW:0>32}-$U-01")),
            ],
            vec![],
        ),
        // The default format if the client sent none; a state without its parent is not forwarded.
        (
            json!({"default_format": "jaeger"}),
            vec![],
            vec![("uber-trace-id", "$N:$U:$O:01".to_owned())],
            vec!["traceparent"],
        ),
        (
            json!({"extract": []}),
            vec![("traceparent", w3c.as_str()), ("tracestate", "a=1")],
            vec![("traceparent", "00-$N-$U-01".to_owned())],
            vec!["tracestate"],
        ),
        (
            json!({}),
            vec![("traceparent", w3c.as_str()), ("tracestate", "a=1")],
            vec![
                ("traceparent", format!("00-{T}-$U-00")),
                ("tracestate", "a=1".to_owned()),
            ],
            vec![],
        ),
        (
            json!({"inject": ["ot"], "clear": ["traceparent", "X-Own"]}),
            vec![("traceparent", w3c.as_str()), ("x-own", "1")],
            vec![
                ("ot-tracer-traceid", T.to_owned()),
                ("ot-tracer-sampled", "0".to_owned()),
            ],
            vec!["traceparent", "x-own"],
        ),
        (json!({"inject": []}), vec![], vec![], vec!["traceparent", "b3"]),
    ] {
        let filter = filter(&config);
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &sent);
        filter.on_request(&mut exchange);
        let trace = exchange.trace.expect("a place");
        for (name, template) in expected {
            let value = template
                .replace("$N", &format!("{:032x}", trace.trace_id))
                .replace("$U", &format!("{:016x}", trace.upstream_id))
                .replace("$O", &format!("{:016x}", trace.span_id));
            assert_eq!(header(&exchange, name), value, "{config} {name}");
        }
        for name in absent {
            assert_eq!(header(&exchange, name), "", "{config} {name}");
        }
    }
}
