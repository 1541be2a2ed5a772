//! Counters as bytes, so that they can outlive a restart. Where the bytes are kept is for the callers.
//!
//! Keys of counters are hashes with a secret of the process. Counters are of use only to a process with the same
//! [`secret`](super::secret).

use super::shard::PackedCounter;
use super::{Counters, Limiter};
use std::sync::Arc;

/// Bytes of a counter: its shard, its place, when its window ends, and what is counted.
const ENTRY: usize = 1 + 16 + 8 + 8;

/// Bytes that no limiter has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotCounters;

impl Limiter {
    /// The counters of all windows that go on for at least so long.
    #[must_use]
    pub fn export(&self, now_ms: u64, least_ms: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, partition) in self.0.all() {
            let begin = out.len();
            push_number(&mut out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
            let count_at = out.len();
            push_number(&mut out, 0);
            let mut count = 0;
            partition.each(|shard, place, stored: PackedCounter| {
                let (end_ms, used) = stored.parts();
                if end_ms >= now_ms.saturating_add(least_ms) {
                    out.push(shard as u8);
                    out.extend_from_slice(&place.to_le_bytes());
                    push_number(&mut out, end_ms);
                    push_number(&mut out, used);
                    count += 1;
                }
            });
            match count {
                0 => out.truncate(begin),
                count => out[count_at..count_at + 8].copy_from_slice(&u64::to_le_bytes(count)),
            }
        }
        out
    }

    /// Takes over counters whose windows are still open. The limits that they belong to are known only once their
    /// configuration is: until then the caller holds on to what is given.
    ///
    /// # Errors
    /// The bytes are not whole. What was read before stays.
    pub fn import(&self, bytes: &[u8], now_ms: u64) -> Result<Vec<Counters>, NotCounters> {
        let mut rest = bytes;
        let mut restored = Vec::new();
        while !rest.is_empty() {
            let length = take_number(&mut rest)?;
            let name = take(&mut rest, usize::try_from(length).map_err(|_| NotCounters)?)?;
            let counters = self.counters(std::str::from_utf8(name).map_err(|_| NotCounters)?);
            for _ in 0..take_number(&mut rest)? {
                let mut entry = take(&mut rest, ENTRY)?;
                let shard = usize::from(take(&mut entry, 1)?[0]);
                let place = take(&mut entry, 16)?.try_into().map_err(|_| NotCounters)?;
                let (end_ms, used) = (take_number(&mut entry)?, take_number(&mut entry)?);
                if end_ms > now_ms {
                    let mut shard = counters.0.shard_at(shard).ok_or(NotCounters)?;
                    shard.make_room(1, now_ms);
                    shard.set(
                        u128::from_le_bytes(place),
                        PackedCounter::from_parts(end_ms, used),
                    );
                }
            }
            restored.push(Counters(Arc::clone(&counters.0)));
        }
        Ok(restored)
    }
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Result<&'b [u8], NotCounters> {
    let (taken, left) = rest.split_at_checked(count).ok_or(NotCounters)?;
    *rest = left;
    Ok(taken)
}

fn take_number(rest: &mut &[u8]) -> Result<u64, NotCounters> {
    let (number, left) = rest.split_first_chunk::<8>().ok_or(NotCounters)?;
    *rest = left;
    Ok(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::super::{Verdict, Window, WindowLimit, key};
    use super::*;

    const NOW: u64 = 1_795_188_661_234;

    fn calls_that_pass(counters: &Counters, key: u128, limit: WindowLimit, now_ms: u64) -> u32 {
        let mut passed = 0;
        while counters.take(key, &[limit], now_ms, &mut []) == Verdict::Allowed {
            passed += 1;
        }
        passed
    }

    #[test]
    fn counts_go_on_where_they_were() {
        // `(window, milliseconds until the restart is over, calls of ten that still pass after seven)`
        for (window, away_ms, left) in [
            (Window::Day, 10_000, 3),
            (Window::Month, 10_000, 3),
            (Window::Year, 86_400_000, 3),
            (Window::FromFirst { length_ms: 3_600_000 }, 60_000, 3),
            (
                Window::Aligned {
                    length_ms: 604_800_000,
                },
                1_000,
                3,
            ),
            (
                Window::Sliding {
                    length_ms: 604_800_000,
                },
                0,
                3,
            ),
            // Over meanwhile, or too short to be kept.
            (Window::FromFirst { length_ms: 90_000 }, 90_000, 10),
            (Window::Minute, 0, 10),
            (Window::Second, 0, 10),
        ] {
            let limit = WindowLimit { window, limit: 10 };
            let before = Limiter::new(1_000);
            let counters = before.counters("quota");
            for caller in [&b"alice"[..], b"bob"] {
                for _ in 0..7 {
                    assert_eq!(
                        counters.take(key(&[caller]), &[limit], NOW, &mut []),
                        Verdict::Allowed
                    );
                }
            }
            let bytes = before.export(NOW, 60_000);
            let after = Limiter::new(1_000);
            let restored = after.import(&bytes, NOW + away_ms).expect("its own bytes");
            let counters = after.counters("quota");
            drop(restored);
            for caller in [&b"alice"[..], b"bob"] {
                let passed = calls_that_pass(&counters, key(&[caller]), limit, NOW + away_ms);
                assert_eq!(passed, left, "{window:?} {caller:?}");
            }
            let others = after.counters("another");
            assert_eq!(
                calls_that_pass(&others, key(&[b"alice"]), limit, NOW + away_ms),
                10
            );
        }
    }

    #[test]
    fn limits_wait_for_their_configuration() {
        let before = Limiter::new(100_000);
        let limit = WindowLimit {
            window: Window::Day,
            limit: 5,
        };
        let held: Vec<Counters> = (0..300).map(|n| before.counters(&format!("limit {n}"))).collect();
        for counters in &held {
            assert_eq!(calls_that_pass(counters, 1, limit, NOW), 5);
        }
        let after = Limiter::new(100_000);
        let restored = after.import(&before.export(NOW, 0), NOW).expect("its own bytes");
        assert_eq!(restored.len(), 300);
        for n in 0..300 {
            let counters = after.counters(&format!("limit {n}"));
            assert_eq!(calls_that_pass(&counters, 1, limit, NOW), 0, "{n}");
        }
    }

    #[test]
    fn broken_bytes_are_refused() {
        let before = Limiter::new(1_000);
        let limit = WindowLimit {
            window: Window::Day,
            limit: 5,
        };
        let counters = before.counters("quota");
        for caller in 0..20 {
            assert_eq!(calls_that_pass(&counters, caller << 100, limit, NOW), 5);
        }
        let bytes = before.export(NOW, 0);
        assert!(Limiter::new(10).import(&[], NOW).is_ok_and(|it| it.is_empty()));
        for length in 1..bytes.len() {
            let cut = Limiter::new(1_000).import(&bytes[..length], NOW);
            assert!(cut.is_err(), "{length} of {} bytes", bytes.len());
        }
        for place in 0..bytes.len().min(64) {
            let mut flipped = bytes.clone();
            flipped[place] ^= 0xff;
            // Whatever it makes of them, it does not panic and takes no more room than it has.
            let _read = Limiter::new(1_000).import(&flipped, NOW);
        }
    }
}
