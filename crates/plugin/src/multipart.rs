//! Bodies in parts: `multipart/form-data` (RFC 7578). Lines may end in LF alone, and the last boundary may be
//! missing.

use memchr::{memchr, memmem};

/// A part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'b> {
    /// Its header lines, without the empty line behind them.
    pub head: &'b [u8],
    /// What it carries.
    pub content: &'b [u8],
}

impl<'b> Part<'b> {
    /// The name of the form's field.
    pub fn name(&self) -> Option<&'b [u8]> {
        let lines = self.head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut dispositions = lines.filter_map(|line| {
            let (field, value) = line.split_at_checked(memchr(b':', line)?)?;
            field
                .eq_ignore_ascii_case(b"content-disposition")
                .then_some(&value[1..])
        });
        dispositions.find_map(|value| parameter(value, b"name"))
    }
}

/// The boundary in a `Content-Type`.
pub fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    parameter(content_type, b"boundary")
}

/// The parts of a body. What is no part is passed over.
pub fn parts<'b>(body: &'b [u8], boundary: &[u8]) -> Vec<Part<'b>> {
    let delimiter = [b"--", boundary].concat();
    let mut marks = memmem::find_iter(body, &delimiter)
        .filter(|at| *at == 0 || body[at - 1] == b'\n')
        .peekable();
    let mut found = Vec::new();
    while let Some(mark) = marks.next() {
        let text = &body[mark + delimiter.len()..marks.peek().copied().unwrap_or(body.len())];
        if text.starts_with(b"--") {
            break;
        }
        let Some(line_end) = memchr(b'\n', text) else {
            continue;
        };
        let text = &text[line_end + 1..];
        let content = |end: usize, gap: usize| {
            // The line's end before a boundary belongs to the boundary.
            let content = text.get(end + gap..).unwrap_or_default();
            let content = content.strip_suffix(b"\n").unwrap_or(content);
            content.strip_suffix(b"\r").unwrap_or(content)
        };
        let (crlf, lf) = (memmem::find(text, b"\r\n\r\n"), memmem::find(text, b"\n\n"));
        let part = match (crlf, lf) {
            (Some(end), lf) if lf.is_none_or(|lf| end < lf) => Part {
                head: &text[..end],
                content: content(end, 4),
            },
            (_, Some(end)) => Part {
                head: &text[..end],
                content: content(end, 2),
            },
            _ => continue,
        };
        found.push(part);
    }
    found
}

/// The value of parameter `name` after a header's first `;`, quoted or not. Empty values count as missing.
fn parameter<'h>(header: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    let mut rest = header;
    loop {
        rest = behind_semicolon(rest)?;
        let end = rest.iter().position(|byte| matches!(byte, b'=' | b';'))?;
        if rest[end] == b';' || !rest[..end].trim_ascii().eq_ignore_ascii_case(name) {
            continue;
        }
        let value = rest[end + 1..].trim_ascii_start();
        let value = match value.strip_prefix(b"\"") {
            Some(quoted) => &quoted[..memchr(b'"', quoted)?],
            None => value[..memchr(b';', value).unwrap_or(value.len())].trim_ascii_end(),
        };
        return (!value.is_empty()).then_some(value);
    }
}

/// What follows the next `;` that stands in no quotes.
fn behind_semicolon(text: &[u8]) -> Option<&[u8]> {
    let mut in_quotes = false;
    let at = text.iter().position(|byte| {
        in_quotes ^= *byte == b'"';
        *byte == b';' && !in_quotes
    })?;
    Some(&text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found() {
        for (body, wanted) in [
            ("", vec![]),
            ("--B", vec![]),
            ("--B--\r\n", vec![]),
            (
                "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n\
                 content-disposition: form-data; name=k\r\nContent-Type: text/plain\r\n\r\nv\r\nw\r\n--B--\r\nafter",
                vec![(Some("a"), "1"), (Some("k"), "v\r\nw")],
            ),
            (
                "before\n--B\nContent-Disposition: form-data; name=\"a\"\n\n1\n\n2\n--B--",
                vec![(Some("a"), "1\n\n2")],
            ),
            (
                "--B\r\nContent-Disposition: form-data; filename=\"x; name=no\"; name=\"a;b\"\r\n\r\n1",
                vec![(Some("a;b"), "1")],
            ),
            ("--B\r\nX: y\r\n\r\n--B-- is text\r\n--B--", vec![(None, "")]),
            (
                "--B\r\nX: y\r\n\r\nnot --B here\r\n--B--",
                vec![(None, "not --B here")],
            ),
            ("--B\r\nno empty line\r\n--B--", vec![]),
        ] {
            let parts = parts(body.as_bytes(), b"B");
            let seen: Vec<_> = parts
                .iter()
                .map(|part| {
                    (
                        part.name().map(String::from_utf8_lossy),
                        String::from_utf8_lossy(part.content),
                    )
                })
                .collect();
            let wanted: Vec<_> = wanted
                .into_iter()
                .map(|(name, content)| (name.map(Into::into), content.into()))
                .collect();
            assert_eq!(seen, wanted, "{body}");
        }
    }

    #[test]
    fn boundaries_are_read() {
        for (content_type, wanted) in [
            ("multipart/form-data; boundary=X", Some("X")),
            (
                "multipart/form-data; charset=utf-8; Boundary = \"a;b\" ; y=z",
                Some("a;b"),
            ),
            ("multipart/form-data; boundary=", None),
            ("multipart/form-data; boundary=\"x", None),
            ("multipart/form-data", None),
            ("multipart/form-data; x", None),
        ] {
            let seen = boundary(content_type.as_bytes()).map(String::from_utf8_lossy);
            assert_eq!(seen.as_deref(), wanted, "{content_type}");
        }
    }
}
