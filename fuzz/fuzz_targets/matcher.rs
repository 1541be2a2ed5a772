//! Any routes and any calls: the index finds what a search through all matches, one by one, finds.
#![no_main]

#[path = "../../crates/snapshot/tests/one_by_one/mod.rs"]
mod one_by_one;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use one_by_one::find_one_by_one;
use serde_json::{Value, json};
use weir_model::{Model, RouteMatch};
use weir_plugin::{Exchange, Registry};
use weir_snapshot::{PersistentState, Verdict, compile};

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    rules: Vec<Rule<'a>>,
    calls: Vec<Call<'a>>,
}

#[derive(Debug, Arbitrary)]
struct Rule<'a> {
    hosts: Vec<&'a str>,
    path: Path<'a>,
    methods: Vec<Method>,
    header: Option<&'a str>,
    precedence: Option<u8>,
}

#[derive(Debug, Arbitrary)]
enum Path<'a> {
    Any,
    Exact(&'a str),
    Prefix(&'a str),
    Segments(&'a str),
    Template(Vec<Option<&'a str>>, bool),
    Regex(&'a str),
}

#[derive(Debug, Arbitrary)]
enum Method {
    Get,
    Post,
    Purge,
}

#[derive(Debug, Arbitrary)]
struct Call<'a> {
    method: Method,
    host: Text<'a>,
    port: Option<u16>,
    path: Text<'a>,
    header: Option<&'a str>,
}

/// A text, or one that a rule mentions, with something behind it.
#[derive(Debug, Arbitrary)]
enum Text<'a> {
    Own(&'a str),
    OfRule(u8, &'a str),
}

impl Method {
    fn word(&self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Purge => "PURGE",
        }
    }
}

impl Path<'_> {
    fn pattern(&self) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::Exact(path) => format!("=/{path}"),
            Self::Prefix(path) => format!("/{path}*"),
            Self::Segments(path) => format!("/{path}"),
            Self::Template(pieces, has_rest) => {
                let mut pattern = String::new();
                for (position, piece) in pieces.iter().take(8).enumerate() {
                    match piece {
                        Some(text) => pattern += &format!("/{text}"),
                        None => pattern += &format!("/{{p{position}}}"),
                    }
                }
                pattern + if *has_rest { "/{rest*}" } else { "" }
            }
            Self::Regex(regex) => format!("~{regex}"),
        }
    }

    /// A path to which the pattern may come close.
    fn example(&self) -> String {
        match self {
            Self::Any => String::new(),
            Self::Exact(path) | Self::Prefix(path) | Self::Segments(path) | Self::Regex(path) => {
                (*path).to_owned()
            }
            Self::Template(pieces, _) => pieces
                .iter()
                .map(|piece| piece.unwrap_or("p"))
                .collect::<Vec<_>>()
                .join("/"),
        }
    }
}

fuzz_target!(|input: Input<'_>| {
    let rules: Vec<&Rule<'_>> = input.rules.iter().take(24).collect();
    let mut matches: Vec<RouteMatch> = Vec::new();
    let mut routes: Vec<Value> = Vec::new();
    for rule in &rules {
        let methods: Vec<&str> = rule.methods.iter().take(2).map(Method::word).collect();
        let headers: Vec<Value> = rule
            .header
            .map(|it| json!({"name": "x", "values": [it]}))
            .into_iter()
            .collect();
        let hosts: Vec<&str> = rule.hosts.iter().take(3).copied().collect();
        let text = json!({
            "hosts": hosts, "path": rule.path.pattern(), "methods": methods, "headers": headers,
            "precedence": rule.precedence,
        });
        let Ok(parsed) = serde_json::from_value(text.clone()) else {
            continue;
        };
        matches.push(parsed);
        routes
            .push(json!({"name": format!("r{}", routes.len()), "match": [text], "to": {"respond": {"status": 503}}}));
    }
    let model: Model =
        serde_json::from_value(json!({"routes": routes})).expect("every match was read before");
    let Ok((snapshot, _)) = compile(&model, &Registry::default(), &PersistentState::default()) else {
        return;
    };
    let Some(table) = snapshot.tables.first() else {
        return;
    };
    for call in input.calls.iter().take(16) {
        let mut exchange = exchange(call, &rules);
        let wanted = find_one_by_one(&matches, &exchange.request);
        let found = table
            .find(&mut exchange)
            .map(|found| (found.route, found.matched_len));
        assert_eq!(found, wanted, "{call:?}");
        let explained = table.explain(&mut exchange);
        let winner = explained
            .first()
            .filter(|it| it.verdict == Verdict::Wins)
            .map(|it| it.route);
        assert_eq!(winner, found.map(|it| it.0), "{explained:?}");
    }
});

fn exchange(call: &Call<'_>, rules: &[&Rule<'_>]) -> Exchange {
    let rule = |index: &u8| rules.get(usize::from(*index) % rules.len().max(1));
    let host = match &call.host {
        Text::Own(text) => (*text).to_owned(),
        Text::OfRule(index, before) => {
            let pattern = rule(index)
                .and_then(|rule| rule.hosts.first())
                .copied()
                .unwrap_or_default();
            format!("{before}{}", pattern.replace('*', ""))
        }
    };
    let path = match &call.path {
        Text::Own(text) => (*text).to_owned(),
        Text::OfRule(index, behind) => {
            rule(index).map(|rule| rule.path.example()).unwrap_or_default() + behind
        }
    };
    let mut exchange = Exchange::new(|| 0, 1);
    let request = &mut exchange.request;
    request.method = call.method.word().into();
    // Hosts of calls are in lower case when they are matched.
    request.host = host.to_ascii_lowercase().into();
    request.host_port = call.port;
    request.path = format!("/{path}").into();
    request.raw_path = request.path.clone();
    if let Some(value) = call.header {
        request.headers.append(b"X", value.as_bytes());
    }
    exchange
}
