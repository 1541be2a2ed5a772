//! The index finds what a search through all matches, one by one, finds.

mod common;
mod one_by_one;

use common::{call, routes_of, snapshot};
use one_by_one::find_one_by_one;
use proptest::prelude::*;
use serde_json::{Value, json};
use weir_model::RouteMatch;

fn segment() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "abc", "1", "12", "-"]).prop_map(str::to_owned)
}

fn literal_path() -> impl Strategy<Value = String> {
    (prop::collection::vec(segment(), 0..4), any::<bool>()).prop_map(|(segments, slash)| {
        let end = if slash || segments.is_empty() { "/" } else { "" };
        let path: String = segments.iter().map(|it| format!("/{it}")).collect();
        path + end
    })
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        2 => segment(),
        2 => Just("{x}".to_owned()),
    ];
    let regex_piece = prop_oneof![
        segment(),
        prop::sample::select(vec![
            r"([^/]+)",
            r"\d+",
            "[^/]*",
            "(a|b)",
            "a?",
            "ab?c?",
            "(b/)?a",
            ".*",
            r"\w+-?",
            "(?:a|/b)+",
            "(?i)A",
        ])
        .prop_map(str::to_owned),
    ];
    let join = |pieces: Vec<String>| pieces.iter().map(|it| format!("/{it}")).collect::<String>();
    prop_oneof![
        Just("*".to_owned()),
        literal_path().prop_map(|path| format!("={path}")),
        literal_path().prop_map(|path| format!("{path}*")),
        literal_path(),
        (prop::collection::vec(piece, 1..5), any::<bool>()).prop_map(move |(pieces, rest)| {
            let end = if rest { "/{rest*}" } else { "" };
            join(pieces) + end
        }),
        (
            prop::collection::vec(regex_piece, 1..4),
            prop::sample::select(vec!["", "$", "/?$", "(/|$)"])
        )
            .prop_map(move |(pieces, end)| format!("~^{}{end}", join(pieces))),
    ]
}

fn host() -> impl Strategy<Value = String> {
    let hosts = vec!["a.com", "b.a.com", "c.b.a.com", "b.org", "a.com:81", "b.a.com:80"];
    prop::sample::select(hosts).prop_map(str::to_owned)
}

fn route_match() -> impl Strategy<Value = Value> {
    let host_pattern = prop_oneof![
        host(),
        prop::sample::select(vec![
            "*.a.com",
            "*.com",
            "*.b.a.com",
            "b.*",
            "b.a.*",
            "*.a.com:81",
            "*"
        ])
        .prop_map(str::to_owned),
    ];
    (
        prop::collection::vec(host_pattern, 0..3),
        pattern(),
        prop::sample::select(vec![vec![], vec!["GET"], vec!["POST", "PURGE"]]),
        prop::sample::select(vec![None, Some("1"), Some("2")]),
        prop::option::of(0u64..4),
    )
        .prop_map(|(hosts, path, methods, header, precedence)| {
            let headers: Vec<Value> = header.map(|it| json!({"name": "x", "values": [it]})).into_iter().collect();
            json!({
                "hosts": hosts, "path": path, "methods": methods, "headers": headers, "precedence": precedence,
            })
        })
}

fn call_text() -> impl Strategy<Value = String> {
    (
        prop::sample::select(vec!["GET", "POST", "PURGE", "COPY"]),
        host(),
        literal_path(),
        prop::sample::select(vec!["", " | x: 1", " | x: 2"]),
    )
        .prop_map(|(method, host, path, header)| format!("{method} {host}{path}{header}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn index_agrees_with_a_search_one_by_one(
        matches in prop::collection::vec(route_match(), 1..24),
        calls in prop::collection::vec(call_text(), 1..24),
    ) {
        let snapshot = snapshot(routes_of(&matches));
        let parsed: Vec<RouteMatch> = matches
            .iter()
            .map(|it| serde_json::from_value(it.clone()).expect("valid"))
            .collect();
        for text in calls {
            let mut exchange = call(&text);
            let wanted = find_one_by_one(&parsed, &exchange.request);
            let found = snapshot.tables[0].find(&mut exchange).map(|it| (it.route, it.matched_len));
            prop_assert_eq!(found, wanted, "{}", text);
            let explained = snapshot.tables[0].explain(&mut exchange);
            let winner = explained.first().filter(|it| it.verdict == weir_snapshot::Verdict::Wins);
            prop_assert_eq!(winner.map(|it| it.route), wanted.map(|it| it.0), "{}", text);
        }
    }
}
