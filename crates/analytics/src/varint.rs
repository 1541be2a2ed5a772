//! Numbers of variable length (LEB128), and a reader that never trusts what it reads.

/// Bytes that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are cut short or damaged")]
pub struct DecodeError;

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends bytes with their length before them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what [`put`] and [`put_bytes`] wrote.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    /// A reader of these bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Whether everything is read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    ///
    /// # Errors
    /// If there is no byte left.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError)?;
        self.0 = rest;
        Ok(*first)
    }

    /// The next number.
    ///
    /// # Errors
    /// If there is none, or it has more than 64 bits.
    #[inline]
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        // Most numbers have one byte.
        match self.0 {
            [first, rest @ ..] if *first < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*first))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError)
    }

    /// The next number, if it fits.
    ///
    /// # Errors
    /// If there is none, or it does not fit.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, DecodeError> {
        T::try_from(self.number()?).map_err(|_| DecodeError)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, length: usize) -> Result<&'b [u8], DecodeError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Bytes with their length before them.
    ///
    /// # Errors
    /// There are fewer.
    pub fn bytes(&mut self) -> Result<&'b [u8], DecodeError> {
        let length = self.small()?;
        self.take(length)
    }

    /// Text with its length before it.
    ///
    /// # Errors
    /// There is less, or it is no text.
    pub fn text(&mut self) -> Result<&'b str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.number(), Ok(value));
            assert!(reader.is_empty());
            assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).number(), Err(DecodeError));
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert_eq!(Reader::new(bytes).number(), Err(DecodeError), "{bytes:?}");
        }
        assert_eq!(Reader::new(&[3, b'a']).bytes(), Err(DecodeError));
        assert_eq!(Reader::new(&[1, 0xff]).text(), Err(DecodeError));
        assert_eq!(Reader::new(&[0x80, 2]).small::<u8>(), Err(DecodeError));
    }
}
