//! The minimum rate of a call's bodies, if its route sets one.

use std::time::{Duration, Instant};
use weir_snapshot::Route;

/// Pieces for each second, so that a client sees a steady stream; but no piece is smaller than the least.
const PIECES_PER_SECOND: u64 = 10;
const LEAST_PIECE: u64 = 512;

/// The bound of one body, and what of it has passed.
#[derive(Debug)]
pub struct BodyRate {
    per_second: u64,
    began: Instant,
    passed: u64,
}

impl BodyRate {
    fn new(per_second: u64) -> Option<Self> {
        (per_second > 0).then(|| Self {
            per_second,
            began: Instant::now(),
            passed: 0,
        })
    }

    /// The bound of a route's responses.
    #[inline]
    pub fn of_response(route: &Route) -> Option<Box<Self>> {
        let bandwidth = route.rules.bandwidth.as_ref()?;
        Self::new(bandwidth.response_bytes_per_second).map(Box::new)
    }

    /// The bound of a route's requests.
    #[inline]
    pub fn of_request(route: &Route) -> Option<Self> {
        let bandwidth = route.rules.bandwidth.as_ref()?;
        Self::new(bandwidth.request_bytes_per_second)
    }

    /// The most that passes at once.
    pub fn piece(&self) -> usize {
        let piece = (self.per_second / PIECES_PER_SECOND).max(LEAST_PIECE);
        usize::try_from(piece).unwrap_or(usize::MAX)
    }

    /// Notes that so many bytes pass now; gives how long the next one has to wait.
    pub fn pass(&mut self, bytes: usize) -> Duration {
        self.passed = self.passed.saturating_add(bytes as u64);
        self.delay(self.passed, Instant::now())
    }

    fn delay(&self, passed: u64, now: Instant) -> Duration {
        let due = Duration::from_micros(passed.saturating_mul(1_000_000) / self.per_second);
        due.saturating_sub(now.saturating_duration_since(self.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_for_their_time() {
        for (per_second, passed, after_ms, delay_ms, piece) in [
            (1_000, 0, 0, 0, 512),
            (1_000, 1_000, 0, 1_000, 512),
            (1_000, 1_000, 400, 600, 512),
            (1_000, 1_000, 5_000, 0, 512),
            (1_000_000, 500_000, 0, 500, 100_000),
            (u64::MAX, u64::MAX, 0, 0, usize::MAX),
        ] {
            let rate = BodyRate::new(per_second).expect("a bound");
            let now = rate.began + Duration::from_millis(after_ms);
            let delay = rate.delay(passed, now).as_millis() as u64;
            assert_eq!(delay, delay_ms, "{per_second} {passed} {after_ms}");
            assert_eq!(rate.piece(), piece.min((u64::MAX / 10) as usize), "{per_second}");
        }
        assert!(BodyRate::new(0).is_none());
    }
}
