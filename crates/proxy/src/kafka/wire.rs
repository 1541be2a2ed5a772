//! Messages of Kafka's protocol, as far as producers and all clients need them: <https://kafka.apache.org/protocol>.
//!
//! The versions are the oldest that Kafka 4 still answers, so that brokers since 0.11 understand them.

use std::io;

/// Names this client to brokers.
const CLIENT: &str = "weir";

/// The kind of a request: its number, and the version of it that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Api(pub i16, pub i16);

pub const PRODUCE: Api = Api(0, 3);
pub const METADATA: Api = Api(3, 1);
pub const SASL_HANDSHAKE: Api = Api(17, 1);
pub const SASL_AUTHENTICATE: Api = Api(36, 0);

/// A message that is being written.
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Begins a request. [`Writer::finish`] fills in its length.
    pub fn request(api: Api, correlation: i32) -> Self {
        let mut writer = Self(vec![0; 4]);
        writer.i16(api.0);
        writer.i16(api.1);
        writer.i32(correlation);
        writer.text(CLIENT);
        writer
    }

    /// The whole request.
    ///
    /// # Errors
    /// When it is too long.
    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        let length = length(self.0.len() - 4)?;
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        Ok(self.0)
    }

    pub fn i16(&mut self, number: i16) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub fn i32(&mut self, number: i32) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub fn i64(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    /// A text of at most 32767 bytes; what is longer is cut off.
    pub fn text(&mut self, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(i16::MAX as usize)];
        self.i16(bytes.len() as i16);
        self.0.extend_from_slice(bytes);
    }

    /// # Errors
    /// When they are too many.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.i32(length(bytes.len())?);
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// A number in groups of seven bits, the sign in the lowest.
    pub fn varint(&mut self, number: i64) {
        let mut rest = (number << 1 ^ number >> 63) as u64;
        while rest > 0x7f {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }
}

/// A length as Kafka writes it.
pub fn length(length: usize) -> io::Result<i32> {
    i32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// An answer that is being read.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| broken("an answer ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn i8(&mut self) -> io::Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> io::Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text; an absent one is empty.
    pub fn text(&mut self) -> io::Result<String> {
        let count = usize::try_from(self.i16()?).unwrap_or(0);
        Ok(String::from_utf8_lossy(self.take(count)?).into_owned())
    }

    pub fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let count = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(count)
    }

    /// A number in groups of seven bits, the sign in the lowest.
    pub fn varint(&mut self) -> io::Result<i64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
            }
        }
        Err(broken("a number is too long"))
    }

    /// Bytes behind their length as such a number; `None`: there are none.
    pub fn short_bytes(&mut self) -> io::Result<Option<&'a [u8]>> {
        match usize::try_from(self.varint()?) {
            Ok(count) => self.take(count).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The elements of a list, each read by `read`. No more are read than there are bytes.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        let count = usize::try_from(self.i32()?).unwrap_or(0);
        let mut found = Vec::new();
        for _ in 0..count {
            found.push(read(self)?);
        }
        Ok(found)
    }
}

/// That a broker does not speak as it should.
pub fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// That a broker has refused something, by its number in Kafka's list of errors. `InvalidInput` and `PermissionDenied`:
/// it would refuse it again.
pub fn refused(what: &str, code: i16) -> io::Error {
    let meaning = match code {
        2 => " (the message is corrupt)",
        1 => " (there are no records at the offset)",
        3 => " (the topic or the partition is unknown)",
        5 | 6 => " (the broker does not lead the partition)",
        7 => " (it took too long)",
        10 | 18 => " (the message is too large)",
        14..=16 => " (the group is not kept there, or not yet)",
        19 | 20 => " (too few replicas)",
        25 => " (others are members of the group)",
        29..=31 => " (it is not allowed)",
        33 => " (the mechanism is not supported)",
        35 => " (the version is not supported)",
        58 => " (the user is not known)",
        _ => "",
    };
    let kind = match code {
        10 | 18 | 87 => io::ErrorKind::InvalidInput,
        29..=31 | 58 => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{what} was refused with error {code}{meaning}"))
}

/// The place of a topic: brokers by their number, and the leaders of its partitions.
#[derive(Debug, Default)]
pub struct Topology {
    pub brokers: Vec<(i32, String, u16)>,
    pub partitions: Vec<(i32, i32)>,
}

/// Partitions of a topic and brokers of a cluster at most.
const MAX_PARTITIONS: usize = 10_000;
const MAX_BROKERS: usize = 1_000;

/// A request for the partitions of a topic.
pub fn ask_metadata(topic: &str, correlation: i32) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(METADATA, correlation);
    writer.i32(1);
    writer.text(topic);
    writer.finish()
}

/// Reads the partitions of a topic.
pub fn read_metadata(answer: &[u8]) -> io::Result<Topology> {
    let mut reader = Reader(answer);
    let brokers = reader.list(|reader| {
        let (id, host) = (reader.i32()?, reader.text()?);
        let port = u16::try_from(reader.i32()?).map_err(|_| broken("a port is invalid"))?;
        reader.text()?;
        Ok((id, host, port))
    })?;
    reader.i32()?;
    let topics = reader.list(|reader| {
        let code = reader.i16()?;
        reader.text()?;
        reader.i8()?;
        let partitions = reader.list(|reader| {
            reader.i16()?;
            let (id, leader) = (reader.i32()?, reader.i32()?);
            reader.list(Reader::i32)?;
            reader.list(Reader::i32)?;
            Ok((id, leader))
        })?;
        Ok((code, partitions))
    })?;
    match topics.into_iter().next() {
        Some((0, partitions)) if partitions.len() > MAX_PARTITIONS || brokers.len() > MAX_BROKERS => Err(
            broken("a topic has too many partitions, or a cluster too many brokers"),
        ),
        Some((0, mut partitions)) => {
            partitions.sort_unstable();
            Ok(Topology { brokers, partitions })
        }
        Some((code, _)) => Err(refused("the topic", code)),
        None => Err(broken("an answer lacks the topic")),
    }
}

/// Asks to store a batch of records.
pub fn ask_produce(
    topic: &str,
    partition: i32,
    acks: i16,
    timeout_ms: i32,
    batch: &[u8],
    correlation: i32,
) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(PRODUCE, correlation);
    // No transaction.
    writer.i16(-1);
    writer.i16(acks);
    writer.i32(timeout_ms);
    writer.i32(1);
    writer.text(topic);
    writer.i32(1);
    writer.i32(partition);
    writer.bytes(batch)?;
    writer.finish()
}

/// Reads whether records have been stored: Kafka's error, 0 for none.
pub fn read_produce(answer: &[u8]) -> io::Result<i16> {
    let mut reader = Reader(answer);
    let topics = reader.list(|reader| {
        reader.text()?;
        reader.list(|reader| {
            reader.i32()?;
            let code = reader.i16()?;
            reader.i64()?;
            reader.i64()?;
            Ok(code)
        })
    })?;
    let code = topics.first().and_then(|partitions| partitions.first());
    code.copied()
        .ok_or_else(|| broken("an answer lacks the partition"))
}
