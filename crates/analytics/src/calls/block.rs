//! A block of the request log: calls, compressed, behind a head that says what can be in it. A search reads heads and
//! opens few blocks.

use super::CallLine;
use super::search::Search;
use crate::uniques;
use crate::varint::{self, DecodeError, Reader};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use foldhash::HashMap;
use std::io::{Read, Write};
use std::sync::Arc;

/// The first bytes of a block.
const MAGIC: [u8; 4] = *b"WCB1";
/// The length of a head in bytes.
pub const HEAD: usize = 4 + 4 + 4 + 8 + 8 + 2 + 4 * 8 + 4;
/// The most bytes of a block once it is opened. A larger one is damaged.
const MAX_RAW: u64 = 64 << 20;

/// The head of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The length of what follows the head.
    pub length: u32,
    /// The checksum of what follows.
    checksum: u32,
    /// The time of the first call.
    pub first: u64,
    /// The time of the last call.
    pub last: u64,
    /// The classes of the statuses, a bit each.
    classes: u16,
    /// Which names are in it: a Bloom filter.
    names: [u64; 4],
}

/// The bits of a name in the filter of a block.
fn bits(field: u8, name: &str) -> [(usize, u64); 3] {
    let hash = uniques::spread(uniques::hash(name.as_bytes()) ^ u64::from(field));
    [0, 8, 16].map(|shift| {
        let bit = (hash >> shift) as u8;
        (usize::from(bit >> 6), 1 << (bit & 63))
    })
}

impl Head {
    fn note(&mut self, line: &CallLine) {
        self.first = if self.first == 0 {
            line.time
        } else {
            self.first.min(line.time)
        };
        self.last = self.last.max(line.time);
        self.classes |= 1 << (line.status / 100).min(15);
        for (field, name) in Search::indexed(line) {
            for (word, bit) in bits(field, name) {
                self.names[word] |= bit;
            }
        }
    }

    /// Whether a call that is searched for can be in the block.
    pub fn may_hold(&self, search: &Search) -> bool {
        let is_in_time = self.last >= search.from && self.first < search.end();
        let has_class = match search.classes() {
            Some(classes) => classes & self.classes != 0,
            None => true,
        };
        let has_names = search.names().all(|(field, name)| {
            bits(field, name)
                .into_iter()
                .all(|(word, bit)| self.names[word] & bit != 0)
        });
        is_in_time && has_class && has_names
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.last.to_le_bytes());
        out.extend_from_slice(&self.classes.to_le_bytes());
        for word in self.names {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let checksum = crc32fast::hash(&out[out.len() - (HEAD - 4)..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads a head.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn read(bytes: &[u8; HEAD]) -> Result<Self, DecodeError> {
        let (content, checksum) = bytes.split_at(HEAD - 4);
        if content[..4] != MAGIC || crc32fast::hash(content).to_le_bytes() != checksum {
            return Err(DecodeError);
        }
        let mut rest = Reader::new(&content[4..]);
        let mut word = |length: usize| -> Result<u64, DecodeError> {
            let mut value = [0; 8];
            value[..length].copy_from_slice(rest.take(length)?);
            Ok(u64::from_le_bytes(value))
        };
        Ok(Self {
            length: word(4)? as u32,
            checksum: word(4)? as u32,
            first: word(8)?,
            last: word(8)?,
            classes: word(2)? as u16,
            names: [word(8)?, word(8)?, word(8)?, word(8)?],
        })
    }
}

/// A block of these calls.
///
/// # Errors
/// They cannot be compressed.
pub fn write(lines: &[Arc<CallLine>]) -> std::io::Result<Vec<u8>> {
    let (mut head, mut raw) = (Head::default(), Vec::new());
    let mut texts: Vec<&str> = Vec::new();
    let mut numbers: HashMap<&str, u64> = HashMap::default();
    let (mut rows, mut headers) = (Vec::new(), Vec::new());
    for (place, line) in lines.iter().enumerate() {
        head.note(line);
        for number in [
            line.time,
            u64::from(line.weight),
            u64::from(line.status),
            u64::from(line.total_us),
            u64::from(line.upstream_us),
            line.bytes_in,
            line.bytes_out,
            u64::from(line.retries),
        ] {
            varint::put(&mut rows, number);
        }
        let headed = (!line.headers.is_empty()).then_some(&line.headers);
        for (is_header, text) in line
            .texts()
            .into_iter()
            .map(|it| (false, it))
            .chain(headed.map(|it| (true, it)))
        {
            let number = *numbers.entry(text).or_insert_with(|| {
                texts.push(text);
                (texts.len() - 1) as u64
            });
            if is_header {
                varint::put(&mut headers, place as u64);
                varint::put(&mut headers, number);
            } else {
                varint::put(&mut rows, number);
            }
        }
    }
    varint::put(&mut raw, texts.len() as u64);
    texts
        .iter()
        .for_each(|text| varint::put_bytes(&mut raw, text.as_bytes()));
    varint::put(&mut raw, lines.len() as u64);
    raw.extend_from_slice(&rows);
    // Files of versions before this one end here.
    raw.extend_from_slice(&headers);
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&raw)?;
    let packed = packed.finish()?;
    head.length = packed.len() as u32;
    head.checksum = crc32fast::hash(&packed);
    let mut out = Vec::with_capacity(HEAD + packed.len());
    head.write(&mut out);
    out.extend_from_slice(&packed);
    Ok(out)
}

/// The calls of a block.
///
/// # Errors
/// The bytes are damaged.
pub fn read(head: &Head, packed: &[u8]) -> Result<Vec<CallLine>, DecodeError> {
    if crc32fast::hash(packed) != head.checksum {
        return Err(DecodeError);
    }
    let mut raw = Vec::new();
    let mut unpacked = DeflateDecoder::new(packed).take(MAX_RAW);
    unpacked.read_to_end(&mut raw).map_err(|_| DecodeError)?;
    let mut reader = Reader::new(&raw);
    let mut texts: Vec<Arc<str>> = Vec::new();
    for _ in 0..reader.small::<usize>()? {
        texts.push(reader.text()?.into());
    }
    let mut lines = Vec::new();
    for _ in 0..reader.small::<usize>()? {
        let mut line = CallLine {
            time: reader.number()?,
            weight: reader.small()?,
            status: reader.small()?,
            total_us: reader.small()?,
            upstream_us: reader.small()?,
            bytes_in: reader.number()?,
            bytes_out: reader.number()?,
            retries: reader.small()?,
            ..CallLine::default()
        };
        for text in line.texts_mut() {
            *text = Arc::clone(texts.get(reader.small::<usize>()?).ok_or(DecodeError)?);
        }
        lines.push(line);
    }
    while !reader.is_empty() {
        let (place, number) = (reader.small::<usize>()?, reader.small::<usize>()?);
        let line: &mut CallLine = lines.get_mut(place).ok_or(DecodeError)?;
        line.headers = Arc::clone(texts.get(number).ok_or(DecodeError)?);
    }
    Ok(lines)
}
