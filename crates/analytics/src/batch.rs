//! A batch: what a gateway has counted since its last one, ready to be sent and stored.
//!
//! A batch is named by its gateway, the gateway's run and a number, so that one that is sent twice counts once. It
//! carries its own table of names. Batches add up: a minute may come in several.

use crate::cell::Cell;
use crate::cube::{Cube, MAX_DIMENSIONS};
use crate::uniques::{self, Uniques};
use crate::varint::{self, DecodeError, Reader};

/// The first byte of an encoded batch: its form.
const FORM: u8 = 1;
/// The longest name, in bytes.
const MAX_NAME: usize = 4_096;

/// A key: a name for each dimension of its cube, then zeros. Names are numbers of the batch's table.
pub type Key = [u32; MAX_DIMENSIONS];

/// The counts of a key in a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRow {
    /// The cube.
    pub cube: Cube,
    /// The minute, counted from the Unix epoch.
    pub minute: u32,
    /// The key.
    pub key: Key,
    /// The counts.
    pub cell: Cell,
}

/// The counts of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The gateway's name.
    pub gateway: String,
    /// When this run of the gateway began, in milliseconds since the Unix epoch.
    pub run: u64,
    /// Counts the batches of the run, from 1.
    pub number: u64,
    /// The first minute that this run counts.
    pub since: u32,
    /// Every minute up to this one is complete with this batch.
    pub complete: u32,
    /// Whether this is the run's last batch.
    pub is_last: bool,
    /// Calls that were not counted, as a ring was full.
    pub dropped: u64,
    /// Minutes whose batches were thrown away, as the control plane was away for too long: the first and the last.
    pub lost: Option<(u32, u32)>,
    /// Names that keys refer to.
    pub names: Vec<String>,
    /// The counts.
    pub rows: Vec<BatchRow>,
    /// By environment, service and hour: the callers.
    pub uniques: Vec<(u32, u32, u32, Uniques)>,
}

impl Batch {
    /// The batch in bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORM];
        varint::put_bytes(&mut out, self.gateway.as_bytes());
        let (lost, until) = self
            .lost
            .map_or((0, 0), |(from, to)| (u64::from(from) + 1, u64::from(to)));
        for number in [
            self.run,
            self.number,
            u64::from(self.since),
            u64::from(self.complete),
            u64::from(self.is_last),
            self.dropped,
            lost,
            until,
            self.names.len() as u64,
        ] {
            varint::put(&mut out, number);
        }
        for name in &self.names {
            varint::put_bytes(&mut out, name.as_bytes());
        }
        varint::put(&mut out, self.rows.len() as u64);
        for row in &self.rows {
            out.push(row.cube.number());
            varint::put(&mut out, u64::from(row.minute));
            for name in &row.key[..row.cube.dimensions().len()] {
                varint::put(&mut out, u64::from(*name));
            }
            row.cell.encode(&mut out);
        }
        varint::put(&mut out, self.uniques.len() as u64);
        for (environment, service, hour, uniques) in &self.uniques {
            for number in [environment, service, hour] {
                varint::put(&mut out, u64::from(*number));
            }
            uniques.encode(&mut out);
        }
        out
    }

    /// Reads a batch.
    ///
    /// # Errors
    /// The bytes are no batch, or one of a later form.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        if reader.byte()? != FORM {
            return Err(DecodeError);
        }
        let mut batch = Self {
            gateway: reader.text()?.to_owned(),
            run: reader.number()?,
            number: reader.number()?,
            since: reader.small()?,
            complete: reader.small()?,
            is_last: reader.number()? != 0,
            dropped: reader.number()?,
            ..Self::default()
        };
        let (lost, until) = (reader.number()?, reader.small()?);
        if let Some(from) = lost.checked_sub(1) {
            batch.lost = Some((u32::try_from(from).map_err(|_| DecodeError)?, until));
        }
        for _ in 0..reader.small::<usize>()? {
            let name = reader.text()?;
            if name.len() > MAX_NAME {
                return Err(DecodeError);
            }
            batch.names.push(name.to_owned());
        }
        for _ in 0..reader.small::<usize>()? {
            let row = batch.row(&mut reader)?;
            batch.rows.push(row);
        }
        for _ in 0..reader.small::<usize>()? {
            let (environment, service) = (batch.name(&mut reader)?, batch.name(&mut reader)?);
            let hour = reader.small()?;
            let mut callers = Uniques::default();
            callers.merge_encoded(&mut reader)?;
            batch.uniques.push((environment, service, hour, callers));
        }
        match reader.is_empty() {
            true => Ok(batch),
            false => Err(DecodeError),
        }
    }

    fn name(&self, reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
        let name: u32 = reader.small()?;
        match (name as usize) < self.names.len() {
            true => Ok(name),
            false => Err(DecodeError),
        }
    }

    fn row(&self, reader: &mut Reader<'_>) -> Result<BatchRow, DecodeError> {
        let cube = Cube::numbered(reader.byte()?).ok_or(DecodeError)?;
        let minute = reader.small()?;
        let mut key = Key::default();
        for name in key.iter_mut().take(cube.dimensions().len()) {
            *name = self.name(reader)?;
        }
        let mut cell = Cell::default();
        cell.merge_encoded(reader, [true; 3])?;
        Ok(BatchRow {
            cube,
            minute,
            key,
            cell,
        })
    }

    /// A number for its content: that of another batch is another one.
    pub fn hash(&self) -> u64 {
        uniques::hash(&self.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Field;

    fn batch() -> Batch {
        let mut cell = Cell::default();
        cell.sums.add(Field::Calls, 3);
        cell.sketches[0].add(1_000);
        let mut callers = Uniques::default();
        callers.add(uniques::hash(b"a"));
        Batch {
            gateway: "edge-1".to_owned(),
            run: 1_700_000_000_000,
            number: 7,
            since: 100,
            complete: 101,
            dropped: 2,
            lost: Some((0, 90)),
            names: ["", "shop", "list", "200"].map(str::to_owned).to_vec(),
            rows: vec![BatchRow {
                cube: Cube::Route,
                minute: 101,
                key: [0, 1, 2, 3, 0],
                cell,
            }],
            uniques: vec![(0, 1, 1, callers)],
            ..Batch::default()
        }
    }

    #[test]
    fn batches_come_back() {
        for batch in [
            batch(),
            Batch::default(),
            Batch {
                is_last: true,
                lost: None,
                ..batch()
            },
        ] {
            assert_eq!(Batch::decode(&batch.encode()), Ok(batch));
        }
    }

    #[test]
    fn damaged_batches_are_refused() {
        let bytes = batch().encode();
        for length in 0..bytes.len() {
            assert_eq!(Batch::decode(&bytes[..length]), Err(DecodeError), "{length}");
        }
        assert_eq!(Batch::decode(&[&bytes[..], &[0]].concat()), Err(DecodeError));
        let mut unknown = batch();
        unknown.names.truncate(2);
        assert_eq!(
            Batch::decode(&unknown.encode()),
            Err(DecodeError),
            "a key beyond the names"
        );
        // Any byte may be another one: it ends, with an error or a batch.
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 0x55;
            let _read = Batch::decode(&other);
        }
    }

    #[test]
    fn another_content_has_another_hash() {
        let other = Batch {
            dropped: 3,
            ..batch()
        };
        assert_eq!(batch().hash(), batch().hash());
        assert_ne!(batch().hash(), other.hash());
    }
}
