//! The rows of the next batch, and which keys of a cube are kept apart in an hour.

use super::NameId;
use super::series::Counts;
use crate::batch::Key;
use crate::cell::Field;
use crate::cube::{Cube, Dimension};
use crate::heavy_hitters::HeavyHitters;
use foldhash::HashMap;

/// Which row: the cube, the minute, the key.
type RowKey = (Cube, u32, Key);

/// Which keys of a cube are kept apart in the present hour.
pub(super) struct Tracker {
    hour: u32,
    frequent: Option<HeavyHitters<Key>>,
    first: foldhash::HashSet<Key>,
    /// Of sampled calls: the keys that have rows in this hour, and in the one before.
    with_rows: foldhash::HashSet<Key>,
    with_rows_before: foldhash::HashSet<Key>,
}

impl Tracker {
    pub(super) fn of(cube: Cube) -> Self {
        Self {
            hour: 0,
            frequent: cube.is_unbounded().then(|| HeavyHitters::new(cube.limit())),
            first: foldhash::HashSet::default(),
            with_rows: foldhash::HashSet::default(),
            with_rows_before: foldhash::HashSet::default(),
        }
    }

    /// Whether a key is counted separately. Also returns the key that lost its place.
    fn admit(&mut self, cube: Cube, hour: u32, key: &Key, weight: u64) -> (bool, Option<Key>) {
        if hour > self.hour {
            // Rows of the hour that has ended may still wait.
            if cube.is_sampled() {
                let keys = self.frequent.as_ref().map(HeavyHitters::by_count);
                keys.into_iter().flatten().for_each(|key| {
                    self.claim_row(cube, self.hour, &key);
                });
            }
            *self = Self {
                hour,
                with_rows_before: std::mem::take(&mut self.with_rows),
                ..Self::of(cube)
            };
        }
        match &mut self.frequent {
            Some(frequent) => (true, frequent.count(key, weight)),
            None if self.first.contains(key) => (true, None),
            None if self.first.len() < cube.limit() => {
                self.first.insert(*key);
                (true, None)
            }
            None => (false, None),
        }
    }

    /// Gives a key of sampled calls a row in an hour if it is frequent beyond doubt and there are not too many rows. Returns
    /// whether it has one. A fifth of the rows is kept for keys that turn out to be frequent when not all have room.
    fn claim_row(&mut self, cube: Cube, hour: u32, key: &Key) -> bool {
        let Some(frequent) = &self.frequent else {
            return true;
        };
        if hour < self.hour {
            return self.with_rows_before.contains(key);
        }
        let room = match frequent.is_full() {
            true => cube.limit(),
            false => cube.limit() - cube.limit() / 5,
        };
        let has_row = frequent.is_sure(key) && (self.with_rows.contains(key) || self.with_rows.len() < room);
        if has_row {
            self.with_rows.insert(*key);
        }
        has_row
    }
}

/// The rows: counts, and the positions of a key's. So the table of keys is small.
pub(super) struct Rows {
    trackers: Vec<Tracker>,
    /// The name of what stands for all keys that are not kept apart.
    other: NameId,
    places: HashMap<RowKey, u32>,
    counts: Vec<Counts<3>>,
    /// Places of no key.
    free: Vec<u32>,
}

impl Rows {
    pub(super) fn new(other: NameId) -> Self {
        Self {
            trackers: Cube::ALL.iter().map(|cube| Tracker::of(*cube)).collect(),
            other,
            places: HashMap::default(),
            counts: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The counts of a key, which is one of the frequent or the first ones, or of `_other`.
    pub(super) fn row(&mut self, cube: Cube, minute: u32, key: Key, weight: u64) -> &mut Counts<3> {
        // Where keys are not pushed out by others, the row of a minute says that its key was admitted.
        if !cube.is_unbounded()
            && let Some(place) = self.places.get(&(cube, minute, key))
        {
            return &mut self.counts[*place as usize];
        }
        let (is_admitted, evicted) = self.trackers[cube as usize].admit(cube, minute / 60, &key, weight);
        if let Some(evicted) = evicted {
            self.fold((cube, minute, evicted));
        }
        let key = match is_admitted {
            true => key,
            false => folded(cube, key, self.other),
        };
        self.at((cube, minute, key))
    }

    /// The counts of a place, which are made if there are none.
    fn at(&mut self, place: RowKey) -> &mut Counts<3> {
        let (counts, free) = (&mut self.counts, &mut self.free);
        let place = *self.places.entry(place).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                counts.push(Counts::default());
                (counts.len() - 1) as u32
            })
        });
        &mut self.counts[place as usize]
    }

    /// Counts a row for `_other`.
    fn fold(&mut self, (cube, minute, key): RowKey) {
        let Some(place) = self.places.remove(&(cube, minute, key)) else {
            return;
        };
        self.free.push(place);
        let counts = std::mem::take(&mut self.counts[place as usize]);
        self.at((cube, minute, folded(cube, key, self.other)))
            .merge(&counts);
    }

    /// Takes all of them. Texts of clients that may have become frequent by chance only are counted for `_other`: if all
    /// calls have other ones, there is no row for each.
    pub(super) fn take(&mut self) -> Vec<(RowKey, Counts<3>)> {
        let calls = |place: u32| self.counts[place as usize].sums.get(Field::Calls);
        let sampled = self.places.iter().filter(|((cube, _, _), _)| cube.is_sampled());
        let mut sampled: Vec<(u64, RowKey)> = sampled.map(|(key, place)| (calls(*place), *key)).collect();
        sampled.sort_unstable_by(|a, b| b.cmp(a));
        for (_, row) in sampled {
            let (cube, minute, key) = row;
            // `_other` is itself in no list of frequent keys.
            let is_other = folded(cube, key, self.other) == key;
            if !is_other && !self.trackers[cube as usize].claim_row(cube, minute / 60, &key) {
                self.fold(row);
            }
        }
        let counts = &mut self.counts;
        let of = |(key, place): (RowKey, u32)| (key, std::mem::take(&mut counts[place as usize]));
        let taken = self.places.drain().map(of).collect();
        self.counts.clear();
        self.free.clear();
        taken
    }

    /// Bytes that it needs, but for lists of frequent keys, which have their limits.
    pub(super) fn bytes(&self) -> usize {
        let times = self.counts.iter().flat_map(|counts| &counts.times);
        times.map(crate::times::Times::bytes).sum::<usize>()
            + self.counts.capacity() * size_of::<Counts<3>>()
            + self.places.capacity() * (size_of::<(RowKey, u32)>() + 1)
            + self.free.capacity() * size_of::<u32>()
    }
}

/// The key that stands for all keys like this one that are not kept apart.
fn folded(cube: Cube, mut key: Key, other: NameId) -> Key {
    for (place, dimension) in cube.dimensions().iter().enumerate() {
        let is_kept = match dimension {
            // The service of a refusal stays: refusals are few, and one asks for whose they are.
            Dimension::Refusal | Dimension::Plugin => true,
            dimension => Cube::keeps_in_other(*dimension),
        };
        if !is_kept {
            key[place] = other;
        }
    }
    key
}
