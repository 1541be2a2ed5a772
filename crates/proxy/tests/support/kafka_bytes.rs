//! Reading and writing Kafka's messages, for tests that play a broker.

/// What is left to read of a message.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(N);
        self.0 = rest;
        taken.try_into().unwrap()
    }

    pub fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    pub fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }

    pub fn bytes(&mut self, count: i32) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count.max(0) as usize);
        self.0 = rest;
        taken.to_vec()
    }

    pub fn text(&mut self) -> String {
        let count = i32::from(self.i16());
        String::from_utf8(self.bytes(count)).unwrap()
    }

    /// A number of variable length, as records have them.
    pub fn varint(&mut self) -> i64 {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let [byte] = self.take();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return (number >> 1) as i64 ^ -((number & 1) as i64);
            }
        }
    }

    /// Partitions of topics, each with what `read` reads.
    pub fn places<T>(&mut self, mut read: impl FnMut(&mut Self) -> T) -> Vec<(String, i32, T)> {
        let mut found = Vec::new();
        for _ in 0..self.i32() {
            let topic = self.text();
            for _ in 0..self.i32() {
                let partition = self.i32();
                found.push((topic.clone(), partition, read(self)));
            }
        }
        found
    }
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as i16).to_be_bytes());
    out.extend(text.as_bytes());
}
