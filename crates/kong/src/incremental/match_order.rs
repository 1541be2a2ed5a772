//! Places of matches among all others, as numbers that stay what they are while other matches come and go.
//!
//! A match that comes gets a number between those of its neighbours. If none is left, all are numbered again,
//! which many changes share in. Only the order of the numbers means anything.

use crate::translate::precedence::Rank;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use uuid::Uuid;

/// The sort key of matches: the greatest wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey {
    rank: Rank,
    /// Of equals the older route wins, and then that with the lower id.
    age: Reverse<(u64, Uuid)>,
    workspace: Arc<str>,
    /// The position in the route.
    number: usize,
}

impl SortKey {
    /// Of a match of the route `id` in a workspace, which was made at `created_at` in seconds.
    pub fn new(
        (rank, number): (&Rank, usize),
        created_at: f64,
        id: Uuid,
        workspace: &Arc<str>,
        router_looks_at_age: bool,
    ) -> Self {
        // The bits of numbers that are not negative are in the order of the numbers.
        let age = match router_looks_at_age {
            true => created_at.max(0.0).to_bits(),
            false => 0,
        };
        Self {
            rank: rank.clone(),
            age: Reverse((age, id)),
            workspace: Arc::clone(workspace),
            number,
        }
    }
}

/// The numbers of all matches.
#[derive(Default)]
pub struct MatchOrder {
    numbers: BTreeMap<SortKey, u64>,
    is_crowded: bool,
}

impl MatchOrder {
    /// A match has come.
    pub fn add(&mut self, key: SortKey) {
        if self.is_crowded {
            self.numbers.entry(key).or_default();
            return;
        }
        let beside = |(_, number): (&SortKey, &u64)| *number;
        let below = self.numbers.range(..&key).next_back().map_or(0, beside);
        let mut above = self.numbers.range((Excluded(&key), Unbounded));
        let above = above.next().map_or(u64::MAX, beside);
        if let Entry::Vacant(place) = self.numbers.entry(key) {
            let number = below + (above - below) / 2;
            self.is_crowded = number == below;
            place.insert(number);
        }
    }

    /// A match has gone.
    pub fn remove(&mut self, key: &SortKey) {
        self.numbers.remove(key);
    }

    /// Numbers all again if there was no room. Returns whether it has.
    pub fn renumber(&mut self) -> bool {
        if !self.is_crowded {
            return false;
        }
        self.is_crowded = false;
        let step = u64::MAX / (self.numbers.len() as u64 + 1);
        let mut next = 0;
        for number in self.numbers.values_mut() {
            next += step;
            *number = next;
        }
        true
    }

    /// The number of a match.
    pub fn get(&self, key: &SortKey) -> Option<u64> {
        self.numbers.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(rank: u64) -> SortKey {
        let workspace = "default".into();
        SortKey::new(
            (&Rank::Compatible(rank, Uuid::nil()), 0),
            0.0,
            Uuid::nil(),
            &workspace,
            false,
        )
    }

    #[test]
    fn numbers_keep_the_order_of_keys() {
        let mut numbers = MatchOrder::default();
        let mut renumbered = 0;
        for rank in 0..10_000 {
            numbers.add(key(rank));
            renumbered += usize::from(numbers.renumber());
            let before = rank.checked_sub(1).and_then(|rank| numbers.get(&key(rank)));
            assert!(before < numbers.get(&key(rank)), "{rank}");
        }
        assert!((1..1_000).contains(&renumbered), "{renumbered}");
        let kept = numbers.get(&key(7));
        numbers.remove(&key(6));
        numbers.add(key(6));
        assert!(!numbers.renumber());
        assert!(numbers.get(&key(5)) < numbers.get(&key(6)) && numbers.get(&key(6)) < kept);
        assert_eq!(numbers.get(&key(7)), kept);
    }

    #[test]
    fn older_routes_win_where_the_router_looks_at_age() {
        let key = |created_at, id, looks| {
            let rank = Rank::Compatible(1, Uuid::nil());
            SortKey::new(
                (&rank, 0),
                created_at,
                Uuid::from_u128(id),
                &"default".into(),
                looks,
            )
        };
        assert!(key(1.0, 2, true) > key(2.0, 1, true));
        assert!(key(1.0, 1, true) > key(1.0, 2, true));
        assert!(key(1.0, 2, false) < key(2.0, 1, false));
    }
}
