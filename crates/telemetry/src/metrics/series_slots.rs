//! Which (service, route) pair owns which series.
//!
//! A pair keeps its series for as long as configurations name it, and gets it back when it returns before
//! another pair needed the slot. There are never more series than the limit, however often a configuration
//! changes: a full table takes slots back from pairs that are gone, those gone longest first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::names;
use super::series::{FIRST_EPOCH, SeriesId};

/// The largest limit that a [`SeriesId`] can express.
const MAX_LIMIT: usize = 65_000;
/// Slots before those that are allocated: [`SeriesId::UNMATCHED`].
const RESERVED: usize = 1;

#[derive(Debug)]
struct Slot {
    service: Arc<str>,
    route: Arc<str>,
    epoch: u16,
    /// The allocation that last named the pair.
    last_named: u64,
}

#[derive(Debug)]
pub(super) struct SeriesSlots {
    limit: usize,
    slots: Vec<Slot>,
    /// Slot by service, then route: nested, so that a lookup allocates nothing.
    by_name: HashMap<Arc<str>, HashMap<Arc<str>, usize>>,
    round: u64,
    overflow: usize,
}

impl SeriesSlots {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.min(MAX_LIMIT),
            slots: Vec::new(),
            by_name: HashMap::new(),
            round: 0,
            overflow: 0,
        }
    }

    /// The most pairs that may have a series of their own.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Slots of a worker's table.
    pub(super) fn table_len(&self) -> usize {
        RESERVED + self.limit
    }

    /// Pairs of the last allocation that had to share [`SeriesId::OTHER`].
    pub(super) fn overflow(&self) -> usize {
        self.overflow
    }

    /// All pairs that own a series, gone ones included.
    pub(super) fn pairs(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<str>, SeriesId)> {
        self.slots
            .iter()
            .enumerate()
            .map(|(index, slot)| (&slot.service, &slot.route, id(index, slot)))
    }

    /// One id for each pair of a whole configuration, in order.
    pub(super) fn allocate<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Vec<SeriesId> {
        self.round += 1;
        self.overflow = 0;
        let mut new = Vec::new();
        let mut ids = Vec::new();
        // Those that already own a series first: a newcomer must not take a slot that is still in use.
        for (position, pair) in pairs.into_iter().enumerate() {
            ids.push(self.known(pair).unwrap_or_else(|| {
                new.push((position, pair));
                SeriesId::OTHER
            }));
        }
        if new.is_empty() {
            return ids;
        }
        let mut gone = self.gone();
        for (position, pair) in new {
            match self.known(pair).or_else(|| self.admit(pair, &mut gone)) {
                Some(id) => ids[position] = id,
                None => self.overflow += 1,
            }
        }
        ids
    }

    fn known(&mut self, (service, route): (&str, &str)) -> Option<SeriesId> {
        if (service, route) == names::UNMATCHED {
            return Some(SeriesId::UNMATCHED);
        }
        if (service, route) == names::OTHER {
            return Some(SeriesId::OTHER);
        }
        let index = *self.by_name.get(service)?.get(route)?;
        let slot = &mut self.slots[index];
        slot.last_named = self.round;
        Some(id(index, slot))
    }

    /// Slots whose pairs this round did not name, the one gone longest last.
    fn gone(&self) -> Vec<usize> {
        let reusable = |slot: &Slot| slot.last_named < self.round && slot.epoch < u16::MAX;
        let mut gone: Vec<usize> = (0..self.slots.len())
            .filter(|&i| reusable(&self.slots[i]))
            .collect();
        gone.sort_by_key(|&i| std::cmp::Reverse(self.slots[i].last_named));
        gone
    }

    fn admit(&mut self, (service, route): (&str, &str), gone: &mut Vec<usize>) -> Option<SeriesId> {
        let mut slot = Slot {
            service: service.into(),
            route: route.into(),
            epoch: FIRST_EPOCH,
            last_named: self.round,
        };
        let index = if self.slots.len() < self.limit {
            self.slots.len()
        } else {
            gone.pop()?
        };
        let (service, route) = (slot.service.clone(), slot.route.clone());
        if let Some(previous) = self.slots.get_mut(index) {
            slot.epoch = previous.epoch + 1;
            let previous = std::mem::replace(previous, slot);
            self.forget(previous);
        } else {
            self.slots.push(slot);
        }
        self.by_name.entry(service).or_default().insert(route, index);
        Some(id(index, &self.slots[index]))
    }

    fn forget(&mut self, slot: Slot) {
        if let Entry::Occupied(mut routes) = self.by_name.entry(slot.service) {
            routes.get_mut().remove(&slot.route);
            if routes.get().is_empty() {
                routes.remove();
            }
        }
    }
}

fn id(index: usize, slot: &Slot) -> SeriesId {
    let table_index =
        u16::try_from(RESERVED + index).expect("invariant: the limit keeps slots within 16 bits");
    SeriesId::new(table_index, slot.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row is one configuration of a registry with a limit of two: the routes it names, and for each
    /// the slot and epoch that it gets (`None`: shared with the others).
    #[test]
    fn series_are_stable_and_never_more_than_the_limit() {
        type Row = (&'static [&'static str], &'static [Option<(usize, u16)>], usize);
        let rounds: [Row; 10] = [
            (&["a"], &[Some((1, 1))], 0),
            (&["b", "a"], &[Some((2, 1)), Some((1, 1))], 0),
            (
                &["a", "c", "b", "d"],
                &[Some((1, 1)), None, Some((2, 1)), None],
                2,
            ),
            (&["a"], &[Some((1, 1))], 0),
            // `b` is only gone, not forgotten.
            (&["b"], &[Some((2, 1))], 0),
            // `a` is the only one gone: its slot goes to `c` under the next epoch.
            (&["c", "b", "c"], &[Some((1, 2)), Some((2, 1)), Some((1, 2))], 0),
            (&[], &[], 0),
            // Both are gone since the same round; a newcomer after them finds no slot left.
            (&["x", "y", "z"], &[Some((2, 2)), Some((1, 3)), None], 1),
            (&["z"], &[Some((2, 3))], 0),
            (&["y", "z"], &[Some((1, 3)), Some((2, 3))], 0),
        ];
        let mut series_slots = SeriesSlots::new(2);
        for (round, (routes, expected, overflow)) in rounds.into_iter().enumerate() {
            let ids = series_slots.allocate(routes.iter().map(|route| ("s", *route)));
            let expected: Vec<_> = expected
                .iter()
                .map(|e| e.map_or(SeriesId::OTHER, |(s, e)| SeriesId::new(s as u16, e)))
                .collect();
            assert_eq!(ids, expected, "round {round}");
            assert_eq!(series_slots.overflow(), overflow, "round {round}");
            assert!(series_slots.pairs().len() <= 2);
            assert!(series_slots.by_name.values().map(HashMap::len).sum::<usize>() <= 2);
        }
    }

    #[test]
    fn the_same_route_name_in_two_services_is_two_series() {
        let ids = SeriesSlots::new(10).allocate([("s", "r"), ("t", "r"), ("", "r")]);
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    }

    #[test]
    fn reserved_names_keep_their_reserved_series() {
        let mut series_slots = SeriesSlots::new(10);
        assert_eq!(
            series_slots.allocate([names::OTHER, names::UNMATCHED]),
            [SeriesId::OTHER, SeriesId::UNMATCHED],
            "a configured name must not double a line of the exposition"
        );
    }

    #[test]
    fn a_limit_beyond_what_an_id_can_express_is_lowered() {
        assert_eq!(SeriesSlots::new(usize::MAX).limit(), MAX_LIMIT);
        assert_eq!(SeriesSlots::new(0).allocate([("s", "r")]), [SeriesId::OTHER]);
    }
}
