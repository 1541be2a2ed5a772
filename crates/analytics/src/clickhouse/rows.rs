//! ClickHouse's RowBinary: numbers with the lowest byte first, and texts after their length.

use crate::store::StoreError;
use crate::varint;

/// Rows on their way to the server.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// A column of eight bits.
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    /// A column of 16 bits.
    pub fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A column of 32 bits.
    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A column of 64 bits.
    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A text.
    pub fn text(&mut self, text: &str) {
        varint::put_bytes(&mut self.0, text.as_bytes());
    }
}

/// Rows that the server answers.
pub struct Reader<'b>(varint::Reader<'b>);

impl<'b> Reader<'b> {
    /// Reads from here.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(varint::Reader::new(bytes))
    }

    /// Whether there is no further row.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A column of eight bits.
    pub fn u8(&mut self) -> Result<u8, StoreError> {
        Ok(self.0.byte()?)
    }

    /// A column of 16 bits.
    pub fn u16(&mut self) -> Result<u16, StoreError> {
        Ok(u16::from_le_bytes([self.0.byte()?, self.0.byte()?]))
    }

    /// A column of 64 bits.
    pub fn u64(&mut self) -> Result<u64, StoreError> {
        let mut value = [0; 8];
        value.copy_from_slice(self.0.take(8)?);
        Ok(u64::from_le_bytes(value))
    }

    /// A text.
    pub fn text(&mut self) -> Result<&'b str, StoreError> {
        Ok(self.0.text()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_and_half_a_row_is_damaged() {
        let mut out = Writer::default();
        out.u8(7);
        out.text("ä\0");
        out.u16(515);
        out.u64(u64::MAX - 1);
        let mut read = Reader::new(&out.0);
        assert_eq!((read.u8().ok(), read.text().ok()), (Some(7), Some("ä\0")));
        assert_eq!(
            (read.u16().ok(), read.u64().ok()),
            (Some(515), Some(u64::MAX - 1))
        );
        assert!(read.is_empty());
        let mut half = Reader::new(&out.0[..out.0.len() - 1]);
        let (_, _, _) = (half.u8(), half.text(), half.u16());
        assert!(matches!(half.u64(), Err(StoreError::Damaged(_))));
        assert_eq!(Writer::default().0.len(), 0);
    }
}
