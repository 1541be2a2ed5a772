//! Request targets: normal forms of paths, and queries (RFC 3986, 3 and 6).

use crate::ambiguous_path::is_ambiguous;
use std::borrow::Cow;

/// A path that has no normal form: it leads above the root, or holds an encoded NUL or a broken escape; or it is
/// ambiguous, and the form takes no such paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path has no normal form")]
pub struct InvalidPath;

/// How a route table wants paths before it matches them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormalForm {
    /// Dot segments resolved, double slashes merged, escapes of unreserved characters decoded, the others in
    /// upper case. This form is matched and forwarded.
    #[default]
    Encoded,
    /// Likewise, but a path is refused that servers read in different ways (an escaped slash, say).
    Unambiguous,
    /// Likewise, but with all escapes decoded. The forwarded path is escaped again.
    Decoded,
}

impl NormalForm {
    /// Writes the normal form of `path` to `out`, which is emptied first.
    pub fn apply(self, path: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidPath> {
        out.clear();
        if is_plain(path) {
            out.extend_from_slice(path);
            return Ok(());
        }
        let mut decoded = Vec::with_capacity(path.len());
        match self {
            Self::Encoded | Self::Unambiguous => normalize_escapes(path, &mut decoded)?,
            Self::Decoded => decode_escapes(path, &mut decoded)?,
        }
        if self == Self::Unambiguous && is_ambiguous(&decoded) {
            return Err(InvalidPath);
        }
        resolve_segments(&decoded, out)
    }
}

/// Whether `path` already is in every normal form; most are, and this is all that they cost.
#[inline]
pub fn is_plain(path: &[u8]) -> bool {
    let (mut seen, mut pairs, mut previous) = (0, 0, 0);
    for &byte in path {
        let kind = KINDS[usize::from(byte)];
        seen |= kind;
        // Two bits that meet show a slash, a dot or a `;` directly behind a slash.
        pairs |= kind << 1 & previous;
        previous = kind;
    }
    path.first() == Some(&b'/') && seen & SPECIAL == 0 && pairs & SLASH == 0
}

/// What a byte may be in a path.
const SPECIAL: u8 = 1;
/// What matters directly behind a slash.
const BEHIND_SLASH: u8 = 2;
const SLASH: u8 = 4;

/// The meaning of each byte in a path. Most bytes have no special meaning at any place.
const KINDS: [u8; 256] = {
    let mut kinds = [SPECIAL; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        kinds[byte as usize] = match byte {
            b'/' => BEHIND_SLASH | SLASH,
            b'.' | b';' => BEHIND_SLASH,
            b'%' | b'"' | b'#' | b'<' | b'>' | b'?' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => SPECIAL,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

fn normalize_escapes(path: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidPath> {
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            push_escaped_unless(byte, is_path_character(byte), out);
            continue;
        }
        match hex_pair(rest) {
            Some(0) => return Err(InvalidPath),
            Some(decoded) => {
                rest = &rest[2..];
                push_escaped_unless(decoded, is_unreserved(decoded), out);
            }
            None => return Err(InvalidPath),
        }
    }
    Ok(())
}

/// A part of a path's pattern as calls have it in the normal form [`NormalForm::Encoded`]: `/küche` as `/k%C3%BCche`. What
/// looks like a broken escape stays.
pub fn encode_pattern(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, hex_pair(rest)) {
            (b'%', Some(decoded)) => {
                rest = &rest[2..];
                push_escaped_unless(decoded, is_unreserved(decoded), &mut out);
            }
            (b'%', None) => out.push(byte),
            _ => push_escaped_unless(byte, is_path_character(byte), &mut out),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn decode_escapes(path: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidPath> {
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match hex_pair(rest) {
            Some(0) | None => return Err(InvalidPath),
            Some(decoded) => {
                rest = &rest[2..];
                out.push(decoded);
            }
        }
    }
    Ok(())
}

/// Resolves `.` and `..` and merges slashes (RFC 3986, 5.2.4); above the root there is nothing.
fn resolve_segments(path: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidPath> {
    let mut segments = path.split(|byte| *byte == b'/').peekable();
    if path.first() == Some(&b'/') {
        segments.next();
    }
    out.push(b'/');
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"" | b"." => {}
            b".." => {
                if out.len() == 1 {
                    return Err(InvalidPath);
                }
                out.pop();
                let parent = out.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                out.truncate(parent + 1);
            }
            segment => {
                out.extend_from_slice(segment);
                if !is_last {
                    out.push(b'/');
                }
            }
        }
    }
    Ok(())
}

/// Whether a segment of `path` is `.` or `..` once its escapes are decoded. Servers differ in whether they resolve
/// those.
pub fn has_dot_segments(path: &[u8]) -> bool {
    let decoded = unescape(path);
    let mut segments = decoded.split(|byte| *byte == b'/');
    segments.any(|segment| matches!(segment, b"." | b".."))
}

/// The form of `path` in which all escapes are decoded but those of slashes, which become `%2F`. `None` if the path
/// has no such escape, or if more than decoding made [`NormalForm::Decoded`] of it, which is `normal`.
pub fn decoded_but_slashes(path: &[u8], normal: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len());
    let mut slashes = Vec::new();
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let decoded = (byte == b'%').then(|| hex_pair(rest)).flatten();
        if decoded.is_some() {
            rest = &rest[2..];
        }
        if decoded == Some(b'/') {
            slashes.push(out.len());
        }
        out.push(decoded.unwrap_or(byte));
    }
    if slashes.is_empty() || out != normal {
        return None;
    }
    let mut kept = Vec::with_capacity(out.len() + 2 * slashes.len());
    let mut done = 0;
    for at in slashes {
        kept.extend_from_slice(&out[done..at]);
        kept.extend_from_slice(b"%2F");
        done = at + 1;
    }
    kept.extend_from_slice(&out[done..]);
    Some(kept)
}

/// Escapes a decoded path so that it can stand in a request target again: controls, space, `#`, `%`, `?`, and
/// everything beyond ASCII.
pub fn escape_path(path: &[u8], out: &mut Vec<u8>) {
    for &byte in path {
        let plain = byte > 0x20 && byte < 0x7f && !matches!(byte, b'#' | b'%' | b'?');
        push_escaped_unless(byte, plain, out);
    }
}

/// Writes `part` of a request target with white space and control characters escaped and the rest as it is.
pub fn escape_controls(part: &[u8], out: &mut Vec<u8>) {
    for &byte in part {
        push_escaped_unless(byte, byte > 0x20 && byte != 0x7f, out);
    }
}

fn push_escaped_unless(byte: u8, plain: bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if plain {
        out.push(byte);
    } else {
        out.extend_from_slice(&[
            b'%',
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]);
    }
}

pub(crate) fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    match bytes {
        [high, low, ..] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => None,
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn is_path_character(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
            b'/' | b':' | b'@' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
        || matches!(byte, b'[' | b']')
}

/// The pairs of a query, as written. A pair without `=` has no value; empty pairs are passed over.
pub fn query_pairs(query: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    query
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.iter().position(|byte| *byte == b'=') {
            Some(at) => (&pair[..at], Some(&pair[at + 1..])),
            None => (pair, None),
        })
}

/// Decodes a part of a query or of a form body: `+` is a space, escapes are decoded, broken ones stay.
pub fn decode_form(text: &[u8]) -> Cow<'_, [u8]> {
    decode(text, b' ')
}

/// Decodes the escapes of any other text: `+` stands for itself, broken escapes stay.
pub fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    decode(text, b'+')
}

/// `plus` is what a `+` stands for.
fn decode(text: &[u8], plus: u8) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, hex_pair(rest)) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                rest = &rest[2..];
            }
            (b'+', _) => out.push(plus),
            (byte, _) => out.push(byte),
        }
    }
    Cow::Owned(out)
}

/// Encodes a part of a query: `+` for a space, escapes for what is not unreserved.
pub fn encode_form(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b' ' => out.push(b'+'),
            byte => push_escaped_unless(byte, is_unreserved(byte), out),
        }
    }
}

/// Encodes a part of a query as scripts of browsers and the originals do: escapes for what is not unreserved, but for
/// `!`, `'`, `(`, `)` and `*`.
pub fn encode_component(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        let is_plain = is_unreserved(byte) || matches!(byte, b'!' | b'\'' | b'(' | b')' | b'*');
        push_escaped_unless(byte, is_plain, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_normal_forms() {
        for (path, encoded, decoded) in [
            ("/a/b", Some("/a/b"), Some("/a/b")),
            ("/a//b/./c/../d", Some("/a/b/d"), Some("/a/b/d")),
            ("/%61%2fb%2F", Some("/a%2Fb%2F"), Some("/a/b/")),
            ("/a%20b", Some("/a%20b"), Some("/a b")),
            ("/..", None, None),
            ("/a/../..", None, None),
            ("/a/..", Some("/"), Some("/")),
            ("/a/.", Some("/a/"), Some("/a/")),
            ("/%2e%2e/x", None, None),
            ("/a/%2E%2E/x", Some("/x"), Some("/x")),
            ("/%00", None, None),
            ("/%zz", None, None),
            ("/.hidden", Some("/.hidden"), Some("/.hidden")),
            ("/%7euser", Some("/~user"), Some("/~user")),
        ] {
            for (form, wanted) in [(NormalForm::Encoded, encoded), (NormalForm::Decoded, decoded)] {
                let mut out = Vec::new();
                let result = form
                    .apply(path.as_bytes(), &mut out)
                    .ok()
                    .map(|()| out.as_slice());
                assert_eq!(
                    result.map(String::from_utf8_lossy).as_deref(),
                    wanted,
                    "{path} {form:?}"
                );
            }
        }
    }

    #[test]
    fn escaped_slashes_can_stay_where_decoding_is_all_that_is_done() {
        for (path, kept, has_dots) in [
            ("/a/b", None, false),
            ("/a%2fb%2F%41", Some("/a%2Fb%2FA"), false),
            ("/a%2F%2Fb", None, false),
            ("/%252F%2F", Some("/%2F%2F"), false),
            ("/a%2F/b", None, false),
            ("//a%2Fb", None, false),
            ("/a%2Fb/../c", None, true),
            ("/a/..%2Fb", None, true),
            ("/a%2Fb/%2E", None, true),
            ("/a/...%2Fb", Some("/a/...%2Fb"), false),
        ] {
            let mut normal = Vec::new();
            NormalForm::Decoded
                .apply(path.as_bytes(), &mut normal)
                .expect("a path");
            let found = decoded_but_slashes(path.as_bytes(), &normal);
            assert_eq!(found.as_deref(), kept.map(str::as_bytes), "{path}");
            assert_eq!(has_dot_segments(path.as_bytes()), has_dots, "{path}");
        }
    }

    #[test]
    fn queries_split_and_decode() {
        let pairs: Vec<_> = query_pairs(b"a=1&b&&c=&d=x=y").collect();
        assert_eq!(
            pairs,
            [
                (&b"a"[..], Some(&b"1"[..])),
                (b"b", None),
                (b"c", Some(b"")),
                (b"d", Some(b"x=y"))
            ]
        );
        for (text, decoded) in [("a+b", "a b"), ("%41%zz", "A%zz"), ("plain", "plain"), ("%", "%")] {
            assert_eq!(decode_form(text.as_bytes()), decoded.as_bytes(), "{text}");
        }
        assert_eq!(unescape(b"a+b%2B%41%zz"), &b"a+b+A%zz"[..]);
        let mut out = Vec::new();
        encode_form(b"a b/2+", &mut out);
        assert_eq!(out, b"a+b%2F2%2B");
        out.clear();
        encode_component("a-b_c.d~!*'()&=/ ü".as_bytes(), &mut out);
        assert_eq!(out, b"a-b_c.d~!*'()%26%3D%2F%20%C3%BC");
    }
}
