//! Paths of OpenAPI as routes of the gateway match them. No router: it only writes the text of a pattern.

use std::collections::HashSet;
use std::fmt::Write as _;

/// A path as callers send it: a document may have characters as they are that a call has only encoded.
pub fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut bytes = path.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                out.push('%');
                for _ in 0..2 {
                    let digit = bytes.next_if(u8::is_ascii_hexdigit);
                    out.extend(digit.map(|it| char::from(it.to_ascii_uppercase())));
                }
            }
            b' ' | b'"' | b'<' | b'>' | b'^' | b'`' | b'|' | 0x7f.. => {
                let _ = write!(out, "%{byte:02X}");
            }
            _ => out.push(byte.into()),
        }
    }
    out
}

/// Whether a segment is `.` or `..`, which the gateway resolves in a call's path before it looks for a route; encoded ones, too.
pub fn is_dots(segment: &str) -> bool {
    matches!(
        segment.to_ascii_uppercase().replace("%2E", ".").as_str(),
        "." | ".."
    )
}

/// A part of a path as a document writes it.
#[derive(Debug, PartialEq, Eq)]
enum PathPart<'p> {
    /// Text, in which braces are text, too.
    Text(&'p str),
    /// What stands between braces.
    Parameter(&'p str),
}

/// The parts of a path. Braces that enclose no name within one segment are text.
fn parts(path: &str) -> Vec<PathPart<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(open) = path[from..].find('{').map(|at| from + at) {
        let behind = &path[open + 1..];
        from = open + 1;
        let Some(end) = behind
            .find(['{', '}', '/'])
            .filter(|at| behind[*at..].starts_with('}'))
        else {
            continue;
        };
        if start < open {
            parts.push(PathPart::Text(&path[start..open]));
        }
        parts.push(PathPart::Parameter(&behind[..end]));
        from = open + end + 2;
        start = from;
    }
    if start < path.len() {
        parts.push(PathPart::Text(&path[start..]));
    }
    parts
}

/// The names of a path's parameters.
pub fn parameters(path: &str) -> Vec<&str> {
    let name = |part| match part {
        PathPart::Text(_) => None,
        PathPart::Parameter(name) => Some(name),
    };
    parts(path).into_iter().filter_map(name).collect()
}

/// The path with `{}` for each parameter, and without escapes of letters and digits: what two paths that take the same
/// calls have in common.
pub fn shape(path: &str) -> String {
    let text = |part: PathPart<'_>| match part {
        PathPart::Text(text) => unescaped(text),
        PathPart::Parameter(_) => "{}".to_owned(),
    };
    parts(path).into_iter().map(text).collect()
}

/// The text without escapes that change nothing (RFC 3986, 2.3).
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte.filter(|it| it.is_ascii_alphanumeric() || b"-._~".contains(it)) {
            Some(byte) => {
                whole.push(char::from(byte));
                whole.push_str(&part[2..]);
            }
            None => {
                whole.push('%');
                whole.push_str(part);
            }
        }
    }
    whole
}

/// Why a path cannot be matched as it is written.
pub fn fault(path: &str) -> Option<String> {
    let parts = parts(path);
    let has_brace = |part: &PathPart<'_>| matches!(part, PathPart::Text(text) if text.contains(['{', '}']));
    if parts.iter().any(has_brace) {
        return Some("A brace of the path belongs to no parameter: it is taken as a character.".to_owned());
    }
    parts.windows(2).find_map(|pair| match pair {
        [PathPart::Parameter(one), PathPart::Parameter(other)] => Some(format!(
            "Nothing tells where '{{{one}}}' ends and '{{{other}}}' begins: expected text between them."
        )),
        _ => None,
    })
}

/// A path of OpenAPI as a route matches it. A parameter takes one segment, or what the text next to it in the segment
/// leaves; all else is taken as it stands. Names of parameters keep the characters that `is_kept` tells.
pub fn pattern(path: &str, is_kept: impl Fn(char) -> bool) -> String {
    let path = &*encoded(path);
    let parts = parts(path);
    // Gateways compare with paths in which braces are encoded.
    let as_sent = |text: &str| text.replace('{', "%7B").replace('}', "%7D");
    if !parts.iter().any(|it| matches!(it, PathPart::Parameter(_))) {
        return format!("={}", as_sent(path));
    }
    // The native form has a star at the end for whatever follows.
    let is_regex = path.ends_with('*');
    let mut out = String::from(if is_regex { "~" } else { "" });
    let mut names = HashSet::new();
    let (mut segment, mut is_behind_parameter) = (0, false);
    for part in parts {
        match part {
            PathPart::Text(text) if is_regex => out.push_str(&regex::escape(&as_sent(text))),
            PathPart::Text(text) => out.push_str(&as_sent(text)),
            // Two at once take what one takes.
            PathPart::Parameter(_) if is_behind_parameter => continue,
            PathPart::Parameter(name) => {
                let mut name: String = name.chars().filter(|it| is_kept(*it)).collect();
                if name.is_empty() || names.contains(&name) {
                    name = format!("{name}{segment}");
                }
                while !names.insert(name.clone()) {
                    name.push('_');
                }
                out.push_str(&match is_regex {
                    true => "([^/]+)".to_owned(),
                    false => format!("{{{name}}}"),
                });
            }
        }
        is_behind_parameter = matches!(part, PathPart::Parameter(_));
        if let PathPart::Text(text) = part {
            segment += text.matches('/').count();
        }
    }
    if is_regex {
        out.push('$');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_take_the_same_calls_have_one_shape() {
        for (path, expected) in [
            ("/a/{id}", "/a/{}"),
            ("/p%61th/%7Eme", "/path/~me"),
            ("/a%2Fb%2fc", "/a%2Fb%2fc"),
            ("/100%", "/100%"),
            ("/%zz%4", "/%zz%4"),
            ("/k%C3%BCche", "/k%C3%BCche"),
        ] {
            assert_eq!(shape(path), expected, "{path}");
        }
    }
    use weir_model::PathPattern;

    #[test]
    fn paths_become_patterns() {
        for (path, expected) in [
            ("/pets", "=/pets"),
            ("/pets/{petId}", "/pets/{petId}"),
            ("/files/{name}.json", "/files/{name}.json"),
            ("/v/{name}:cancel", "/v/{name}:cancel"),
            ("/a-{x}-b/c", "/a-{x}-b/c"),
            ("/{x}-{y}/{z}", "/{x}-{y}/{z}"),
            ("/{x}{y}.json", "/{x}.json"),
            ("/a/{x-y}/{x-y}", "/a/{xy}/{xy3}"),
            ("/{a}-{a}-{a}", "/{a}-{a1}-{a1_}"),
            ("/{}", "/{1}"),
            ("/a{/b}/{c}", "/a%7B/b%7D/{c}"),
            ("/{a/{b}", "/%7Ba/{b}"),
            ("/a}", "=/a%7D"),
            ("/{a}/*", "~/([^/]+)/\\*$"),
            ("/b}/{a}/*", "~/b%7D/([^/]+)/\\*$"),
            ("/old files/ü", "=/old%20files/%C3%BC"),
            ("/%c3%bc/{id}/a|b", "/%C3%BC/{id}/a%7Cb"),
            ("/100%/%e", "=/100%/%E"),
        ] {
            let found = pattern(path, |it| it.is_ascii_alphanumeric() || it == '_');
            assert_eq!(found, expected, "{path}");
            assert!(PathPattern::parse(&found).is_ok(), "{path}");
        }
    }

    #[test]
    fn faults_are_told() {
        for path in ["/a", "/{a}.json", "/{a}-{b}", "/{}"] {
            assert_eq!(fault(path), None, "{path}");
        }
        for (path, part) in [
            ("/{a}{b}", "'{a}' ends"),
            ("/{a", "brace"),
            ("/a}/{b}", "brace"),
            ("/{a/b}", "brace"),
        ] {
            assert!(fault(path).is_some_and(|it| it.contains(part)), "{path}");
        }
    }

    #[test]
    fn shapes_leave_out_names() {
        assert_eq!(shape("/a/{x}.json/{y}-{z}/b"), "/a/{}.json/{}-{}/b");
        assert_eq!(shape("/a/{x"), "/a/{x");
    }
}
