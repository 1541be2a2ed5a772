//! The time of day, computed from the monotonic clock that a worker reads for each call anyway. The system clock is
//! read once a second. The monotonic time is an argument.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// For how long the two clocks are taken to run alike. If the system's is set, that is seen so much later.
const RENEWED: Duration = Duration::from_secs(1);

/// The last reading of the system's clock, and its time.
#[derive(Debug, Default)]
pub struct WallClock(Cell<Option<(Instant, u64)>>);

impl WallClock {
    /// The time of day at a moment, in milliseconds since the Unix epoch. `read` reads both clocks.
    pub fn unix_ms(&self, at: Instant, read: impl FnOnce() -> (Instant, u64)) -> u64 {
        let is_good = |known: &(Instant, u64)| at.saturating_duration_since(known.0) < RENEWED;
        let (known, unix_ms) = self.0.get().filter(is_good).unwrap_or_else(|| {
            let read = read();
            self.0.set(Some(read));
            read
        });
        match at.checked_duration_since(known) {
            Some(after) => unix_ms + after.as_millis() as u64,
            None => unix_ms.saturating_sub(known.saturating_duration_since(at).as_millis() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clocks_are_read_once_a_second() {
        let begin = Instant::now();
        let after = |ms| begin + Duration::from_millis(ms);
        let clock = WallClock::default();
        // When, in milliseconds; what the clocks say if they are read; what the time of day is then.
        for (at, read, wanted) in [
            (10, Some((12, 1_000_000)), 999_998),
            (12, None, 1_000_000),
            (500, None, 1_000_488),
            (5, None, 999_993),
            (1_011, None, 1_000_999),
            // The system's clock was set.
            (1_012, Some((1_013, 5_000_000)), 4_999_999),
            (1_500, None, 5_000_487),
        ] {
            let found = clock.unix_ms(after(at), || {
                let (read_at, unix_ms) = read.unwrap_or_else(|| panic!("{at}: a clock is read"));
                (after(read_at), unix_ms)
            });
            assert_eq!(found, wanted, "{at}");
        }
    }
}
