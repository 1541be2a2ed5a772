//! Slowing down those who guess passwords.
//!
//! Failed logins are counted by name and address together, by name, and by address. Beyond a number of them the next
//! attempt has to wait, twice as long with each further one. The counts are the same for names that do not exist, so
//! that they reveal nothing. They are in memory: each control plane counts on its own, and a restart forgets them.

use super::token::TokenHash;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Failures that cost nothing: of a name from one address, of a name, of an address.
const FREE: [u32; 3] = [5, 50, 50];
/// How long the first wait is, and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Failures are forgotten when there was none for so long.
const FORGOTTEN: Duration = Duration::from_secs(900);
/// Counts that are kept. The oldest one goes first.
const MAX_COUNTS: usize = 30_000;

/// The attempts of the last minutes.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<HashMap<TokenHash, Failures>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: SystemTime,
    /// Until then there is no next attempt.
    until: SystemTime,
}

/// The subjects that attempts are counted for, in the order of [`FREE`].
fn subjects(name: &str, address: IpAddr) -> [TokenHash; 3] {
    // A client with one IPv6 address has all of its /64.
    let address = match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("{:x?}", &address.segments()[..4]),
    };
    [
        TokenHash::of(&format!("both\0{address}\0{name}")),
        TokenHash::of(&format!("name\0{name}")),
        TokenHash::of(&format!("address\0{address}")),
    ]
}

impl Attempts {
    fn counts(&self) -> MutexGuard<'_, HashMap<TokenHash, Failures>> {
        // Every change leaves them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt, which counts as failed until it has succeeded.
    ///
    /// # Errors
    /// How long to wait before the next one.
    pub fn begin(&self, name: &str, address: IpAddr, now: SystemTime) -> Result<(), Duration> {
        let subjects = subjects(name, address);
        let mut counts = self.counts();
        let waits = subjects.iter().filter_map(|it| {
            let until = counts.get(it)?.until;
            until.duration_since(now).ok().filter(|it| !it.is_zero())
        });
        if let Some(longest) = waits.max() {
            return Err(longest);
        }
        for (subject, free) in subjects.into_iter().zip(FREE) {
            make_room(&mut counts, now);
            let known = counts.get(&subject).filter(|it| !it.is_forgotten(now));
            let count = known.map_or(0, |it| it.count).saturating_add(1);
            let until = now + wait_after(count, free);
            let last = now;
            counts.insert(subject, Failures { count, last, until });
        }
        Ok(())
    }

    /// The attempt has succeeded: its name begins at nothing again. An address keeps its other failures.
    pub fn succeeded(&self, name: &str, address: IpAddr, now: SystemTime) {
        let [both, by_name, by_address] = subjects(name, address);
        let mut counts = self.counts();
        counts.remove(&both);
        counts.remove(&by_name);
        if let Some(failures) = counts.get_mut(&by_address) {
            failures.count = failures.count.saturating_sub(1);
            failures.until = now;
        }
    }
}

impl Failures {
    fn is_forgotten(&self, now: SystemTime) -> bool {
        self.last.max(self.until) + FORGOTTEN <= now
    }
}

fn wait_after(count: u32, free: u32) -> Duration {
    match count.checked_sub(free) {
        None => Duration::ZERO,
        Some(beyond) => FIRST_WAIT
            .saturating_mul(2_u32.saturating_pow(beyond))
            .min(LONGEST_WAIT),
    }
}

fn make_room(counts: &mut HashMap<TokenHash, Failures>, now: SystemTime) {
    if counts.len() < MAX_COUNTS {
        return;
    }
    counts.retain(|_, it| !it.is_forgotten(now));
    while counts.len() >= MAX_COUNTS {
        let oldest = counts
            .iter()
            .min_by_key(|(_, it)| it.last)
            .map(|(subject, _)| *subject);
        let Some(oldest) = oldest else { return };
        counts.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn five_wrong_passwords_slow_down() {
        let (attempts, here) = (Attempts::default(), address("192.0.2.1"));
        for number in 0..5 {
            assert_eq!(attempts.begin("ada", here, at(number)), Ok(()), "{number}");
        }
        for (now, expected) in [
            (4, Err(2)),
            (5, Err(1)),
            // The sixth, and then twice as long.
            (6, Ok(())),
            (7, Err(3)),
            (10, Ok(())),
            (10, Err(8)),
        ] {
            let expected = expected.map_err(Duration::from_secs);
            assert_eq!(attempts.begin("ada", here, at(now)), expected, "{now}");
        }
        // Others are not slowed down, nor is the same user elsewhere.
        assert_eq!(attempts.begin("bob", here, at(10)), Ok(()));
        assert_eq!(attempts.begin("ada", address("192.0.2.2"), at(10)), Ok(()));
        attempts.succeeded("ada", here, at(18));
        assert_eq!(attempts.begin("ada", here, at(18)), Ok(()));
    }

    #[test]
    fn failures_are_forgotten_and_waits_are_bounded() {
        let (attempts, here) = (Attempts::default(), address("2001:db8::1"));
        let mut now = at(0);
        for _ in 0..40 {
            if let Err(wait) = attempts.begin("ada", here, now) {
                assert!(wait <= LONGEST_WAIT);
                now += wait;
                assert_eq!(attempts.begin("ada", here, now), Ok(()));
            }
        }
        let neighbour = address("2001:db8::2");
        assert!(
            attempts.begin("ada", neighbour, now).is_err(),
            "one /64 is one address"
        );
        now += LONGEST_WAIT + FORGOTTEN;
        for _ in 0..5 {
            assert_eq!(attempts.begin("ada", here, now), Ok(()));
        }
    }

    #[test]
    fn many_names_from_one_address_and_many_addresses_of_one_name_are_slowed_down() {
        let attempts = Attempts::default();
        let by_address = (0..60).find(|it| {
            attempts
                .begin(&it.to_string(), address("192.0.2.1"), at(0))
                .is_err()
        });
        assert_eq!(by_address, Some(50));
        let attempts = Attempts::default();
        let from = |number: u8| IpAddr::from([198, 51, 100, number]);
        let by_name = (0..60).find(|it| attempts.begin("ada", from(*it), at(0)).is_err());
        assert_eq!(by_name, Some(50));
    }

    #[test]
    fn memory_is_bounded() {
        let mut counts = HashMap::new();
        for number in 0..MAX_COUNTS + 10 {
            make_room(&mut counts, at(number as u64 / 100));
            let failures = Failures {
                count: 1,
                last: at(number as u64 / 100),
                until: at(0),
            };
            counts.insert(TokenHash::of(&number.to_string()), failures);
        }
        assert_eq!(counts.len(), MAX_COUNTS);
        make_room(&mut counts, at(100_000));
        assert!(counts.is_empty());
    }
}
