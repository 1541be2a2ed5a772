//! How slowly a client may send a request body: it may pause, but not for ever, and not again and again for a byte each.

use crate::limits::Limits;
use std::time::{Duration, Instant};

/// How long a client may yet keep a call waiting for its body. Bytes that come earn more of it.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeBudget {
    left: Duration,
    most: Duration,
    /// Bytes for each second; 0: each wait is bounded for itself only.
    min_rate: u32,
}

impl BodyTimeBudget {
    /// For a body that is about to begin.
    pub fn new(limits: &Limits) -> Self {
        Self {
            left: limits.body_timeout,
            most: limits.body_timeout,
            min_rate: limits.min_body_rate,
        }
    }

    /// Lets a body pause as often as it wants: a stream of messages has nothing to say for most of the time.
    pub fn without_rate(self) -> Self {
        Self {
            min_rate: 0,
            left: self.most,
            ..self
        }
    }

    /// Whether the body has to come at a rate.
    pub fn has_rate(&self) -> bool {
        self.min_rate > 0
    }

    /// How long the next bytes may take.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// So many bytes came, for which the call has waited since that moment; `None`: they were there.
    pub fn note(&mut self, bytes: usize, waited_since: Option<Instant>) {
        let waited = waited_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.earn(bytes, waited);
    }

    fn earn(&mut self, bytes: usize, waited: Duration) {
        let earned = match self.min_rate {
            0 => self.most,
            rate => Duration::from_micros((bytes as u64).saturating_mul(1_000_000) / u64::from(rate)),
        };
        self.left = (self.left.saturating_sub(waited) + earned).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many seconds a body takes that comes in so many bytes each so many milliseconds, until it is refused or an
    /// hour is over.
    fn lasts(min_rate: u32, bytes: usize, every_ms: u64) -> Option<u64> {
        let limits = Limits {
            min_body_rate: min_rate,
            ..Limits::default()
        };
        let mut pace = BodyTimeBudget::new(&limits);
        let every = Duration::from_millis(every_ms);
        let mut time = Duration::ZERO;
        while time.as_secs() < 3600 {
            if every >= pace.left() {
                return Some((time + pace.left()).as_secs());
            }
            time += every;
            pace.earn(bytes, every);
        }
        None
    }

    #[test]
    fn slow_bodies_end() {
        for (min_rate, bytes, every_ms, wanted) in [
            (240, 1, 1_000, Some(60)),
            (240, 1, 59_000, Some(60)),
            (240, 120, 1_000, Some(119)),
            (240, 240, 1_000, None),
            (240, 15_000, 59_000, None),
            // A client that is fast for once earns no more than one pause.
            (240, 1_000_000, 60_000, Some(60)),
            (0, 1, 59_000, None),
            (0, 1, 60_000, Some(60)),
        ] {
            let found = lasts(min_rate, bytes, every_ms);
            assert_eq!(found, wanted, "{min_rate} {bytes} {every_ms}");
        }
        let limits = Limits::default();
        assert_eq!(BodyTimeBudget::new(&limits).without_rate().min_rate, 0);
    }
}
