//! The conditions that decide which of a route's matches takes a call, in words.

use weir_model::{HostPattern, Route, RouteMatch};
use weir_snapshot::MatchExplanation;

/// The rule that decides between two matches that hold.
pub(super) struct Precedence {
    pub(super) value: u64,
    /// Whether the document gives it.
    pub(super) is_given: bool,
}

impl Precedence {
    pub(super) fn of(route: &Route, explained: &MatchExplanation) -> Self {
        let Some(found) = route.matches.get(explained.match_index) else {
            return Self {
                value: 0,
                is_given: false,
            };
        };
        let is_this = |host: &&HostPattern| {
            let text = host.to_string();
            text == explained.host || text.starts_with(&format!("{}:", explained.host))
        };
        let host = found.hosts.iter().find(is_this).unwrap_or(&HostPattern::Any);
        Self {
            value: found.precedence.unwrap_or_else(|| found.default_precedence(host)),
            is_given: found.precedence.is_some(),
        }
    }
}

/// A URL may hold a password.
pub(super) fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// The conditions of one of a route's matches.
pub(super) fn conditions(route: &Route, match_index: usize) -> String {
    let Some(found) = route.matches.get(match_index) else {
        return "no condition".to_owned();
    };
    let RouteMatch {
        hosts,
        path,
        methods,
        headers,
        remote_addrs,
        snis,
        when,
        precedence: _,
    } = found;
    let mut parts = vec![format!("path {path}")];
    let mut list = |noun: &str, items: Vec<String>| match items.as_slice() {
        [] => {}
        [only] => parts.push(format!("{noun} {only}")),
        items => parts.push(format!("{noun}s {}", items.join(" or "))),
    };
    list("host", hosts.iter().map(ToString::to_string).collect());
    list("method", methods.clone());
    for header in headers {
        list("header", vec![header.name.clone()]);
    }
    list("client", remote_addrs.iter().map(ToString::to_string).collect());
    list("server name", snis.clone());
    if let Some(when) = when {
        parts.push(format!("condition {}", when.to_value()));
    }
    parts.join(", ")
}
