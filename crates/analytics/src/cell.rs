//! The values of one key: sums and sketches, of a minute, and packed into the row of an hour.
//!
//! A row holds the sums and sketches of the whole hour, then the minutes that had calls. Parts that a query does not
//! need are skipped without being read.

use crate::cube::Cube;
use crate::sketch::Sketch;
use crate::varint::{self, DecodeError, Reader};

/// The values that are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Calls.
    Calls,
    /// Their time in microseconds, from when the head of the request is read to the last byte of the response.
    Total,
    /// Bytes sent to clients.
    BytesOut,
    /// Bytes received from clients.
    BytesIn,
    /// Calls that the gateway refused.
    Refused,
    /// Calls whose client left before the end.
    Aborted,
    /// Answers with a status of 400 to 499.
    ClientErrors,
    /// Answers with a status from 500.
    ServerErrors,
    /// Upstream calls beyond the first of a call.
    Retries,
    /// Time of upstreams in microseconds.
    Upstream,
    /// Calls that asked an upstream.
    UpstreamCalls,
    /// The longest time of a call in microseconds. Not a sum.
    Longest,
}

impl Field {
    /// Whether it is kept to within 0.05 % by the minute. By the hour, all are exact.
    const fn is_rounded(self) -> bool {
        matches!(
            self,
            Self::Total | Self::Upstream | Self::BytesIn | Self::BytesOut
        )
    }
}

/// How many fields there are.
pub const FIELDS: usize = 12;
/// All but the last one are sums.
const _: () = assert!(Field::Longest as usize == FIELDS - 1);

/// The times that sketches are kept of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// The whole call.
    Total,
    /// The upstream's part.
    Upstream,
    /// The rest: the gateway's part.
    Gateway,
}

/// A value for each field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums([u64; FIELDS]);

impl Sums {
    /// Sums with these values, in the order of the fields.
    #[inline]
    pub(crate) const fn of(values: [u64; FIELDS]) -> Self {
        Self(values)
    }

    /// The value of a field.
    #[inline]
    pub fn get(&self, field: Field) -> u64 {
        self.0[field as usize]
    }

    /// Adds to a field; of the longest time, the longer one stays.
    #[inline]
    pub fn add(&mut self, field: Field, value: u64) {
        let known = &mut self.0[field as usize];
        *known = match field {
            Field::Longest => (*known).max(value),
            _ => known.saturating_add(value),
        };
    }

    /// Adds all fields of others.
    pub fn merge(&mut self, other: &Self) {
        for (place, value) in other.0.iter().enumerate() {
            let known = &mut self.0[place];
            *known = match place == Field::Longest as usize {
                true => (*known).max(*value),
                false => known.saturating_add(*value),
            };
        }
    }

    /// Adds the fields of calls that are being counted. It is for sums that calls of minutes cannot fill: none is checked.
    #[inline]
    pub(crate) fn count(&mut self, calls: &Self) {
        for (known, value) in self.0[..FIELDS - 1].iter_mut().zip(&calls.0) {
            *known = known.wrapping_add(*value);
        }
        let longest = &mut self.0[Field::Longest as usize];
        *longest = (*longest).max(calls.0[Field::Longest as usize]);
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|value| *value == 0)
    }

    /// Appends which of all fields have values, and these.
    fn encode(&self, out: &mut Vec<u8>) {
        let mut mask = 0_u64;
        for (place, value) in self.0.iter().enumerate() {
            mask |= u64::from(*value > 0) << place;
        }
        varint::put(out, mask);
        for value in self.0.iter().filter(|value| **value > 0) {
            varint::put(out, *value);
        }
    }

    fn merge_encoded(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut mask = reader.number()?;
        if mask >> FIELDS != 0 {
            return Err(DecodeError);
        }
        while mask != 0 {
            let place = mask.trailing_zeros() as usize;
            let (value, known) = (reader.number()?, &mut self.0[place]);
            *known = match place == Field::Longest as usize {
                true => (*known).max(value),
                false => known.saturating_add(value),
            };
            mask &= mask - 1;
        }
        Ok(())
    }

    /// Keeps these fields only.
    fn only(&self, fields: &[Field]) -> Self {
        let mut kept = Self::default();
        for field in fields {
            kept.0[*field as usize] = self.0[*field as usize];
        }
        kept
    }
}

/// Sums and sketches of any length of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// The sums.
    pub sums: Sums,
    /// The sketches, by [`Latency`].
    pub sketches: [Sketch; 3],
}

impl Cell {
    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        self.sums.merge(&other.sums);
        for (mine, others) in self.sketches.iter_mut().zip(&other.sketches) {
            mine.merge(others);
        }
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.sums.encode(out);
        let mask = (0..3).fold(0_u8, |mask, place| {
            mask | u8::from(!self.sketches[place].is_empty()) << place
        });
        out.push(mask);
        for sketch in self.sketches.iter().filter(|sketch| !sketch.is_empty()) {
            let mut bytes = Vec::new();
            sketch.encode(&mut bytes);
            varint::put_bytes(out, &bytes);
        }
    }

    /// Adds an encoded one; of its sketches, those that are wanted.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn merge_encoded(&mut self, reader: &mut Reader<'_>, wanted: [bool; 3]) -> Result<(), DecodeError> {
        self.sums.merge_encoded(reader)?;
        let mask = reader.byte()?;
        for place in (0..3).filter(|place| mask >> place & 1 == 1) {
            let bytes = reader.bytes()?;
            if wanted[place] {
                self.sketches[place].merge_encoded(&mut Reader::new(bytes))?;
            }
        }
        Ok(())
    }
}

/// The row of an hour, or of a day, which has no minutes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// All of it.
    pub total: Cell,
    /// By minute of the hour, in order: its sums.
    pub minutes: Vec<(u8, Sums)>,
    /// By minute of the hour, in order: the sketch of the whole time of calls.
    pub sketches: Vec<(u8, Sketch)>,
}

/// Which parts of a row are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The sketches of the whole hour.
    pub sketches: [bool; 3],
    /// The minutes.
    pub has_minutes: bool,
    /// The sketches of minutes.
    pub has_minute_sketches: bool,
}

impl Parts {
    /// Everything.
    pub const ALL: Self = Self {
        sketches: [true; 3],
        has_minutes: true,
        has_minute_sketches: true,
    };
}

impl Row {
    /// Adds what was counted in a minute of the hour, as far as the cube keeps it.
    pub fn add(&mut self, cube: Cube, minute: u8, cell: &Cell) {
        self.total.sums.merge(&cell.sums);
        for (place, is_kept) in cube.sketches().into_iter().enumerate() {
            if is_kept {
                self.total.sketches[place].merge(&cell.sketches[place]);
            }
        }
        let sums = cell.sums.only(cube.minute_fields());
        match self.minutes.binary_search_by_key(&minute, |(known, _)| *known) {
            Ok(place) => self.minutes[place].1.merge(&sums),
            Err(place) => self.minutes.insert(place, (minute, sums)),
        }
        if cube.has_minute_sketch() && !cell.sketches[0].is_empty() {
            let sketch = &cell.sketches[0];
            match self.sketches.binary_search_by_key(&minute, |(known, _)| *known) {
                Ok(place) => self.sketches[place].1.merge(sketch),
                Err(place) => self.sketches.insert(place, (minute, sketch.clone())),
            }
        }
    }

    /// Adds another row of the same hour or day.
    pub fn merge(&mut self, other: &Self) {
        self.total.merge(&other.total);
        for (minute, sums) in &other.minutes {
            match self.minutes.binary_search_by_key(minute, |(known, _)| *known) {
                Ok(place) => self.minutes[place].1.merge(sums),
                Err(place) => self.minutes.insert(place, (*minute, *sums)),
            }
        }
        for (minute, sketch) in &other.sketches {
            match self.sketches.binary_search_by_key(minute, |(known, _)| *known) {
                Ok(place) => self.sketches[place].1.merge(sketch),
                Err(place) => self.sketches.insert(place, (*minute, sketch.clone())),
            }
        }
    }

    /// Puts minutes together: sums into spans of `minutes`, sketches into spans of `sketches`. A span of an hour leaves
    /// only the hour; then the sketch of the gateway's own time is left to the days.
    pub fn repack(&mut self, minutes: u8, sketches: u8) {
        let mut kept: Vec<(u8, Sums)> = Vec::new();
        let mut kept_sketches: Vec<(u8, Sketch)> = Vec::new();
        for (minute, sums) in self.minutes.drain(..).filter(|_| minutes < 60) {
            let start = minute / minutes.max(1) * minutes.max(1);
            match kept.last_mut() {
                Some((last, known)) if *last == start => known.merge(&sums),
                _ => kept.push((start, sums)),
            }
        }
        for (minute, sketch) in self.sketches.drain(..).filter(|_| sketches < 60) {
            let start = minute / sketches.max(1) * sketches.max(1);
            match kept_sketches.last_mut() {
                Some((last, known)) if *last == start => known.merge(&sketch),
                _ => kept_sketches.push((start, sketch)),
            }
        }
        (self.minutes, self.sketches) = (kept, kept_sketches);
        if minutes >= 60 {
            self.total.sketches[Latency::Gateway as usize] = Sketch::default();
        }
    }

    /// The row as it is stored.
    pub fn encode(&self, cube: Cube) -> Vec<u8> {
        let mut out = Vec::new();
        self.total.encode(&mut out);
        let mut part = Vec::new();
        let mut expected = 0;
        for (minute, sums) in &self.minutes {
            encode_minute(minute - expected, sums, cube.minute_fields(), &mut part);
            expected = *minute + 1;
        }
        varint::put_bytes(&mut out, &part);
        let mut next = 0;
        for (minute, sketch) in &self.sketches {
            out.push(minute - next);
            sketch.encode(&mut out);
            next = *minute;
        }
        out
    }

    /// Reads the wanted parts of a stored row.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(cube: Cube, bytes: &[u8], parts: Parts) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut row = Self::default();
        row.total.merge_encoded(&mut reader, parts.sketches)?;
        let mut minutes = Reader::new(reader.bytes()?);
        let mut expected = 0_u8;
        while parts.has_minutes && !minutes.is_empty() {
            let (skipped, sums) = decode_minute(cube.minute_fields(), &mut minutes)?;
            let minute = expected
                .checked_add(skipped)
                .filter(|it| *it < 60)
                .ok_or(DecodeError)?;
            row.minutes.push((minute, sums));
            expected = minute + 1;
        }
        let mut minute = 0_u8;
        while parts.has_minute_sketches && !reader.is_empty() {
            minute = minute
                .checked_add(reader.byte()?)
                .filter(|it| *it < 60)
                .ok_or(DecodeError)?;
            row.sketches.push((minute, Sketch::decode(&mut reader)?));
        }
        Ok(row)
    }
}

/// Appends the fields of a minute: which have values, in the order of the cube's list, and these. Minutes that were
/// skipped since the last one are written if there are any.
fn encode_minute(skipped: u8, sums: &Sums, fields: &[Field], out: &mut Vec<u8>) {
    let mut mask = u64::from(skipped > 0);
    for (place, field) in fields.iter().enumerate() {
        mask |= u64::from(sums.get(*field) > 0) << (place + 1);
    }
    varint::put(out, mask);
    if skipped > 0 {
        out.push(skipped);
    }
    for field in fields.iter().filter(|field| sums.get(**field) > 0) {
        match field.is_rounded() {
            true => out.extend_from_slice(&rounded(sums.get(*field)).to_le_bytes()),
            false => varint::put(out, sums.get(*field)),
        }
    }
}

fn decode_minute(fields: &[Field], reader: &mut Reader<'_>) -> Result<(u8, Sums), DecodeError> {
    let mask = reader.number()?;
    if mask >> (fields.len() + 1) != 0 {
        return Err(DecodeError);
    }
    let skipped = if mask & 1 == 1 { reader.byte()? } else { 0 };
    let mut sums = Sums::default();
    for (place, field) in fields.iter().enumerate() {
        if mask >> (place + 1) & 1 == 1 {
            let value = match field.is_rounded() {
                true => unrounded(u16::from_le_bytes([reader.byte()?, reader.byte()?])),
                false => reader.number()?,
            };
            sums.add(*field, value);
        }
    }
    Ok((skipped, sums))
}

/// Bits of the mantissa of a rounded number.
const MANTISSA: u32 = 11;

/// A number in two bytes, to within 0.05 %: a mantissa of 11 bits and an exponent of 5.
fn rounded(value: u64) -> u16 {
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(MANTISSA);
    // Half of what is cut off is added first.
    let value = value.saturating_add((1 << exponent) >> 1);
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(MANTISSA);
    match exponent > 31 {
        true => u16::MAX,
        false => (exponent as u16) << MANTISSA | (value >> exponent) as u16,
    }
}

fn unrounded(rounded: u16) -> u64 {
    let mantissa = u64::from(rounded & ((1 << MANTISSA) - 1));
    mantissa << (rounded >> MANTISSA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(calls: u64, us: u64) -> Cell {
        let mut cell = Cell::default();
        for field in [Field::Calls, Field::UpstreamCalls] {
            cell.sums.add(field, calls);
        }
        cell.sums.add(Field::Total, calls * us);
        cell.sums.add(Field::Upstream, calls * us / 2);
        cell.sums.add(Field::Longest, us);
        for _ in 0..calls {
            cell.sketches[0].add(us);
            cell.sketches[1].add(us / 2);
        }
        cell
    }

    fn row(cube: Cube, minutes: &[(u8, u64, u64)]) -> Row {
        let mut row = Row::default();
        for (minute, calls, us) in minutes {
            row.add(cube, *minute, &cell(*calls, *us));
        }
        row
    }

    /// A row without what is rounded.
    fn exact(mut row: Row) -> Row {
        for (_, sums) in &mut row.minutes {
            for field in [Field::Total, Field::Upstream, Field::BytesIn, Field::BytesOut] {
                sums.0[field as usize] = 0;
            }
        }
        row
    }

    #[test]
    fn rounded_numbers_are_close() {
        for value in (0..5_000)
            .chain((0..2_000).map(|it| it * it * it * 500))
            .chain([2_047, 2_048, 4_095])
        {
            let restored = unrounded(rounded(value));
            assert!(
                restored.abs_diff(value) as f64 <= 0.0005 * value as f64,
                "{value} {restored}"
            );
        }
        assert!(unrounded(rounded(u64::MAX)) > 1 << 41);
    }

    proptest! {
        #[test]
        fn rows_come_back_and_keep_their_sums(
            minutes in prop::collection::vec((0_u8..60, 1_u64..50, 1_u64..2_000_000), 0..40),
            cube in prop::sample::select(Cube::ALL),
            (by, sketches_by) in (prop::sample::select(&[1_u8, 5, 60][..]), prop::sample::select(&[1_u8, 15, 60][..])),
        ) {
            let mut packed = row(cube, &minutes);
            let bytes = packed.encode(cube);
            prop_assert_eq!(Row::decode(cube, &bytes, Parts::ALL).map(exact), Ok(exact(packed.clone())));
            let few = Parts { sketches: [false; 3], has_minutes: false, has_minute_sketches: false };
            prop_assert_eq!(Row::decode(cube, &bytes, few).map(|it| it.total.sums), Ok(packed.total.sums));
            let calls: u64 = minutes.iter().map(|(_, calls, _)| calls).sum();
            prop_assert_eq!(packed.total.sums.get(Field::Calls), calls);
            packed.repack(by, sketches_by);
            let in_minutes: u64 = packed.minutes.iter().map(|(_, sums)| sums.get(Field::Calls)).sum();
            prop_assert_eq!(in_minutes, if by < 60 { calls } else { 0 });
            prop_assert!(packed.minutes.iter().all(|(minute, _)| minute % by == 0));
            let bytes = packed.encode(cube);
            prop_assert_eq!(Row::decode(cube, &bytes, Parts::ALL).map(exact), Ok(exact(packed.clone())));
        }

        #[test]
        fn damaged_rows_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _read = Row::decode(Cube::Route, &bytes, Parts::ALL);
        }
    }
}
