//! Decodes field lists of HPACK (RFC 7541), each with the state that earlier ones left. The meaning of fields does not
//! matter here.

use super::table::{self, DynamicTable, TableEntry, ValidationHint};
use super::{Malformed, huffman, read_number};

/// The table size for a peer (`SETTINGS_HEADER_TABLE_SIZE`): the default, which need not be announced.
const TABLE_BYTES: usize = 4096;
/// Bytes of a string that are kept room for.
const USUAL_STRING: usize = 4096;

/// Reads the field lists of one direction of a connection, of which each builds on those before.
pub struct Decoder {
    kept: DynamicTable,
    /// For strings that have to be decoded.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            kept: DynamicTable::new(TABLE_BYTES),
            name: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl Decoder {
    /// Reads a whole list; `take` gets each field, with what is known of it, and says whether it is good.
    ///
    /// # Errors
    /// It is no list. The connection is of no further use then.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        mut take: impl FnMut(&[u8], &[u8], ValidationHint) -> bool,
    ) -> Result<(), Malformed> {
        let mut may_resize = true;
        while let Some(first) = block.first() {
            match first {
                0x80.. => {
                    let (number, rest) = read_number(block, 7)?;
                    let TableEntry { name, value, known } = self.kept.get(number).ok_or(Malformed)?;
                    take(name, value, known);
                    block = rest;
                }
                0x20..0x40 => {
                    // Only at the beginning (RFC 7541, 4.2).
                    let (size, rest) = read_number(block, 5)?;
                    if !may_resize || size > TABLE_BYTES {
                        return Err(Malformed);
                    }
                    self.kept.resize(size);
                    block = rest;
                    continue;
                }
                _ => block = self.literal(block, &mut take)?,
            }
            may_resize = false;
        }
        // One large string must not hold memory for as long as the connection lives.
        self.name.shrink_to(USUAL_STRING);
        self.value.shrink_to(USUAL_STRING);
        Ok(())
    }

    fn literal<'b>(
        &mut self,
        block: &'b [u8],
        take: &mut impl FnMut(&[u8], &[u8], ValidationHint) -> bool,
    ) -> Result<&'b [u8], Malformed> {
        let is_kept = block[0] & 0x40 != 0;
        let (number, rest) = read_number(block, if is_kept { 6 } else { 4 })?;
        let (name, known, rest) = if number == 0 {
            let (name, rest) = read_string(rest, &mut self.name)?;
            (name, ValidationHint::Nothing, rest)
        } else if let Some((name, _)) = table::fixed(number) {
            (name, ValidationHint::Name, rest)
        } else {
            let found = self.kept.get(number).ok_or(Malformed)?;
            // A place of its own: keeping the field may push the one out whose name it has.
            self.name.clear();
            self.name.extend_from_slice(found.name);
            let known = match found.known {
                ValidationHint::Field => ValidationHint::Name,
                known => known,
            };
            (&self.name[..], known, rest)
        };
        let (value, rest) = read_string(rest, &mut self.value)?;
        let is_good = take(name, value, known);
        if is_kept {
            self.kept.keep(name, value, is_good);
        }
        Ok(rest)
    }
}

/// Reads a string, into `space` if it has to be decoded. Returns the string and the rest.
fn read_string<'b: 's, 's>(
    block: &'b [u8],
    space: &'s mut Vec<u8>,
) -> Result<(&'s [u8], &'b [u8]), Malformed> {
    let is_coded = block.first().ok_or(Malformed)? & 0x80 != 0;
    let (length, rest) = read_number(block, 7)?;
    let (string, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
    if !is_coded {
        return Ok((string, rest));
    }
    space.clear();
    huffman::decode(string, space)?;
    Ok((space, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<String, Malformed> {
        let mut all = String::new();
        decoder.decode(block, |name, value, _| {
            let line = format!(
                "{}: {}\n",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value)
            );
            all.push_str(&line);
            true
        })?;
        Ok(all)
    }

    #[test]
    fn lists_of_the_specification() {
        // RFC 7541, C.4: requests on one connection, in the Huffman code.
        let mut decoder = Decoder::default();
        for (block, wanted) in [
            (
                &[
                    0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90,
                    0xf4, 0xff,
                ][..],
                ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n",
            ),
            (
                &[
                    0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf,
                ],
                ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache\n",
            ),
            (
                &[
                    0x82, 0x87, 0x85, 0xbf, 0x40, 0x88, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f, 0x89,
                    0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf,
                ],
                ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n\
                 custom-key: custom-value\n",
            ),
        ] {
            assert_eq!(decode(&mut decoder, block).as_deref(), Ok(wanted));
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut decoder = Decoder::default();
        let large = "v".repeat(1500);
        for name in ["a", "b", "c"] {
            let mut block = vec![0x40, 1, name.as_bytes()[0], 127];
            block.extend_from_slice(&[0xdd, 0x0a]);
            block.extend_from_slice(large.as_bytes());
            assert!(decode(&mut decoder, &block).unwrap().starts_with(name));
        }
        assert!(decode(&mut decoder, &[0xbe]).unwrap().starts_with("c: "));
        assert!(decode(&mut decoder, &[0xbf]).unwrap().starts_with("b: "));
        assert_eq!(decode(&mut decoder, &[0xc0]), Err(Malformed));
        // Nothing is kept any more.
        assert_eq!(decode(&mut decoder, &[0x20]).as_deref(), Ok(""));
        assert_eq!(decode(&mut decoder, &[0xbe]), Err(Malformed));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for block in [
            &[0x80][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xbe],
            &[0x82, 0x20],
            &[0x3f, 0xe2, 0x1f],
            &[0x00],
            &[0x00, 0x05, b'a'],
            &[0x00, 0x01, b'a', 0x81],
            &[0x00, 0x01, b'a', 0x81, 0x00],
        ] {
            assert_eq!(
                decode(&mut Decoder::default(), block),
                Err(Malformed),
                "{block:x?}"
            );
        }
    }
}
