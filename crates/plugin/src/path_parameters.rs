//! Path parameters (`/a;x=1/b`), which servlet containers take out of a path before they look at it.

use crate::uri::InvalidPath;

/// Writes a path in normal form to `out` without its parameters: of each segment, what stands before the first `;`.
/// Returns whether it had any. A `/` at the end stays.
///
/// # Errors
/// If a segment is a dot segment but for its parameters, escaped once more or not, or empty before another: what
/// a container makes of the path would not be what was matched.
pub fn strip_parameters(path: &[u8], out: &mut Vec<u8>) -> Result<bool, InvalidPath> {
    out.clear();
    if !path.contains(&b';') {
        return Ok(false);
    }
    let mut segments = path.split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let end = segment.iter().position(|byte| *byte == b';');
        let (name, is_last) = (
            &segment[..end.unwrap_or(segment.len())],
            segments.peek().is_none(),
        );
        let is_hidden = match name {
            b"." | b".." => true,
            b"" => !is_last,
            name => [&b"%2e"[..], b"%2e%2e"]
                .iter()
                .any(|dots| dots.eq_ignore_ascii_case(name)),
        };
        if end.is_some() && is_hidden {
            return Err(InvalidPath);
        }
        out.extend_from_slice(name);
        if !is_last {
            out.push(b'/');
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_lose_their_parameters() {
        for (path, wanted) in [
            ("/a/b", Some("/a/b")),
            ("/a;x=1", Some("/a")),
            ("/a;x=1;y=2/b;z", Some("/a/b")),
            ("/a;x/b/", Some("/a/b/")),
            ("/a;x/", Some("/a/")),
            ("/;x", Some("/")),
            ("/a/;x", Some("/a/")),
            ("/.a;x", Some("/.a")),
            ("/%2e", Some("/%2e")),
            ("/%2e%2ea;x", Some("/%2e%2ea")),
            ("/;/a", None),
            ("/b/;/c", None),
            ("/;x/", None),
            ("/.;", None),
            ("/..;", None),
            ("/a/..;x/b", None),
            ("/%2e;", None),
            ("/%2E%2e;x/a", None),
        ] {
            let mut out = b"old".to_vec();
            let found = strip_parameters(path.as_bytes(), &mut out);
            let found = found.map(|had_any| match had_any {
                true => String::from_utf8_lossy(&out).into_owned(),
                false => path.to_owned(),
            });
            assert_eq!(found.ok().as_deref(), wanted, "{path}");
        }
    }
}
