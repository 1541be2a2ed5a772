//! Calls that a route would take, made of its own conditions: with them one sees which route takes which calls. **What it
//! is not**: complete. A regular expression has more texts than one, and of conditions over variables only those are met that
//! ask for a header or a parameter of the query.

use super::call::ExplainedCall;
use regex_syntax::hir::{Class, Hir, HirKind};
use std::net::{IpAddr, Ipv4Addr};
use weir_model::{
    Comparison, HeaderMatch, HostPattern, Operator, PathPattern, Predicate, Route, RouteMatch, TemplatePart,
};

/// Hosts, and methods, of one match that examples are made of, at most.
const MAX_EACH: usize = 8;
/// The longest text that is made of a regular expression, in bytes.
const MAX_TEXT: usize = 1024;

/// Calls that the route takes if no other one goes before it. `hosts`: those that a match for every host is tried with.
pub fn calls_of(route: &Route, hosts: &[String]) -> Vec<ExplainedCall> {
    let each = |found| calls_of_match(found, hosts);
    route.matches.iter().flat_map(each).collect()
}

fn calls_of_match(found: &RouteMatch, more_hosts: &[String]) -> Vec<ExplainedCall> {
    let is_tls = !found.snis.is_empty();
    let mut hosts: Vec<String> = found.hosts.iter().take(MAX_EACH).map(host).collect();
    if found.hosts.iter().all(|it| *it == HostPattern::Any) {
        hosts.push(String::new());
        hosts.extend_from_slice(more_hosts);
    }
    hosts.dedup();
    let methods: Vec<&str> = match found.methods.as_slice() {
        [] => vec!["GET", "POST"],
        some => some.iter().take(MAX_EACH).map(String::as_str).collect(),
    };
    let (mut headers, query) = found.when.as_ref().map(asked_for).unwrap_or_default();
    headers.extend(found.headers.iter().map(|it| (it.name.clone(), value(it))));
    let query = match query.is_empty() {
        true => String::new(),
        false => format!("?{query}"),
    };
    let client = found.remote_addrs.first().map(|it| it.addr());
    let mut calls = Vec::new();
    for path in paths(&found.path) {
        for host in &hosts {
            for method in &methods {
                calls.push(ExplainedCall {
                    method: (*method).to_owned(),
                    is_tls,
                    authority: host.clone(),
                    target: format!("{path}{query}"),
                    headers: headers.clone(),
                    client: client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
                    sni: found.snis.first().map(|it| it.replace('*', "www")),
                    body: String::new(),
                    consumer: None,
                });
            }
        }
    }
    calls
}

/// A host of a pattern.
pub fn host(pattern: &HostPattern) -> String {
    let (name, port) = match pattern {
        HostPattern::Any => return String::new(),
        HostPattern::Exact { host, port } => (host.clone(), port),
        HostPattern::Suffix { suffix, port } => (format!("www{suffix}"), port),
        HostPattern::Prefix { prefix, port } => (format!("{prefix}com"), port),
    };
    match port {
        Some(port) => format!("{name}:{port}"),
        None => name,
    }
}

/// Paths of a pattern: its own, and for one that takes more, one below it.
pub fn paths(pattern: &PathPattern) -> Vec<String> {
    let below = |path: &str| format!("{}/1", path.trim_end_matches('/'));
    match pattern {
        PathPattern::Any => vec!["/".to_owned(), "/1".to_owned()],
        PathPattern::Exact(path) => vec![path.clone()],
        PathPattern::Prefix(path) | PathPattern::Segments(path) => vec![path.clone(), below(path)],
        PathPattern::Template(parts) => vec![parts.iter().map(part).collect()],
        PathPattern::Regex(regex) => text_of(regex)
            .filter(|it| it.starts_with('/'))
            .into_iter()
            .collect(),
    }
}

fn part(part: &TemplatePart) -> &str {
    match part {
        TemplatePart::Literal(text) => text,
        TemplatePart::Parameter(_) | TemplatePart::Rest(_) => "1",
    }
}

fn value(header: &HeaderMatch) -> String {
    let of_regex = || header.regex.as_deref().and_then(text_of);
    let first = header.values.first().cloned();
    first.or_else(of_regex).unwrap_or_else(|| "1".to_owned())
}

/// Headers and a query that a condition asks for.
fn asked_for(condition: &Predicate) -> (Vec<(String, String)>, String) {
    let mut comparisons = Vec::new();
    collect(condition, &mut comparisons);
    let (mut headers, mut query) = (Vec::new(), Vec::new());
    for it in comparisons {
        let wanted = match (it.operator, &it.value) {
            (Operator::Equal, value) => Some(value),
            (Operator::In, serde_json::Value::Array(items)) => items.first(),
            _ => None,
        };
        let Some(wanted) = wanted.and_then(|it| it.as_str()) else {
            continue;
        };
        if let Some(name) = it.variable.strip_prefix("http_") {
            headers.push((name.replace('_', "-"), wanted.to_owned()));
        } else if let Some(name) = it.variable.strip_prefix("arg_") {
            query.push(format!("{name}={wanted}"));
        }
    }
    (headers, query.join("&"))
}

fn collect<'p>(condition: &'p Predicate, found: &mut Vec<&'p Comparison>) {
    match condition {
        Predicate::Compare(comparison) => found.push(comparison),
        Predicate::All(all) => all.iter().for_each(|it| collect(it, found)),
        Predicate::Any(any) => any.iter().take(1).for_each(|it| collect(it, found)),
        Predicate::Not(_) => {}
    }
}

/// A text that a regular expression finds; `None`: it cannot be read here, or its texts are long.
fn text_of(regex: &str) -> Option<String> {
    let parsed = regex_syntax::Parser::new().parse(regex).ok()?;
    let mut text = Vec::new();
    write(&parsed, &mut text).then(|| String::from_utf8(text).ok())?
}

/// Whether there was room.
fn write(hir: &Hir, text: &mut Vec<u8>) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(class) => text.extend_from_slice(character(class).to_string().as_bytes()),
        HirKind::Repetition(it) => {
            for _ in 0..it.min {
                if !write(&it.sub, text) {
                    return false;
                }
            }
        }
        HirKind::Capture(it) => return write(&it.sub, text),
        HirKind::Concat(all) => return all.iter().all(|it| write(it, text)),
        HirKind::Alternation(any) => return any.first().is_none_or(|it| write(it, text)),
    }
    text.len() <= MAX_TEXT
}

/// A character of a class; best one that needs no escape in a path.
fn character(class: &Class) -> char {
    let holds = |wanted: char| match class {
        Class::Unicode(it) => it
            .ranges()
            .iter()
            .any(|it| it.start() <= wanted && wanted <= it.end()),
        Class::Bytes(it) => {
            let is_in = |byte| {
                it.ranges()
                    .iter()
                    .any(|it| it.start() <= byte && byte <= it.end())
            };
            u8::try_from(wanted).is_ok_and(is_in)
        }
    };
    let first = match class {
        Class::Unicode(it) => it.ranges().first().map(|it| it.start()),
        Class::Bytes(it) => it.ranges().first().map(|it| char::from(it.start())),
    };
    ['1', 'a', 'A', '-']
        .into_iter()
        .find(|it| holds(*it))
        .or(first)
        .unwrap_or('1')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_route_has_calls_that_it_takes() {
        for (conditions, expected) in [
            (json!({"path": "=/a"}), &["GET /a", "POST /a"][..]),
            (json!({"path": "/a", "methods": ["PUT"]}), &["PUT /a", "PUT /a/1"]),
            (
                json!({"path": "/a/{id}/b", "methods": ["GET"], "hosts": ["*.x.com", "y.com:81"]}),
                &["GET http://www.x.com/a/1/b", "GET http://y.com:81/a/1/b"],
            ),
            (
                json!({"path": "~/v\\d+/(x|y)[^/]*$", "methods": ["GET"]}),
                &["GET /v1/x"],
            ),
            (json!({"path": "~/a{9999}", "methods": ["GET"]}), &[]),
            (
                json!({"path": "=/a", "methods": ["GET"], "snis": ["*.x.com"], "hosts": ["a.x.com"]}),
                &["GET https://a.x.com/a"],
            ),
            (
                json!({"path": "=/a", "methods": ["GET"], "when": [["arg_v", "==", "2"], ["http_x_t", "in", ["q"]]]}),
                &["GET /a?v=2"],
            ),
        ] {
            let route = json!({"name": "r", "match": [conditions], "to": {"service": "s"}});
            let route: Route = serde_json::from_value(route).expect("a route");
            let calls: Vec<String> = calls_of(&route, &[]).iter().map(ToString::to_string).collect();
            assert_eq!(calls, expected, "{conditions}");
        }
    }

    #[test]
    fn headers_are_met_and_other_hosts_are_tried() {
        let route = json!({"name": "r", "to": {"service": "s"}, "match": [{
            "path": "=/a", "methods": ["GET"],
            "headers": [{"name": "a", "values": ["1", "2"]}, {"name": "b", "regex": "^v[0-9]{2}$"}],
        }]});
        let route: Route = serde_json::from_value(route).expect("a route");
        let calls = calls_of(&route, &["x.com".to_owned()]);
        let texts: Vec<String> = calls.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["GET /a", "GET http://x.com/a"]);
        let expected = [("a", "1"), ("b", "v11")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(calls[0].headers, expected);
    }
}
