//! Reading batches of records (the form since Kafka 0.11) that brokers have sent.

use super::batch::crc32c;
use super::wire::{Reader, broken};
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::{self, Read};
use weir_plugin::KafkaRecord;

/// Most bytes of a batch once it is decompressed.
const MAX_DECOMPRESSED: u64 = 16 << 20;
/// Bytes that are decompressed for one answer; the batch that reaches them is the last one.
pub const MAX_DECOMPRESSED_IN_ALL: usize = 32 << 20;
/// The bytes of a batch behind its length and before its checksum's content: epoch, form and checksum.
const BEFORE_SUM: usize = 9;
/// Headers of a record at most.
const MAX_HEADERS: usize = 256;

/// Attributes of a batch: how it is compressed, that its time is the broker's, and that it marks a transaction's end.
const COMPRESSION: i16 = 0x07;
const BROKER_TIME: i16 = 0x08;
const CONTROL: i16 = 0x20;

/// How much may be taken yet. What is taken first may have any size, so that a large record holds up none.
#[derive(Debug, Clone, Copy)]
pub struct FetchBudget {
    pub records: usize,
    pub bytes: usize,
    /// Bytes that may be decompressed, [`MAX_DECOMPRESSED_IN_ALL`] at first.
    pub decompressed: usize,
}

/// The bytes of a record that count.
pub fn size_of(record: &KafkaRecord) -> usize {
    let length = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
    let headers = record.headers.iter();
    let headers: usize = headers.map(|(name, value)| name.len() + length(value)).sum();
    length(&record.key) + length(&record.value) + headers
}

impl FetchBudget {
    fn is_full(self) -> bool {
        self.records == 0 || self.bytes == 0
    }

    fn note(&mut self, record: &KafkaRecord) {
        self.records -= 1;
        self.bytes = self.bytes.saturating_sub(size_of(record));
    }
}

/// Reads records from an offset on, as many as there is room for. Gives also the offset that is to be read next. A
/// batch that is not whole is left for the next time.
///
/// # Errors
/// If a batch is broken, or `Unsupported` if it is in a form that is not known here.
pub fn read_records(bytes: &[u8], from: i64, room: &mut FetchBudget) -> io::Result<(Vec<KafkaRecord>, i64)> {
    let (mut records, mut next) = (Vec::new(), from);
    let mut reader = Reader(bytes);
    while !room.is_full() && room.decompressed > 0 && reader.0.len() > 12 {
        let base = reader.i64()?;
        let length = usize::try_from(reader.i32()?).unwrap_or(0);
        if length > reader.0.len() {
            break;
        }
        let batch = reader.take(length)?;
        let batch = Batch::read(base, batch)?;
        let is_cut = batch.append(from, room, &mut records)?;
        next = match records.last() {
            Some(last) if is_cut => last.offset.saturating_add(1),
            _ => next.max(batch.end),
        };
    }
    Ok((records, next))
}

/// A batch, before its records are looked at.
struct Batch<'b> {
    base: i64,
    /// The offset behind it.
    end: i64,
    attributes: i16,
    first_ms: i64,
    last_ms: i64,
    count: i32,
    records: &'b [u8],
}

impl<'b> Batch<'b> {
    fn read(base: i64, bytes: &'b [u8]) -> io::Result<Self> {
        let mut reader = Reader(bytes);
        reader.i32()?;
        if reader.i8()? != 2 {
            return Err(unsupported("records have a format older than that of Kafka 0.11"));
        }
        let sum = reader.i32()? as u32;
        if crc32c(&bytes[BEFORE_SUM..]) != sum {
            return Err(broken("the checksum of records is wrong"));
        }
        let attributes = reader.i16()?;
        let last = reader.i32()?;
        let (first_ms, last_ms) = (reader.i64()?, reader.i64()?);
        // Who has sent them.
        reader.take(14)?;
        let count = reader.i32()?;
        if base < 0 || last < 0 {
            return Err(broken("the offsets of records are wrong"));
        }
        Ok(Self {
            base,
            end: base.saturating_add(i64::from(last)).saturating_add(1),
            attributes,
            first_ms,
            last_ms,
            count,
            records: reader.0,
        })
    }

    /// Appends its records from an offset on, as many as there is room for. Returns whether some are left.
    fn append(&self, from: i64, room: &mut FetchBudget, records: &mut Vec<KafkaRecord>) -> io::Result<bool> {
        if self.attributes & CONTROL != 0 || self.end <= from {
            return Ok(false);
        }
        let bytes = self.decompressed()?;
        if matches!(bytes, Cow::Owned(_)) {
            room.decompressed = room.decompressed.saturating_sub(bytes.len());
        }
        let mut reader = Reader(&bytes);
        let mut last = None;
        for _ in 0..self.count {
            if room.is_full() {
                return Ok(true);
            }
            let length = usize::try_from(reader.varint()?).unwrap_or(0);
            let record = self.record(reader.take(length)?)?;
            if last
                .replace(record.offset)
                .is_some_and(|last| last >= record.offset)
            {
                return Err(broken("the offsets of records do not rise"));
            }
            if record.offset >= from {
                room.note(&record);
                records.push(record);
            }
        }
        Ok(false)
    }

    fn decompressed(&self) -> io::Result<Cow<'b, [u8]>> {
        let name = match self.attributes & COMPRESSION {
            0 => return Ok(Cow::Borrowed(self.records)),
            1 => {
                let mut bytes = Vec::new();
                let decoder = MultiGzDecoder::new(self.records);
                decoder.take(MAX_DECOMPRESSED + 1).read_to_end(&mut bytes)?;
                return match bytes.len() as u64 > MAX_DECOMPRESSED {
                    true => Err(broken("records are too large once they are decompressed")),
                    false => Ok(Cow::Owned(bytes)),
                };
            }
            2 => "snappy",
            3 => "lz4",
            4 => "zstd",
            _ => "an unknown algorithm",
        };
        Err(unsupported(&format!("records are compressed by {name}")))
    }

    fn record(&self, bytes: &[u8]) -> io::Result<KafkaRecord> {
        let mut reader = Reader(bytes);
        reader.i8()?;
        let time = reader.varint()?;
        let offset = self.base.saturating_add(reader.varint()?);
        let key = reader.short_bytes()?.map(<[u8]>::to_vec);
        let value = reader.short_bytes()?.map(<[u8]>::to_vec);
        let count = usize::try_from(reader.varint()?).unwrap_or(0);
        if count > MAX_HEADERS {
            return Err(broken("a record has too many headers"));
        }
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = String::from_utf8_lossy(reader.short_bytes()?.unwrap_or_default()).into_owned();
            headers.push((name, reader.short_bytes()?.map(<[u8]>::to_vec)));
        }
        if !(self.base..self.end).contains(&offset) {
            return Err(broken("the offset of a record is wrong"));
        }
        let timestamp_ms = match self.attributes & BROKER_TIME {
            0 => self.first_ms.saturating_add(time),
            _ => self.last_ms,
        };
        Ok(KafkaRecord {
            offset,
            timestamp_ms,
            key,
            value,
            headers,
        })
    }
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::batch::batch;
    use super::*;
    use std::io::Write;

    const ROOM: FetchBudget = FetchBudget {
        records: 9,
        bytes: 99,
        decompressed: MAX_DECOMPRESSED_IN_ALL,
    };

    /// A batch of these values at an offset, with these attributes; `pack` is done to its records.
    fn stored(base: i64, attributes: i16, values: &[&str], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let plain = batch(&values, Some(b"k"), 7).expect("short");
        let mut bytes = plain[..61].to_vec();
        bytes.extend_from_slice(&pack(&plain[61..]));
        bytes[..8].copy_from_slice(&base.to_be_bytes());
        let length = (bytes.len() - 12) as i32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
        let sum = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    fn plain(base: i64, values: &[&str]) -> Vec<u8> {
        stored(base, 0, values, <[u8]>::to_vec)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("in memory");
        encoder.finish().expect("in memory")
    }

    /// Values with their offsets, and the next offset.
    fn read(bytes: &[u8], from: i64, most: usize) -> (Vec<(i64, String)>, i64) {
        let mut room = FetchBudget {
            records: most,
            ..ROOM
        };
        let (records, next) = read_records(bytes, from, &mut room).expect("good records");
        let value_of = |record: KafkaRecord| {
            assert_eq!((record.key.as_deref(), record.timestamp_ms), (Some(&b"k"[..]), 7));
            let value = String::from_utf8(record.value.expect("a value")).expect("text");
            (record.offset, value)
        };
        (records.into_iter().map(value_of).collect(), next)
    }

    #[test]
    fn records_are_read_from_an_offset_on() {
        let all = [plain(5, &["a", "b", "c"]), plain(9, &["d"])].concat();
        let record = |offset: i64, value: &str| (offset, value.to_owned());
        for (from, most, records, next) in [
            (
                5,
                9,
                vec![record(5, "a"), record(6, "b"), record(7, "c"), record(9, "d")],
                10,
            ),
            (7, 9, vec![record(7, "c"), record(9, "d")], 10),
            (5, 2, vec![record(5, "a"), record(6, "b")], 7),
            (5, 3, vec![record(5, "a"), record(6, "b"), record(7, "c")], 8),
            (10, 9, vec![], 10),
        ] {
            assert_eq!(read(&all, from, most), (records, next), "{from} {most}");
        }
        // Each has a key of one byte, and a value of one.
        let mut room = FetchBudget { bytes: 3, ..ROOM };
        let (records, next) = read_records(&all, 5, &mut room).expect("good records");
        assert_eq!((records.len(), next), (2, 7));
        // The last batch is not whole.
        assert_eq!(read(&all[..all.len() - 1], 7, 9), (vec![record(7, "c")], 8));
    }

    #[test]
    fn marks_of_transactions_are_passed_over() {
        let mark = stored(6, CONTROL, &["x"], <[u8]>::to_vec);
        let all = [plain(5, &["a"]), mark, plain(7, &["b"])].concat();
        assert_eq!(
            read(&all, 5, 9),
            (vec![(5, "a".to_owned()), (7, "b".to_owned())], 8)
        );
        assert_eq!(read(&all[..all.len() / 3 * 2], 6, 9), (vec![], 7));
    }

    #[test]
    fn compressed_records_are_read_or_refused() {
        assert_eq!(
            read(&stored(3, 1, &["a"], gzip), 3, 9),
            (vec![(3, "a".to_owned())], 4)
        );
        for (attributes, expected) in [(2, "snappy"), (3, "lz4"), (4, "zstd")] {
            let error = read_records(&stored(3, attributes, &["a"], gzip), 3, &mut ROOM.clone())
                .expect_err("is refused");
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains(expected));
        }
        // What may be decompressed for an answer is used up by its first batch.
        let all = [stored(3, 1, &["a"], gzip), stored(4, 1, &["b"], gzip)].concat();
        let mut room = FetchBudget {
            decompressed: 1,
            ..ROOM
        };
        let (records, next) = read_records(&all, 3, &mut room).expect("good records");
        assert_eq!((records.len(), next, room.decompressed), (1, 4, 0));
        let bomb = |_: &[u8]| gzip(&vec![0; (MAX_DECOMPRESSED + 1) as usize]);
        let error = read_records(&stored(3, 1, &["a"], bomb), 3, &mut ROOM.clone()).expect_err("is refused");
        assert!(error.to_string().contains("too large"), "{error}");
    }

    #[test]
    fn broken_records_are_refused() {
        let mut bytes = plain(5, &["a"]);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(
            read_records(&bytes, 5, &mut ROOM.clone()).is_err(),
            "the checksum is wrong"
        );
        // The same record twice.
        let twice = stored(5, 0, &["a", "b"], |records| {
            records[..records.len() / 2].repeat(2)
        });
        let error = read_records(&twice, 5, &mut ROOM.clone()).expect_err("is refused");
        assert!(error.to_string().contains("do not rise"), "{error}");
        let mut bytes = plain(5, &["a"]);
        bytes[16] = 1;
        let error = read_records(&bytes, 5, &mut ROOM.clone()).expect_err("it is too old");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
