//! Strings in HPACK's Huffman code (RFC 7541, appendix B). Only decoding: the gateway writes plain strings, which costs
//! a few bytes and no time.
//!
//! The code is canonical: codes of one length are consecutive, in the order of their symbols, and come after all
//! shorter ones. So the lengths alone define the code.

use super::Malformed;

/// Bits that one look into the table takes in; the symbols of usual text have no more.
const LOOK: u32 = 10;
/// Bits of the shortest code, and of the longest.
const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// By symbol: bits of its code.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// What there is to know of the code.
struct Code {
    /// By the next [`LOOK`] bits: the symbol, and the length of its code in bits; 0 if the code is longer.
    short: [(u8, u8); 1 << LOOK],
    /// By length: the first code, the symbol's place in `symbols`, and how many there are.
    by_length: [(u32, u16, u16); LONGEST + 1],
    /// Symbols in the order of their codes.
    symbols: [u8; 256],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut made = Code {
        short: [(0, 0); 1 << LOOK],
        by_length: [(0, 0, 0); LONGEST + 1],
        symbols: [0; 256],
    };
    let (mut next, mut place, mut length) = (0u32, 0, 1);
    while length <= LONGEST {
        next <<= 1;
        let (first, first_place) = (next, place);
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                made.symbols[place] = symbol as u8;
                if length as u32 <= LOOK {
                    let rest = LOOK - length as u32;
                    let mut at = (next as usize) << rest;
                    let end = at + (1 << rest);
                    while at < end {
                        made.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        made.by_length[length] = (first, first_place as u16, (place - first_place) as u16);
        length += 1;
    }
    made
}

/// Decodes a string behind what `out` has.
///
/// # Errors
/// It is not in this code, or is not filled up as it must be (RFC 7541, 5.2).
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let from = out.len();
    // No symbol has fewer bits.
    out.resize(from + coded.len() * 8 / SHORTEST, 0);
    let mut places = out[from..].iter_mut();
    let result = decode_into(coded, &mut places);
    let unused = places.len();
    out.truncate(out.len() - unused);
    result
}

fn decode_into<'o>(coded: &[u8], places: &mut impl Iterator<Item = &'o mut u8>) -> Result<(), Malformed> {
    // The next bits stand at the top.
    let (mut bits, mut count) = (0u64, 0u32);
    let mut rest = coded;
    loop {
        match rest.split_first_chunk::<4>() {
            Some((four, behind)) if count <= 32 => {
                bits |= u64::from(u32::from_be_bytes(*four)) << (32 - count);
                (rest, count) = (behind, count + 32);
            }
            _ => {
                while count <= 56
                    && let Some((byte, behind)) = rest.split_first()
                {
                    bits |= u64::from(*byte) << (56 - count);
                    (rest, count) = (behind, count + 8);
                }
            }
        }
        // As long as one look takes in nothing but what has come.
        while count >= LOOK {
            let (symbol, length) = CODE.short[(bits >> (64 - LOOK)) as usize];
            if length == 0 {
                break;
            }
            *places.next().ok_or(Malformed)? = symbol;
            bits <<= length;
            count -= u32::from(length);
        }
        if count <= 32 && !rest.is_empty() {
            continue;
        }
        let (symbol, length) = match CODE.short[(bits >> (64 - LOOK)) as usize] {
            (_, 0) => match long(bits) {
                Some(found) => found,
                None => return end(bits, count),
            },
            (symbol, length) => (symbol, u32::from(length)),
        };
        if length > count {
            return end(bits, count);
        }
        *places.next().ok_or(Malformed)? = symbol;
        bits <<= length;
        count -= length;
    }
}

/// The symbol of a code that is longer than [`LOOK`] bits.
fn long(bits: u64) -> Option<(u8, u32)> {
    (LOOK as usize + 1..=LONGEST).find_map(|length| {
        let (first, place, symbols) = CODE.by_length[length];
        let behind = ((bits >> (64 - length)) as u32).checked_sub(first)?;
        let is_one = behind < u32::from(symbols);
        is_one.then(|| (CODE.symbols[usize::from(place) + behind as usize], length as u32))
    })
}

/// What is left at the end is less than a byte, and ones.
fn end(bits: u64, count: u32) -> Result<(), Malformed> {
    let is_filled = count < 8 && bits.leading_ones() >= count;
    is_filled.then_some(()).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_the_specification() {
        let cases: [(&[u8], Option<&str>); 8] = [
            (
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ],
                Some("www.example.com"),
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], Some("no-cache")),
            (&[0x64, 0x02], Some("302")),
            (
                &[
                    0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81,
                    0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
                ],
                Some("Mon, 21 Oct 2013 20:13:21 GMT"),
            ),
            (&[], Some("")),
            // Filled up with zeros, with a byte too many, with the code for the end.
            (&[0x18], None),
            (&[0x64, 0x02, 0xff], None),
            (&[0xff, 0xff, 0xff, 0xff], None),
        ];
        for (coded, wanted) in cases {
            let mut out = Vec::new();
            let decoded = decode(coded, &mut out).map(|()| String::from_utf8(out).unwrap());
            assert_eq!(decoded.ok().as_deref(), wanted, "{coded:x?}");
        }
    }

    #[test]
    fn every_symbol_has_its_code() {
        for symbol in 0..=255u8 {
            let length = usize::from(LENGTHS[usize::from(symbol)]);
            let (first, place, count) = CODE.by_length[length];
            let places = usize::from(place)..usize::from(place + count);
            let at = CODE.symbols[places].iter().position(|it| *it == symbol).unwrap();
            let code = u64::from(first + at as u32) << (64 - length);
            let filled = code | (u64::MAX >> length);
            let coded = &filled.to_be_bytes()[..length.div_ceil(8)];
            let mut out = Vec::new();
            assert!(decode(coded, &mut out).is_ok(), "{symbol}");
            assert_eq!(out, [symbol]);
        }
    }
}
