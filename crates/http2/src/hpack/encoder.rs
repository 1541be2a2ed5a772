//! Writes field lists. Nothing is kept at the peer, and strings are plain: a list costs little more than a copy of its
//! lines, and does not depend on those before.

use super::push_number;
use crate::fields::belongs;
use crate::frame;
use weir_plugin::headers::{is_token, token_len, value_len};

/// Names longer than this are in no table.
const LONGEST_FIXED: usize = 27;
/// Bytes that most names and values have at the most.
const SHORT: usize = 32;
/// A name that is longer is no header of anybody's.
const MAX_NAME: usize = 256;

/// Writes a status.
pub fn push_status(status: u16, out: &mut Vec<u8>) {
    let fixed = match status {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        _ => {
            out.extend_from_slice(&[8, 3]);
            let digit = |unit| b'0' + (status / unit % 10) as u8;
            out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
            return;
        }
    };
    out.push(0x80 | fixed);
}

/// Writes a field of the fixed table.
pub fn push_indexed(number: u8, out: &mut Vec<u8>) {
    out.push(0x80 | number);
}

/// Writes a field whose name has a number in the fixed table.
pub fn push_field(number: u8, value: &[u8], out: &mut Vec<u8>) {
    push_number(usize::from(number), 4, 0, out);
    push_value(value, out);
}

/// Writes header lines. `Host` is left out, and what belongs to an HTTP/1.1 connection.
pub fn push_lines(lines: &[u8], out: &mut Vec<u8>) {
    out.reserve(lines.len() + 2 * SHORT);
    let mut rest = lines;
    while !rest.is_empty() {
        rest = push_line(rest, out).unwrap_or_else(|| next_line(rest));
    }
}

/// What is behind a line that makes no field.
#[cold]
fn next_line(lines: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', lines).map_or(&[], |end| &lines[end + 1..])
}

/// Writes the field of the first line, unless it may not stand there; gives what is behind the line. `None`: it makes no
/// field.
#[inline]
fn push_line<'l>(lines: &'l [u8], out: &mut Vec<u8>) -> Option<&'l [u8]> {
    let mut room = [0; SHORT];
    let name_len = copy_lower(lines, &mut room);
    let long;
    let (name, value) = match lines[name_len..].split_first()? {
        (b':', value) => (&room[..name_len], value),
        (byte, _) if name_len == SHORT && is_token(*byte) => {
            let value;
            (long, value) = long_name(lines)?;
            (&long[..], value)
        }
        _ => return None,
    };
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let length = value_len(value);
    let next = value[length..].strip_prefix(b"\r\n")?;
    match number_of(name) {
        Some(number) => push_number(usize::from(number), 4, 0, out),
        None if name == b"host" || !belongs(name, value[..length].trim_ascii()) => return Some(next),
        None => {
            out.push(0);
            push_number(name.len(), 7, 0, out);
            match name.len() <= SHORT {
                true => push_start(&room, name.len(), out),
                false => out.extend_from_slice(name),
            }
        }
    }
    match value[..length].trim_ascii() {
        trimmed if trimmed.len() < length => push_value(trimmed, out),
        _ => {
            push_number(length, 7, 0, out);
            push_start(value, length, out);
        }
    }
    Some(next)
}

/// The name of the first line, which is longer than most, in lower case; and what is behind its colon.
#[cold]
fn long_name(lines: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (name, behind) = lines.split_at(token_len(lines));
    let value = behind.strip_prefix(b":").filter(|_| name.len() <= MAX_NAME)?;
    Some((name.to_ascii_lowercase(), value))
}

/// Writes the first bytes of `text`. Most strings are short, and a copy of fixed size costs less than one of theirs.
#[inline]
fn push_start(text: &[u8], length: usize, out: &mut Vec<u8>) {
    match text.first_chunk::<SHORT>() {
        Some(chunk) if length <= SHORT => {
            let end = out.len() + length;
            out.extend_from_slice(chunk);
            out.truncate(end);
        }
        _ => out.extend_from_slice(&text[..length]),
    }
}

/// Copies the token with which `text` begins, in lower case and as far as there is room; gives its length.
#[inline]
fn copy_lower(text: &[u8], room: &mut [u8; SHORT]) -> usize {
    let mut length = 0;
    while let (Some(chunk), Some(place)) = (text[length..].first_chunk(), room[length..].first_chunk_mut()) {
        let (lower, others) = lower_letters(*chunk);
        *place = lower;
        length += others.trailing_zeros() as usize / 8;
        if others != 0 {
            if !is_token(text[length]) {
                return length;
            }
            // It is there already: only letters have another case.
            length += 1;
        }
    }
    while let (Some(byte), Some(place)) = (text.get(length), room.get_mut(length))
        && is_token(*byte)
    {
        *place = byte.to_ascii_lowercase();
        length += 1;
    }
    length
}

/// Eight bytes at once: with their letters in lower case; and the highest bit of each that is neither a letter nor a
/// hyphen. No addition carries into the next byte.
#[inline]
fn lower_letters(bytes: [u8; 8]) -> ([u8; 8], u64) {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGHEST: u64 = EACH << 7;
    let bytes = u64::from_le_bytes(bytes);
    let ascii = bytes & !HIGHEST;
    let lower = ascii | (EACH * 0x20);
    let from_a_to_z = (lower + EACH * (0x80 - b'a') as u64) & !(lower + EACH * (0x7f - b'z') as u64);
    let letters = from_a_to_z & !bytes & HIGHEST;
    let no_hyphens = (ascii ^ (EACH * b'-' as u64)) + EACH * 0x7f;
    let others = (bytes | (!letters & no_hyphens)) & HIGHEST;
    ((bytes | letters >> 2).to_le_bytes(), others)
}

fn push_value(value: &[u8], out: &mut Vec<u8>) {
    push_number(value.len(), 7, 0, out);
    out.extend_from_slice(value);
}

/// Writes the head of a HEADERS frame before the list that begins at `from`, into the room left for it. A list that is
/// longer than a frame may be goes on in CONTINUATION frames.
pub fn end_frame(from: usize, flags: u8, stream: u32, max_frame: usize, out: &mut Vec<u8>) {
    let at = from - frame::HEAD_BYTES;
    let length = out.len() - from;
    if length <= max_frame {
        frame::put_head(
            &mut out[at..from],
            length,
            frame::HEADERS,
            flags | frame::END_HEADERS,
            stream,
        );
        return;
    }
    let list = out.split_off(from);
    let (first, rest) = list.split_at(max_frame);
    frame::put_head(&mut out[at..from], max_frame, frame::HEADERS, flags, stream);
    out.extend_from_slice(first);
    let mut parts = rest.chunks(max_frame).peekable();
    while let Some(part) = parts.next() {
        let flags = match parts.peek() {
            Some(_) => 0,
            None => frame::END_HEADERS,
        };
        frame::push_head(out, part.len(), frame::CONTINUATION, flags, stream);
        out.extend_from_slice(part);
    }
}

/// The number of a name in the fixed table.
fn number_of(name: &[u8]) -> Option<u8> {
    if name.len() > LONGEST_FIXED {
        return None;
    }
    Some(match name {
        b"accept-charset" => 15,
        b"accept-encoding" => 16,
        b"accept-language" => 17,
        b"accept-ranges" => 18,
        b"accept" => 19,
        b"access-control-allow-origin" => 20,
        b"age" => 21,
        b"allow" => 22,
        b"authorization" => 23,
        b"cache-control" => 24,
        b"content-disposition" => 25,
        b"content-encoding" => 26,
        b"content-language" => 27,
        b"content-length" => 28,
        b"content-location" => 29,
        b"content-range" => 30,
        b"content-type" => 31,
        b"cookie" => 32,
        b"date" => 33,
        b"etag" => 34,
        b"expect" => 35,
        b"expires" => 36,
        b"from" => 37,
        b"if-match" => 39,
        b"if-modified-since" => 40,
        b"if-none-match" => 41,
        b"if-range" => 42,
        b"if-unmodified-since" => 43,
        b"last-modified" => 44,
        b"link" => 45,
        b"location" => 46,
        b"max-forwards" => 47,
        b"proxy-authenticate" => 48,
        b"proxy-authorization" => 49,
        b"range" => 50,
        b"referer" => 51,
        b"refresh" => 52,
        b"retry-after" => 53,
        b"server" => 54,
        b"set-cookie" => 55,
        b"strict-transport-security" => 56,
        b"user-agent" => 58,
        b"vary" => 59,
        b"via" => 60,
        b"www-authenticate" => 61,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::super::table::FIXED;
    use super::*;

    fn decoded(block: &[u8]) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let take = |name: &[u8], value: &[u8], _| {
            all.push((text(name), text(value)));
            true
        };
        Decoder::default().decode(block, take).unwrap();
        all
    }

    #[test]
    fn numbers_are_those_of_the_table() {
        for (name, _) in FIXED {
            if let Some(number) = number_of(name.as_bytes()) {
                assert_eq!(FIXED[usize::from(number) - 1].0, name);
            }
        }
    }

    #[test]
    fn lines_become_fields() {
        let lines = b"Host: a\r\nContent-Type:  text/plain \r\nX-Empty:\r\nConnection: close\r\nTE: gzip\r\nte: trailers\r\n\
                      X y: 1\r\nX-\xc3: 1\r\nX-Long-Name-That-No-One-Has-In-A-Table: 2\r\n";
        let mut out = Vec::new();
        push_status(200, &mut out);
        push_status(418, &mut out);
        push_lines(lines, &mut out);
        let found = decoded(&out);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, value)| (&name[..], &value[..]))
            .collect();
        assert_eq!(
            found,
            [
                (":status", "200"),
                (":status", "418"),
                ("content-type", "text/plain"),
                ("x-empty", ""),
                ("te", "trailers"),
                ("x-long-name-that-no-one-has-in-a-table", "2"),
            ]
        );
    }

    #[test]
    fn names_of_every_length_and_byte() {
        for length in 1..70 {
            for byte in 0..=255 {
                let at = usize::from(byte) % length;
                let mut name = vec![b"aZ-z"[length % 4]; length];
                name[at] = byte;
                let lines = [&b"a: 1\r\n"[..], &name, b": v\r\nb:\r\n"].concat();
                let mut out = Vec::new();
                push_lines(&lines, &mut out);
                let found = decoded(&out);
                let mut wanted = vec![("a".to_owned(), "1".to_owned())];
                if is_token(byte) {
                    let name = String::from_utf8(name.to_ascii_lowercase()).unwrap();
                    wanted.push((name, "v".to_owned()));
                }
                wanted.push(("b".to_owned(), String::new()));
                // A line feed ends a line at any place, and a colon ends a name.
                if !matches!(byte, b'\n' | b':') {
                    assert_eq!(found, wanted, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn values_of_every_length() {
        for length in 0..300 {
            let value = "v".repeat(length);
            for (before, after) in [("", ""), (" ", ""), ("  ", ""), ("\t", " "), (" ", "  ")] {
                for behind in ["", "b: 2\r\n", &"c: 3\r\n".repeat(9)] {
                    let lines = format!("a:{before}{value}{after}\r\n{behind}");
                    let mut out = Vec::new();
                    push_lines(lines.as_bytes(), &mut out);
                    assert_eq!(decoded(&out)[0], ("a".to_owned(), value.clone()), "{lines:?}");
                    assert_eq!(decoded(&out).len(), lines.lines().count());
                }
            }
        }
    }

    #[test]
    fn long_lists_go_on() {
        let mut out = vec![0; frame::HEAD_BYTES];
        let line = format!("x-a: {}\r\n", "v".repeat(250));
        push_lines(line.as_bytes(), &mut out);
        let list = out[frame::HEAD_BYTES..].to_vec();
        end_frame(frame::HEAD_BYTES, frame::END_STREAM, 1, 100, &mut out);
        let mut found = Vec::new();
        let mut rest = &out[..];
        let mut kinds = Vec::new();
        while let Some(head) = frame::Head::read(rest) {
            kinds.push((head.kind, head.flags));
            let (this, behind) = rest[frame::HEAD_BYTES..].split_at(head.length);
            found.extend_from_slice(this);
            rest = behind;
        }
        assert_eq!(found, list);
        assert_eq!(
            kinds,
            [
                (frame::HEADERS, frame::END_STREAM),
                (frame::CONTINUATION, 0),
                (frame::CONTINUATION, frame::END_HEADERS)
            ]
        );
    }
}
