//! Any routes and any calls: the index finds what a search through all matches, one by one, finds.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use regex::bytes::RegexBuilder;
use serde_json::{Value, json};
use weir_model::{HostPattern, Model, PathPattern, RouteMatch, TemplatePart};
use weir_plugin::{Exchange, Registry, Request};
use weir_snapshot::{Carry, Verdict, compile};

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
            .push(json!({"name": format!("r{}", routes.len()), "match": [text], "to": {"unavailable": 503}}));
    }
    let model: Model =
        serde_json::from_value(json!({"routes": routes})).expect("every match was read before");
    let Ok((snapshot, _)) = compile(&model, &Registry::default(), &Carry::default()) else {
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

fn find_one_by_one(matches: &[RouteMatch], request: &Request) -> Option<(u32, usize)> {
    let mut best: Option<(u64, u32, usize)> = None;
    for (index, it) in matches.iter().enumerate() {
        let hosts = if it.hosts.is_empty() {
            &[HostPattern::Any]
        } else {
            it.hosts.as_slice()
        };
        for host in hosts {
            let Some(length) = covers(it, host, request) else {
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

/// How many bytes of the path a match covers, if it takes the call: its definition, spelled out.
fn covers(it: &RouteMatch, host: &HostPattern, request: &Request) -> Option<usize> {
    let value = request.headers.get(b"x");
    let header_holds = |values: &[String]| {
        value.is_some_and(|value| values.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(value)))
    };
    let holds = host_holds(host, request)
        && (it.methods.is_empty() || it.methods.iter().any(|it| it.as_bytes() == request.method))
        && it.headers.iter().all(|it| header_holds(&it.values));
    if !holds {
        return None;
    }
    let path = request.path.as_slice();
    match &it.path {
        PathPattern::Any => Some(0),
        PathPattern::Exact(exact) => (path == exact.as_bytes()).then_some(path.len()),
        PathPattern::Prefix(prefix) => path.starts_with(prefix.as_bytes()).then_some(prefix.len()),
        PathPattern::Segments(root) => {
            let rest = path.strip_prefix(root.as_bytes())?;
            (rest.is_empty() || rest.starts_with(b"/") || root.ends_with('/')).then_some(root.len())
        }
        PathPattern::Template(parts) => template(parts, path),
        PathPattern::Regex(regex) => {
            // Paths are bytes; only what cannot be said of bytes is said of characters.
            let build = |unicode| {
                RegexBuilder::new(&format!(r"\A(?:{regex})"))
                    .unicode(unicode)
                    .build()
            };
            let regex = build(false).or_else(|_| build(true)).ok()?;
            regex.find(path).map(|found| found.end())
        }
    }
}

fn template(parts: &[TemplatePart], path: &[u8]) -> Option<usize> {
    let mut rest = path;
    for part in parts {
        match part {
            TemplatePart::Literal(text) => rest = rest.strip_prefix(text.as_bytes())?,
            TemplatePart::Parameter(_) => {
                let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
                rest = (end > 0).then(|| &rest[end..])?;
            }
            TemplatePart::Rest(_) => return Some(path.len() - rest.len()),
        }
    }
    rest.is_empty().then_some(path.len())
}

fn host_holds(pattern: &HostPattern, request: &Request) -> bool {
    let host = request.host.as_slice();
    let port_holds = |port: &Option<u16>| port.is_none_or(|port| port == request.host_port.unwrap_or(80));
    match pattern {
        HostPattern::Any => true,
        HostPattern::Exact { host: exact, port } => host == exact.as_bytes() && port_holds(port),
        HostPattern::Suffix { suffix, port } => {
            host.len() > suffix.len() && host.ends_with(suffix.as_bytes()) && port_holds(port)
        }
        HostPattern::Prefix { prefix, port } => {
            host.len() > prefix.len() && host.starts_with(prefix.as_bytes()) && port_holds(port)
        }
    }
}
