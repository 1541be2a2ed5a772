//! The head of a message, split into its lines in one pass (RFC 9112, 2 to 5): the end of each line, and the positions
//! of name and value in it.
//!
//! It does not interpret the lines: `request.rs` and `response.rs` do. Nothing is repaired: every line ends in CRLF, a
//! name is a token directly followed by a colon, a value holds no control character but tab, no line is folded.

use std::ops::Range;
use weir_plugin::Headers;
use weir_plugin::headers::{name_len, value_len};

/// The most field lines in one head.
pub const MAX_FIELDS: usize = 128;

/// One field line, as offsets into the bytes of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: Range<usize>,
    /// Without the white space around it.
    value: Range<usize>,
    /// Behind the line's CRLF.
    end: usize,
    /// Whether the name is of letters, digits, `-` and `_` alone.
    is_plain: bool,
}

/// The content of a place for a field line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Field(Field),
    /// The empty line; the head ends behind it, at this offset.
    Last(usize),
    /// More bytes are needed.
    Partial,
}

/// The reason why a head is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MalformedHead {
    /// It ends in a bare LF.
    BareLf,
    Name,
    Value,
    TooManyFields,
}

/// The start line, without its CRLF, and the offset behind it; `None`: more bytes are needed.
#[inline]
pub fn start_line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, MalformedHead> {
    Ok(line_end(bytes, 0)?.map(|end| (&bytes[..end], end + 2)))
}

/// Reads the field lines from `first` on into `headers`, but those to which `note` says no. Gives the length of the
/// head; `None`: more bytes are needed. `headers` is empty then, as it is after an error.
#[inline]
pub fn field_lines<'b, E: From<MalformedHead>>(
    bytes: &'b [u8],
    first: usize,
    headers: &mut Headers,
    note: impl FnMut(&'b [u8], &'b [u8]) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    headers.clear();
    let read = name_lines(bytes, first, headers, note);
    match read {
        // The loaded part begins with the first field line, so that neighbours are written in one copy.
        Ok(Some(length)) => headers.load(&bytes[first..length]),
        Ok(None) | Err(_) => headers.clear(),
    }
    read
}

#[inline]
fn name_lines<'b, E: From<MalformedHead>>(
    bytes: &'b [u8],
    first: usize,
    headers: &mut Headers,
    mut note: impl FnMut(&'b [u8], &'b [u8]) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let mut from = first;
    for _ in 0..=MAX_FIELDS {
        let field = match field_line(bytes, from)? {
            Line::Field(field) => field,
            Line::Last(length) => return Ok(Some(length)),
            Line::Partial => return Ok(None),
        };
        let (name, value) = (&bytes[field.name.clone()], &bytes[field.value.clone()]);
        let is_wanted = match note(name, value) {
            Ok(is_wanted) => is_wanted,
            Err(error) => return Err(malformed_after(bytes, field.end).map_or(error, E::from)),
        };
        if is_wanted {
            let value = field.value.start - first..field.value.end - first;
            headers.index_line(name, field.name.start - first, value, field.end - first);
            if !field.is_plain {
                headers.note_odd_name();
            }
        }
        from = field.end;
    }
    Err(MalformedHead::TooManyFields.into())
}

/// What is wrong with the lines from `from` on, if anything is: a head that cannot be read is refused as such, and not
/// for what a part of it would have meant. A folded line may be that part.
#[cold]
fn malformed_after(bytes: &[u8], mut from: usize) -> Option<MalformedHead> {
    loop {
        match field_line(bytes, from) {
            Ok(Line::Field(field)) => from = field.end,
            Ok(Line::Last(_) | Line::Partial) => return None,
            Err(broken) => return Some(broken),
        }
    }
}

/// The line that begins at `from`, after the start line.
// Its result is passed in registers only if it is inlined.
#[inline(always)]
fn field_line(bytes: &[u8], from: usize) -> Result<Line, MalformedHead> {
    let (length, is_plain) = name_len(&bytes[from..]);
    let colon = from + length;
    match bytes.get(colon) {
        Some(b':') if colon > from => {}
        _ => return end_of_fields(bytes, from, colon),
    }
    let start = colon + 1;
    let Some(end) = line_end(bytes, start)? else {
        return Ok(Line::Partial);
    };
    let value = match &bytes[start..end] {
        // Most values have one space before them, and none behind.
        [b' ', first, .., last] if !is_blank(*first) && !is_blank(*last) => start + 1..end,
        value => {
            let leading = value.iter().take_while(|byte| is_blank(**byte)).count();
            let trailing = value[leading..].iter().rev().take_while(|byte| is_blank(**byte));
            start + leading..end - trailing.count()
        }
    };
    Ok(Line::Field(Field {
        name: from..colon,
        value,
        end: end + 2,
        is_plain,
    }))
}

/// The content of the line that begins at `from`, if no colon follows the name at `at`.
fn end_of_fields(bytes: &[u8], from: usize, at: usize) -> Result<Line, MalformedHead> {
    match &bytes[at..] {
        [] => Ok(Line::Partial),
        [b'\r', b'\n', ..] if at == from => Ok(Line::Last(from + 2)),
        [b'\r'] if at == from => Ok(Line::Partial),
        [b'\n', ..] => Err(MalformedHead::BareLf),
        _ => Err(MalformedHead::Name),
    }
}

/// Where the line that goes on at `from` ends, before its CRLF. Up to there it holds no control character but tab.
#[inline]
fn line_end(bytes: &[u8], from: usize) -> Result<Option<usize>, MalformedHead> {
    let end = from + value_len(&bytes[from..]);
    match &bytes[end..] {
        [b'\r', b'\n', ..] => Ok(Some(end)),
        [] | [b'\r'] => Ok(None),
        [b'\n', ..] => Err(MalformedHead::BareLf),
        _ => Err(MalformedHead::Value),
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of a line: name, value, length; or why not.
    fn read(line: &str) -> Result<(String, String, usize), String> {
        let bytes = format!("abc{line}");
        match field_line(bytes.as_bytes(), 3) {
            Ok(Line::Field(field)) => Ok((
                bytes[field.name].to_owned(),
                bytes[field.value].to_owned(),
                field.end - 3,
            )),
            Ok(other) => Err(format!("{other:?}")),
            Err(broken) => Err(format!("{broken:?}")),
        }
    }

    #[test]
    fn lines_are_split_or_refused() {
        for (line, expected) in [
            ("a: b\r\nc", Ok(("a", "b", 6))),
            ("a:b\r\n", Ok(("a", "b", 5))),
            ("a:\r\n", Ok(("a", "", 4))),
            ("a: \t \r\n", Ok(("a", "", 7))),
            ("A-b:\t b  c\t \r\n", Ok(("A-b", "b  c", 14))),
            ("a: b:c: d\r\n", Ok(("a", "b:c: d", 11))),
            ("a: \u{e9}\r\n", Ok(("a", "\u{e9}", 7))),
            ("\r\nrest", Err("Last(5)")),
            ("", Err("Partial")),
            ("a: b", Err("Partial")),
            ("a: b\r", Err("Partial")),
            ("\n", Err("BareLf")),
            ("a: b\nc: d\r\n", Err("BareLf")),
            ("a: b\r\r\n", Err("Value")),
            ("a: b\rc\r\n", Err("Value")),
            ("a: \0\r\n", Err("Value")),
            ("a: \u{7f}\r\n", Err("Value")),
            (
                "a: long enough to be looked at in pieces \x01 and on\r\n",
                Err("Value"),
            ),
            ("a : b\r\n", Err("Name")),
            (" a: b\r\n", Err("Name")),
            ("\ta: b\r\n", Err("Name")),
            (": b\r\n", Err("Name")),
            ("a\r\n", Err("Name")),
            ("a b\r\n", Err("Name")),
            ("a(b): c\r\n", Err("Name")),
            ("\r\r\n", Err("Name")),
        ] {
            let read = read(line);
            let read = read
                .as_ref()
                .map(|(name, value, end)| (name.as_str(), value.as_str(), *end));
            assert_eq!(read.map_err(String::as_str), expected, "{line:?}");
        }
    }
}
