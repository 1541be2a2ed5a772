//! Paths that servers parse in different ways, so that a route that guards one reading lets another one through.
//!
//! If a gateway matches `/admin%2Fx` as one segment, and the server behind it decodes it and finds `/admin/x`, the
//! gateway has used the wrong route. Such paths are refused if a route table requires it, and never repaired.

use crate::uri::hex_pair;

/// Whether one server may find other segments in a path than the next. `path` has its escapes in upper case, and those
/// of unreserved characters decoded.
///
/// Ambiguous are escapes of `/`, `\`, and control characters; an escape of an escape that leads to one of these or to a
/// dot (`%252F`); bytes that lenient decoders of UTF-8 take for ASCII (`%C0%AF`); and segments that are empty or dots
/// but for their parameters (`/;x/`, `..;x`): servlet containers cut `;x` off, and find `//` or a dot segment. At the
/// end of a path, `/;x` is none: it is how they hand out sessions (`/;jsessionid=1`).
pub fn is_ambiguous(path: &[u8]) -> bool {
    let escapes = path.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let mut escapes = escapes.map(|(at, _)| &path[at + 1..]);
    escapes.any(|escape| match hex_pair(escape) {
        Some(b'%') => is_escaped_again(&escape[2..]),
        Some(0xc0 | 0xc1) => true,
        Some(0xe0) => escape.get(2) == Some(&b'%') && matches!(hex_pair(&escape[3..]), Some(0x80..=0x9f)),
        Some(0xf0) => escape.get(2) == Some(&b'%') && matches!(hex_pair(&escape[3..]), Some(0x80..=0x8f)),
        Some(byte) => is_separating(byte),
        None => false,
    }) || has_hidden_segments(path)
}

/// Whether what stands behind `%25` is the rest of an escape that matters, perhaps escaped once more.
fn is_escaped_again(mut rest: &[u8]) -> bool {
    while let Some(deeper) = rest.strip_prefix(b"25") {
        rest = deeper;
    }
    hex_pair(rest).is_some_and(|byte| byte == b'.' || is_separating(byte))
}

fn is_separating(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\') || byte.is_ascii_control()
}

fn has_hidden_segments(path: &[u8]) -> bool {
    let mut segments = path.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let dots = segment.iter().take(2).take_while(|byte| **byte == b'.').count();
        let rest = &segment[dots..];
        let has_parameters = rest.starts_with(b";") || rest.starts_with(b"%3B");
        if has_parameters && (dots > 0 || segments.peek().is_some()) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::uri::{InvalidPath, NormalForm};

    #[test]
    fn ambiguous_paths_are_refused() {
        for path in [
            "/admin%2fx",
            "/admin%2Fx",
            "/%2fadmin",
            "/p/..%2f..%2fx",
            "/p/%2e%2e%2fadmin",
            "/admin%5cx",
            "/admin\\x",
            "/p/..\\admin",
            "/admin%252fx",
            "/admin%25252fx",
            "/p/%252e%252e/admin",
            "/admin%255cx",
            "/admin%2500",
            "/admin%0a",
            "/admin%7f",
            "/%c0%afadmin",
            "/%c1%9cadmin",
            "/%e0%80%afadmin",
            "/%f0%80%80%afadmin",
            "/p/..;/admin",
            "/p/.;x=1/admin",
            "/p/%2e%2e;/admin",
            "/p/..%3b/admin",
            "/;/admin",
            "/;a=b/;c/admin",
            "/p/%3bx/admin",
            "/p/..%2f",
        ] {
            let mut out = Vec::new();
            let result = NormalForm::Unambiguous.apply(path.as_bytes(), &mut out);
            assert_eq!(result, Err(InvalidPath), "{path}");
            let _accepted = NormalForm::Encoded.apply(path.as_bytes(), &mut out);
        }
        for (path, wanted) in [
            ("/a//b/./c/../d", "/a/b/d"),
            ("/a%20b", "/a%20b"),
            ("/100%25", "/100%25"),
            ("/100%25x", "/100%25x"),
            ("/%e2%82%ac", "/%E2%82%AC"),
            ("/%e0%a4%85", "/%E0%A4%85"),
            ("/map;v=1/x", "/map;v=1/x"),
            ("/;jsessionid=1", "/;jsessionid=1"),
            ("/app/;jsessionid=1", "/app/;jsessionid=1"),
            ("/.hidden;x", "/.hidden;x"),
            ("/a%3Fb%3bc", "/a%3Fb%3Bc"),
        ] {
            let mut out = Vec::new();
            let result = NormalForm::Unambiguous.apply(path.as_bytes(), &mut out);
            assert_eq!(result, Ok(()), "{path}");
            assert_eq!(String::from_utf8_lossy(&out), wanted, "{path}");
        }
    }
}
