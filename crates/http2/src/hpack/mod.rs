//! HPACK (RFC 7541): how HTTP/2 writes field lists.

mod decoder;
mod encoder;
mod huffman;
mod table;

pub use decoder::Decoder;
pub use encoder::{end_frame, push_field, push_indexed, push_lines, push_status};
pub use table::ValidationHint;

/// What is no field list. Nothing that comes later on the connection can be read either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Reads a number whose first byte has `bits` bits for it (RFC 7541, 5.1); gives it and what is behind.
fn read_number(bytes: &[u8], bits: u32) -> Result<(usize, &[u8]), Malformed> {
    let (first, mut rest) = bytes.split_first().ok_or(Malformed)?;
    let most = u8::MAX >> (8 - bits);
    let mut number = usize::from(first & most);
    if number < usize::from(most) {
        return Ok((number, rest));
    }
    // Nothing that is read here is larger than what four bytes can say.
    for shift in [0, 7, 14, 21] {
        let (byte, behind) = rest.split_first().ok_or(Malformed)?;
        number += usize::from(byte & 0x7f) << shift;
        rest = behind;
        if byte & 0x80 == 0 {
            return Ok((number, rest));
        }
    }
    Err(Malformed)
}

/// Writes a number whose first byte is `first` beside the `bits` bits for it.
#[inline]
fn push_number(number: usize, bits: u32, first: u8, out: &mut Vec<u8>) {
    let most = usize::from(u8::MAX >> (8 - bits));
    if number < most {
        out.push(first | number as u8);
        return;
    }
    out.push(first | most as u8);
    push_rest(number - most, out);
}

/// Writes what its first byte has no room for.
fn push_rest(mut rest: usize, out: &mut Vec<u8>) {
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_specification() {
        for (number, bits, coded) in [
            (10, 5, &[10u8][..]),
            (1337, 5, &[31, 154, 10]),
            (42, 8, &[42]),
            (31, 5, &[31, 0]),
            (127, 7, &[127, 0]),
        ] {
            let mut out = Vec::new();
            push_number(number, bits, 0, &mut out);
            assert_eq!(out, coded);
            out.push(7);
            assert_eq!(read_number(&out, bits), Ok((number, &[7][..])));
        }
        for broken in [
            &[][..],
            &[31],
            &[31, 0x80],
            &[31, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(read_number(broken, 5), Err(Malformed), "{broken:?}");
        }
    }
}
