//! The index finds what a search through all matches, one by one, finds.

mod common;

use common::{call, routes_of, snapshot};
use proptest::prelude::*;
use regex::bytes::RegexBuilder;
use serde_json::{Value, json};
use weir_model::{HostPattern, PathPattern, RouteMatch, TemplatePart};
use weir_plugin::{Exchange, Request};

/// How many bytes of the path a match covers, if it takes the call: its definition, spelled out.
fn covers(it: &RouteMatch, host: &HostPattern, request: &Request) -> Option<usize> {
    let header_holds = |name: &str, values: &[String]| {
        let mut found = request.headers.get_all(name.as_bytes());
        found.any(|value| values.iter().any(|it| it.as_bytes() == value))
    };
    let holds = host_holds(host, request)
        && (it.methods.is_empty() || it.methods.iter().any(|it| it.as_bytes() == request.method))
        && it.headers.iter().all(|it| header_holds(&it.name, &it.values));
    if !holds {
        return None;
    }
    let path = std::str::from_utf8(&request.path).expect("a text");
    match &it.path {
        PathPattern::Any => Some(0),
        PathPattern::Exact(exact) => (path == exact).then_some(path.len()),
        PathPattern::Prefix(prefix) => path.starts_with(prefix).then_some(prefix.len()),
        PathPattern::Segments(root) => {
            let rest = path.strip_prefix(root.as_str())?;
            (rest.is_empty() || rest.starts_with('/') || root.ends_with('/')).then_some(root.len())
        }
        PathPattern::Template(parts) => template(parts, path),
        PathPattern::Regex(regex) => {
            let regex = RegexBuilder::new(regex).unicode(false).build().expect("valid");
            let found = regex.find(path.as_bytes())?;
            // The generated expressions match at the start or not at all.
            (found.start() == 0).then_some(found.end())
        }
    }
}

fn template(parts: &[TemplatePart], path: &str) -> Option<usize> {
    let mut rest = path;
    for part in parts {
        match part {
            TemplatePart::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
            TemplatePart::Parameter(_) => {
                let end = rest.find('/').unwrap_or(rest.len());
                rest = (end > 0).then(|| &rest[end..])?;
            }
            TemplatePart::Rest(_) => return Some(path.len() - rest.len()),
        }
    }
    rest.is_empty().then_some(path.len())
}

fn host_holds(pattern: &HostPattern, request: &Request) -> bool {
    let host = std::str::from_utf8(&request.host).expect("a text");
    let port_holds = |port: &Option<u16>| port.is_none_or(|port| port == request.host_port.unwrap_or(80));
    match pattern {
        HostPattern::Any => true,
        HostPattern::Exact { host: exact, port } => host == exact && port_holds(port),
        HostPattern::Suffix { suffix, port } => {
            host.len() > suffix.len() && host.ends_with(suffix.as_str()) && port_holds(port)
        }
        HostPattern::Prefix { prefix, port } => {
            host.len() > prefix.len() && host.starts_with(prefix.as_str()) && port_holds(port)
        }
    }
}

fn find_one_by_one(matches: &[RouteMatch], exchange: &Exchange) -> Option<(u32, usize)> {
    let mut best: Option<(u64, u32, usize)> = None;
    for (index, it) in matches.iter().enumerate() {
        let hosts = if it.hosts.is_empty() {
            &[HostPattern::Any]
        } else {
            it.hosts.as_slice()
        };
        for host in hosts {
            let Some(length) = covers(it, host, &exchange.request) else {
                continue;
            };
            let precedence = it.precedence.unwrap_or_else(|| it.default_precedence(host));
            if best.is_none_or(|(known, ..)| precedence > known) {
                best = Some((precedence, index as u32, length));
            }
        }
    }
    best.map(|(_, index, length)| (index, length))
}

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
            let wanted = find_one_by_one(&parsed, &exchange);
            let found = snapshot.tables[0].find(&mut exchange).map(|it| (it.route, it.matched_len));
            prop_assert_eq!(found, wanted, "{}", text);
            let explained = snapshot.tables[0].explain(&mut exchange);
            let told = explained.first().filter(|it| it.verdict == weir_snapshot::Verdict::Wins);
            prop_assert_eq!(told.map(|it| it.route), wanted.map(|it| it.0), "{}", text);
        }
    }
}
