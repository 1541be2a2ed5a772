//! The counts of the calls of one series, which have the same names: the first step of counting. Most calls are of a
//! series that is called again soon, so a call adds to three series, and what they have counted is spread over the cubes
//! later, all at once.

use crate::cell::{Cell, Sums};
use crate::times::Times;
use foldhash::HashMap;

/// Series of a table. With more, all of them are spread and forgotten.
pub(super) const MAX_SERIES: usize = 32_768;

/// Sums, and durations as sketches have them.
#[derive(Debug, Clone)]
pub(super) struct Counts<const TIMES: usize> {
    pub(super) sums: Sums,
    pub(super) times: [Times; TIMES],
}

impl<const TIMES: usize> Default for Counts<TIMES> {
    fn default() -> Self {
        Self {
            sums: Sums::default(),
            times: std::array::from_fn(|_| Times::default()),
        }
    }
}

impl Counts<3> {
    /// Adds these sums and durations.
    pub(super) fn add(&mut self, sums: &Sums, times: [Option<&Times>; 3]) {
        self.sums.count(sums);
        for (mine, others) in self.times.iter_mut().zip(times) {
            others.into_iter().for_each(|others| mine.merge(others));
        }
    }

    /// Adds all of others.
    pub(super) fn merge(&mut self, other: &Self) {
        self.add(&other.sums, other.times.each_ref().map(Some));
    }

    /// The counts as they are stored.
    pub(super) fn to_cell(&self) -> Cell {
        Cell {
            sums: self.sums,
            sketches: self.times.each_ref().map(Times::to_sketch),
        }
    }
}

/// The key of a series of a table: three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey(u128);

impl SeriesKey {
    #[inline]
    pub(super) fn of(first: u32, second: u32, third: u32) -> Self {
        Self(u128::from(first) << 64 | u128::from(second) << 32 | u128::from(third))
    }

    pub(super) fn parts(self) -> (u32, u32, u32) {
        ((self.0 >> 64) as u32, (self.0 >> 32) as u32, self.0 as u32)
    }
}

#[derive(Debug)]
struct Series<const TIMES: usize> {
    key: SeriesKey,
    /// It is among those that were called.
    is_called: bool,
    counts: Counts<TIMES>,
}

/// Series by their keys.
#[derive(Debug)]
pub(super) struct SeriesTable<const TIMES: usize> {
    places: HashMap<SeriesKey, u32>,
    series: Vec<Series<TIMES>>,
    /// Those that were called since they were spread.
    called: Vec<u32>,
    /// The one that was called last: the next call is often of the same.
    last: usize,
}

impl<const TIMES: usize> Default for SeriesTable<TIMES> {
    fn default() -> Self {
        Self {
            places: HashMap::default(),
            series: Vec::new(),
            called: Vec::new(),
            last: 0,
        }
    }
}

impl<const TIMES: usize> SeriesTable<TIMES> {
    /// The counts of a series that is called.
    #[inline]
    pub(super) fn call(&mut self, key: SeriesKey) -> &mut Counts<TIMES> {
        if self.series.get(self.last).is_none_or(|last| last.key != key) {
            self.last = match self.places.get(&key) {
                Some(place) => *place as usize,
                None => self.make(key),
            };
        }
        let series = &mut self.series[self.last];
        if !series.is_called {
            series.is_called = true;
            self.called.push(self.last as u32);
        }
        &mut series.counts
    }

    #[cold]
    fn make(&mut self, key: SeriesKey) -> usize {
        let place = self.series.len();
        self.places.insert(key, place as u32);
        self.series.push(Series {
            key,
            is_called: false,
            counts: Counts::default(),
        });
        place
    }

    /// Whether there is no room for one more.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.series.len() >= MAX_SERIES
    }

    /// How many series were called since they were spread.
    pub(super) fn called(&self) -> usize {
        self.called.len()
    }

    /// Passes on the counts of all series that were called, and empties them.
    pub(super) fn spread(&mut self, mut each: impl FnMut(SeriesKey, &Counts<TIMES>)) {
        for place in self.called.drain(..) {
            let series = &mut self.series[place as usize];
            each(series.key, &series.counts);
            series.is_called = false;
            series.counts.sums = Sums::default();
            series.counts.times.iter_mut().for_each(Times::clear);
        }
    }

    /// Bytes that it needs.
    pub(super) fn bytes(&self) -> usize {
        let times: usize = self
            .series
            .iter()
            .flat_map(|series| &series.counts.times)
            .map(Times::bytes)
            .sum();
        times
            + self.series.capacity() * size_of::<Series<TIMES>>()
            + self.places.capacity() * (size_of::<(SeriesKey, u32)>() + 1)
            + self.called.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Field;

    #[test]
    fn series_are_spread_once_and_keep_their_places() {
        let mut table = SeriesTable::<1>::default();
        for (key, us) in [(1, 5), (2, 6), (1, 7), (1, 7)] {
            let counts = table.call(SeriesKey::of(key, 0, u32::MAX));
            counts.sums.add(Field::Calls, 1);
            counts.times[0].add(us);
        }
        let mut seen = Vec::new();
        let mut spread = |table: &mut SeriesTable<1>| {
            seen.clear();
            table.spread(|key, counts| {
                let count = counts.times[0].to_sketch().count();
                seen.push((key.parts(), counts.sums.get(Field::Calls), count));
            });
            seen.clone()
        };
        assert_eq!(table.called(), 2);
        let first = ((1, 0, u32::MAX), 3, 3);
        assert_eq!(spread(&mut table), [first, ((2, 0, u32::MAX), 1, 1)]);
        assert_eq!((spread(&mut table), table.called()), (vec![], 0));
        table
            .call(SeriesKey::of(2, 0, u32::MAX))
            .sums
            .add(Field::Calls, 4);
        assert_eq!(
            spread(&mut table),
            [((2, 0, u32::MAX), 4, 0)],
            "nothing is left of before"
        );
        assert_eq!(table.series.len(), 2);
    }
}
