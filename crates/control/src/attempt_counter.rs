//! How often a caller may do something in a minute.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Seconds of a window.
const WINDOW: u64 = 60;
/// How many are counted at once. With more, the counts of earlier windows go, and then all.
const MAX_COUNTED: usize = 20_000;

/// Whom an address counts as: of IPv6 the network, because a client with one address has 2^64 of them.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => IpAddr::V6((it.to_bits() >> 64 << 64).into()),
        it => it,
    }
}

/// Counts by who it is.
#[derive(Debug, Default)]
pub struct AttemptCounter(Mutex<HashMap<String, (u64, u32)>>);

impl AttemptCounter {
    /// Counts one more at a time in seconds; the seconds to wait if there were `most` already.
    ///
    /// # Errors
    /// The seconds to wait.
    pub fn take(&self, who: &str, most: u32, now: u64) -> Result<(), u64> {
        let window = now / WINDOW;
        // Every change leaves it whole.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_COUNTED && !counts.contains_key(who) {
            counts.retain(|_, (known, _)| *known == window);
            if counts.len() >= MAX_COUNTED {
                counts.clear();
            }
        }
        let (known, count) = counts.entry(who.to_owned()).or_insert((window, 0));
        if *known != window {
            (*known, *count) = (window, 0);
        }
        if *count >= most {
            return Err(WINDOW - now % WINDOW);
        }
        *count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_client() {
        for (address, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            let found = network(address.parse().expect("an address"));
            assert_eq!(found.to_string(), expected, "{address}");
        }
    }

    #[test]
    fn turns_come_back_with_the_next_minute() {
        let turns = AttemptCounter::default();
        for (who, now, expected) in [
            ("ann", 0, Ok(())),
            ("ann", 10, Ok(())),
            ("ann", 50, Err(10)),
            ("bob", 50, Ok(())),
            ("ann", 60, Ok(())),
        ] {
            assert_eq!(turns.take(who, 2, now), expected, "{who} {now}");
        }
        for number in 0..MAX_COUNTED * 2 {
            let _counted = turns.take(&number.to_string(), 1, 60);
        }
        let counted = turns.0.lock().expect("whole").len();
        assert!(counted <= MAX_COUNTED, "{counted}");
    }
}
