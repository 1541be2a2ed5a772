//! A search through all matches, one by one: what the index must find, written down as plainly as can be. Tests and a
//! fuzz target compare with it.

use regex::bytes::RegexBuilder;
use weir_model::{HostPattern, PathPattern, RouteMatch, TemplatePart};
use weir_plugin::Request;

/// The route that takes a request, and how many bytes of the path its match covers.
pub fn find_one_by_one(matches: &[RouteMatch], request: &Request) -> Option<(u32, usize)> {
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
    let header_holds = |name: &str, values: &[String]| {
        let mut found = request.headers.get_all(name.as_bytes());
        found.any(|value| values.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(value)))
    };
    let holds = host_holds(host, request)
        && (it.methods.is_empty() || it.methods.iter().any(|it| it.as_bytes() == request.method))
        && it.headers.iter().all(|it| header_holds(&it.name, &it.values));
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
