//! Times as documents, messages and tokens have them: seconds or milliseconds since 1970 in UTC. No calendar and no
//! clock: who needs the time of now passes it, so that tests choose it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970; 0 for a time before.
pub fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whole milliseconds since 1970; 0 for a time before.
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time that is so many seconds after 1970; for numbers beyond, the last that has a number of
/// milliseconds. What is added to it then is no overflow.
pub fn from_seconds(seconds: u64) -> SystemTime {
    after(Duration::from_secs(seconds))
}

/// The time that is so many milliseconds after 1970.
pub fn from_millis(millis: u64) -> SystemTime {
    after(Duration::from_millis(millis))
}

/// A number that a peer sent may be beyond what the system's times can hold: the sum would panic.
fn after(since: Duration) -> SystemTime {
    const LAST: Duration = Duration::from_millis(u64::MAX);
    UNIX_EPOCH + since.min(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_times_and_back() {
        for given in [0, 1, 1_800_000_000, 4_102_444_800] {
            assert_eq!(seconds(from_seconds(given)), given);
            assert_eq!(millis(from_millis(given)), given);
        }
    }

    #[test]
    fn a_time_before_1970_is_zero() {
        let before = UNIX_EPOCH - Duration::from_secs(5);
        assert_eq!((seconds(before), millis(before)), (0, 0));
    }

    #[test]
    fn a_number_beyond_all_times_is_a_time() {
        assert!(from_seconds(u64::MAX) >= from_seconds(4_102_444_800));
        assert!(from_millis(u64::MAX) >= from_millis(4_102_444_800));
    }
}
