//! A place in a JSON text that moves from token to token. It knows tokens, not what may follow what.

/// A place in a text.
#[derive(Debug, Clone)]
pub struct Cursor<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Cursor<'t> {
    /// The beginning of a text.
    pub fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// How many bytes stand before it.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes the next byte if it is this one, and says whether it is.
    #[inline]
    pub fn pass_if(&mut self, byte: u8) -> bool {
        // A branch, which is foreseen; the next step would have to wait for a sum.
        if self.peek() == Some(byte) {
            self.at += 1;
            return true;
        }
        false
    }

    /// Passes so many bytes. Beyond the end there is nothing more to read.
    #[inline]
    pub fn pass(&mut self, count: usize) {
        self.at += count;
    }

    /// A part of the text; empty if it has no such part.
    pub fn between(&self, start: usize, end: usize) -> &'t [u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Passes white space.
    #[inline]
    pub fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Goes to the next quote, backslash or control character of a text, or to the end. Most texts are short: eight bytes at
    /// a time are faster for them than a search that is made for long ones.
    #[inline]
    pub fn skip_plain(&mut self) {
        const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
        const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
        // The lowest mark is at the first byte of the word that is below `limit`; marks above it may be wrong.
        let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS;
        while let Some(next) = self.text.get(self.at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*next);
            let quote = below(word ^ (ONES * u64::from(b'"')), 1);
            let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
            let found = quote | backslash | below(word, b' ');
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8;
                return;
            }
            self.at += next.len();
        }
        while self
            .peek()
            .is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..b' '))
        {
            self.at += 1;
        }
    }

    /// Passes `true`, `false` or `null`, and gives it. What follows is not looked at.
    #[inline]
    pub fn literal(&mut self) -> Option<&'static [u8]> {
        let rest = self.text.get(self.at..)?;
        let words = [&b"true"[..], b"false", b"null"];
        let word = words.into_iter().find(|word| rest.starts_with(word))?;
        self.at += word.len();
        Some(word)
    }

    /// Passes a number, and says whether it is whole: without a fraction and an exponent. What follows is not looked at.
    #[inline]
    pub fn number(&mut self) -> Option<bool> {
        self.pass_if(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        let mut is_whole = true;
        if self.pass_if(b'.') {
            is_whole = false;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.at += 1;
            let _ = self.pass_if(b'+') || self.pass_if(b'-');
            self.digits()?;
        }
        Some(is_whole)
    }

    /// Passes at least one digit.
    #[inline]
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts are passed eight bytes at a time: what ends them is found at each place of such a step, and nothing else is.
    #[test]
    fn what_ends_a_plain_text_is_found_at_each_place() {
        let plain: Vec<u8> = (b' '..=255).filter(|byte| !b"\"\\".contains(byte)).collect();
        for end in (0..b' ').chain(*b"\"\\") {
            for before in 0..20 {
                for from in [0, 1, 30, 90, 200] {
                    let text: Vec<u8> = plain.iter().cycle().skip(from).take(before).copied().collect();
                    let whole = [&text[..], &[end], &plain[..9]].concat();
                    let mut cursor = Cursor::new(&whole);
                    cursor.skip_plain();
                    assert_eq!(cursor.at(), before, "{end} behind {text:?}");
                    let mut cursor = Cursor::new(&text);
                    cursor.skip_plain();
                    assert_eq!(cursor.at(), before, "the end behind {text:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_those_of_the_grammar() {
        for (text, expected) in [
            ("0", Some((true, 1))),
            ("-0", Some((true, 2))),
            ("120", Some((true, 3))),
            ("01", Some((true, 1))),
            ("1.5", Some((false, 3))),
            ("1e5", Some((false, 3))),
            ("-1.5E+10,", Some((false, 8))),
            ("1-", Some((true, 1))),
            ("", None),
            ("-", None),
            ("+1", None),
            (".5", None),
            ("1.", None),
            ("1.e5", None),
            ("1e", None),
            ("1e+", None),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            let found = cursor.number().map(|is_whole| (is_whole, cursor.at()));
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
