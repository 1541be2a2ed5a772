//! Calls that are made up, the same ones each time: for tests of sizes and for the bench.

use weir_analytics::cell::{Cell, Field};
use weir_analytics::cube::Cube;

/// Numbers that look random and are the same each time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Durations as services have them: about 12 ms, the slowest hundredth three times as long.
    pub fn duration(&mut self) -> u64 {
        let bell: u64 = (0..4).map(|_| self.below(1_000)).sum();
        (12_000.0 * (0.45 * (bell as f64 - 2_000.0) / 577.0).exp()) as u64
    }

    /// What is counted of so many calls in a minute.
    pub fn cell(&mut self, cube: Cube, calls: u64) -> Cell {
        let mut cell = Cell::default();
        let (drawn, mut total) = (calls.min(60), 0);
        for draw in 0..drawn {
            let us = self.duration();
            let count = calls / drawn + u64::from(draw < calls % drawn);
            total += us * count;
            for (place, divisor) in [(0, 1), (1, 2), (2, 50)] {
                if cube.sketches()[place] {
                    cell.sketches[place].add_many(us / divisor, count);
                }
            }
        }
        for (field, value) in [
            (Field::Calls, calls),
            (Field::Total, total),
            (Field::BytesOut, calls * 2_000),
            (Field::BytesIn, calls * 300),
            (Field::Upstream, total / 2),
            (Field::UpstreamCalls, calls),
            (Field::Longest, 900_000),
        ] {
            cell.sums.add(field, value);
        }
        cell
    }

    /// How many calls a key has in a minute if so many calls of a second are shared by `keys` keys by Zipf's law.
    pub fn calls_of(&mut self, (keys, calls): (usize, f64), place: usize) -> u64 {
        let weight: f64 = (1..=keys).map(|place| 1.0 / place as f64).sum();
        let expected = calls * 60.0 / weight / place as f64;
        (expected * (0.8 + self.below(400) as f64 / 1_000.0)) as u64
    }
}
