//! Paths and hosts of routes as the model's patterns.

use super::Router;
use serde_json::json;
use weir_model::{Comparison, HostPattern, Operator, PathPattern, Predicate, TemplatePart};

/// How specific a path is. The greater goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathRank {
    /// Everything that begins with so many bytes.
    Prefix(usize),
    Exact,
}

/// The pattern for a host, and a further condition if a pattern cannot say it. `None`: no call ever has such a
/// host, since the default router compares hosts without their ports.
pub fn host_pattern(host: &str, without_port: bool) -> Option<(HostPattern, Option<Predicate>)> {
    let has_port = host.contains(':') && !host.ends_with(']');
    if without_port && has_port {
        return None;
    }
    match host.strip_prefix('*') {
        Some("") => Some((HostPattern::Any, None)),
        // `*a.com` is every host that ends so, in the middle of a label too.
        Some(rest) if !rest.starts_with('.') => {
            let ends_so = Predicate::Compare(Comparison {
                variable: "host".to_owned(),
                operator: Operator::Matches,
                value: json!(format!("{}$", regex::escape(rest))),
            });
            Some((HostPattern::Any, Some(ends_so)))
        }
        _ => HostPattern::parse(host).ok().map(|pattern| (pattern, None)),
    }
}

/// The pattern for a path as a router reads it, and its rank.
pub fn path_pattern(router: Router, path: &str) -> (PathPattern, PathRank) {
    wildcard_pattern(path, router == Router::RadixtreeUriWithParameter)
}

fn prefix_pattern(prefix: &str) -> (PathPattern, PathRank) {
    let pattern = match prefix {
        "" => PathPattern::Any,
        prefix => PathPattern::Prefix(prefix.to_owned()),
    };
    (pattern, PathRank::Prefix(prefix.len()))
}

/// `/files/*rest`, `/a/*/b`, and with `colons` `/user/:id`. What stands before the first `:` or `*` decides the rank. One
/// inside of a segment is no parameter but cuts the path off all the same.
fn wildcard_pattern(path: &str, colons: bool) -> (PathPattern, PathRank) {
    let colon = path.find(':').filter(|_| colons);
    let Some(cut) = colon.or_else(|| path.find('*')) else {
        return (PathPattern::Exact(path.to_owned()), PathRank::Exact);
    };
    let rank = PathRank::Prefix(cut);
    let segments: Vec<&str> = path.split('/').collect();
    let is_named = |segment: &&str| segment.starts_with('*') || colons && segment.starts_with(':');
    if !segments.iter().any(is_named) {
        return prefix_pattern(&path[..cut]);
    }
    if let Some(prefix) = path.strip_suffix('*')
        && prefix.len() == cut
    {
        return prefix_pattern(prefix);
    }
    let rest_inside = segments[..segments.len() - 1]
        .iter()
        .any(|segment| segment.starts_with('*'));
    if rest_inside {
        return (PathPattern::Regex(glob_regex(&segments, colons)), rank);
    }
    let mut parts = Vec::new();
    let mut literal = String::new();
    for (index, segment) in segments.iter().enumerate() {
        if index > 0 {
            literal.push('/');
        }
        let name = segment.strip_prefix(':').filter(|_| colons);
        let parameter = match (name, segment.strip_prefix('*')) {
            (Some(name), _) => TemplatePart::Parameter(name.to_owned()),
            (_, Some(name)) => TemplatePart::Rest(name.to_owned()),
            _ => {
                literal.push_str(segment);
                continue;
            }
        };
        parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
        parts.push(parameter);
    }
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
    (PathPattern::Template(parts), rank)
}

/// For a `*` that is not at the end.
fn glob_regex(segments: &[&str], colons: bool) -> String {
    let segments = segments.iter().map(|segment| match segment.as_bytes().first() {
        Some(b':') if colons => "[^/]+".to_owned(),
        Some(b'*') => "(?s:.*)".to_owned(),
        _ => regex::escape(segment),
    });
    format!("{}$", segments.collect::<Vec<_>>().join("/"))
}
