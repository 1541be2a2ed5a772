//! When a message that has not arrived is tried again, and when it is given up.

use std::time::Duration;

/// After this time a message is given up.
pub const GIVE_UP: Duration = Duration::from_secs(3 * 24 * 3600);
/// The pauses after the first attempts, in seconds; after that it is the last one.
const PAUSES: [u64; 7] = [5, 15, 60, 300, 900, 1_800, 3_600];

/// The pause after so many attempts.
pub fn pause(attempts: usize) -> Duration {
    let index = attempts.saturating_sub(1).min(PAUSES.len() - 1);
    Duration::from_secs(PAUSES[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_below_an_hour() {
        let all: Vec<u64> = (1..10).map(|it| pause(it).as_secs()).collect();
        assert_eq!(all, [5, 15, 60, 300, 900, 1_800, 3_600, 3_600, 3_600]);
    }
}
