//! Decides how many calls are in the request log: every second by their number, every minute by their times. It keeps what
//! the log costs a call small. Failed calls are all in it, unless there are very many of them.

use std::time::{Duration, Instant};
use weir_analytics::sketch::{bucket_of, longest_of};
use weir_analytics::times::Times;
use weir_telemetry::calls::Sampling;

/// Calls a second of which all are in the request log.
const ALL_BELOW: u64 = 50;
/// The smallest share, as long as it is not more than [`MOST`] calls a second.
const RAREST: u64 = 100;
/// Ordinary calls of a second in the log at most, about.
const MOST: u64 = 100;
/// Failed calls of a second in the log at most, about: when everything fails, further ones add nothing.
const MOST_FAILED: u64 = 200;
/// The share of calls that are the slow ones, and how many of them there are in a second at most, about.
const SLOW_SHARE: f64 = 0.01;
const MOST_SLOW: f64 = 50.0;
/// With so many slow calls in a second, all calls have become slower: it is decided once more which of them are slow.
const TOO_MANY_SLOW: u64 = 4 * MOST_SLOW as u64;
/// Calls in the log within one second that show a burst: the shares are from quieter times, and the second is not waited for.
const BURST: u64 = 400;
/// Calls from which on it can be said which were slow.
const ENOUGH: u64 = 1_000;

/// The calls that it has seen.
pub struct Sampler {
    since: Instant,
    calls: u64,
    failed: u64,
    slow: u64,
    /// Calls in the log.
    sampled: u64,
    times: Times,
    /// When counting of these times began.
    times_since: Instant,
    minute: u64,
    slow_us: u32,
}

/// One in how many ordinary calls is in the log, at so many calls a second.
fn one_in(rate: u64) -> u32 {
    (rate / ALL_BELOW).clamp(1, RAREST).max(rate / MOST) as u32
}

/// One in how many failed calls is in the log, at so many of them a second.
fn failed_one_in(rate: u64) -> u32 {
    rate.div_ceil(MOST_FAILED) as u32
}

/// The times above which calls are slow, at so many calls a second; `None`: there were too few calls to say.
fn slow_us(times: &Times, rate: f64) -> Option<u32> {
    let times = times.to_sketch();
    let share = SLOW_SHARE.min(MOST_SLOW / rate.max(1.0));
    let us = times
        .percentile(1.0 - share)
        .filter(|_| times.count() >= ENOUGH)?;
    // Calls that lie in one bucket are alike: none of them is slow.
    u32::try_from(longest_of(bucket_of(us))).ok()
}

impl Sampler {
    /// Nothing is known yet.
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            calls: 0,
            failed: 0,
            slow: 0,
            sampled: 0,
            times: Times::default(),
            times_since: now,
            minute: 0,
            slow_us: u32::MAX,
        }
    }

    /// Sees a call.
    #[inline]
    pub fn see(&mut self, status: u16, total_us: u32) {
        self.calls += 1;
        self.failed += u64::from(status >= 500);
        self.slow += u64::from(total_us > self.slow_us);
        self.times.add(bucket_of(total_us.into()));
    }

    /// Sees that a call is in the log.
    pub fn see_sampled(&mut self) {
        self.sampled += 1;
    }

    /// Adjusts how many calls are sampled. `minute` counts from the Unix epoch.
    pub fn adjust(&mut self, sampling: &Sampling, now: Instant, minute: u64) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < Duration::from_secs(1) && self.sampled < BURST {
            return;
        }
        let elapsed = elapsed.max(Duration::from_millis(1));
        let rate = self.calls as f64 / elapsed.as_secs_f64();
        let failed = self.failed as f64 / elapsed.as_secs_f64();
        if minute != self.minute || self.slow > TOO_MANY_SLOW {
            let seconds = now.saturating_duration_since(self.times_since).as_secs_f64();
            let calls = self.times.to_sketch().count() as f64;
            self.slow_us = slow_us(&self.times, calls / seconds.max(1.0)).unwrap_or(u32::MAX);
            self.times = Times::default();
            (self.minute, self.times_since) = (minute, now);
        }
        (self.since, self.calls, self.failed) = (now, 0, 0);
        (self.slow, self.sampled) = (0, 0);
        let shares = (one_in(rate as u64), failed_one_in(failed as u64));
        sampling.set(shares, self.slow_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_takes_a_bounded_number_of_calls() {
        for (rate, expected) in [
            (0, 1),
            (49, 1),
            (500, 10),
            (5_000, 100),
            (10_000, 100),
            (20_000, 200),
            (300_000, 3_000),
        ] {
            assert_eq!(one_in(rate), expected, "{rate}");
        }
        for (rate, expected) in [(0, 0), (200, 1), (201, 2), (50_000, 250)] {
            assert_eq!(failed_one_in(rate), expected, "{rate}");
        }
    }

    fn times(all: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        all.into_iter().for_each(|us| times.add(bucket_of(us)));
        times
    }

    #[test]
    fn slow_are_the_slowest_of_a_hundred_and_few_a_second() {
        let spread = times(1..=100_000);
        for (rate, slow) in [(100.0, 1_000.0), (5_000.0, 1_000.0), (50_000.0, 100.0)] {
            let threshold = f64::from(slow_us(&spread, rate).expect("enough calls"));
            let above = 100_000.0 - threshold;
            // Within the bucket that the threshold is in, which is a sixteenth of an octave.
            assert!(above <= slow, "{rate}: {above} of 100,000 are slow");
        }
        assert_eq!(slow_us(&times(1..=999), 10.0), None, "too few to tell");
        let alike = times((0..10_000).map(|it| 1_000 + it % 20));
        let threshold = slow_us(&alike, 100.0).expect("enough calls");
        assert!(
            threshold >= 1_019,
            "{threshold}: calls that are alike are not slow"
        );
    }

    #[test]
    fn what_was_slow_a_minute_ago_is_not_kept_if_all_calls_are_slower() {
        let (sampling, begun) = (Sampling::default(), Instant::now());
        let mut sampler = Sampler::new(begun);
        let mut second = |number: u64, us: u64, minute: u64| {
            (0..5_000).for_each(|it| sampler.see(200, (us + it % 10 * us / 10) as u32));
            sampler.adjust(&sampling, begun + Duration::from_secs(number), minute);
            sampler.slow_us
        };
        let first = second(1, 1_000, 7);
        assert!((1_900..2_100).contains(&first), "{first}");
        assert_eq!(second(2, 1_000, 7), first);
        let slower = second(3, 10_000, 7);
        assert!((19_000..21_000).contains(&slower), "{slower}");
        // Half a second is too short.
        let mut early = Sampler::new(begun);
        (0..5_000).for_each(|_| early.see(200, 5));
        early.adjust(&sampling, begun + Duration::from_millis(500), 9);
        assert_eq!(early.slow_us, u32::MAX);
    }

    #[test]
    fn a_burst_after_a_pause_is_not_logged_in_whole() {
        let (sampling, begun) = (Sampling::default(), Instant::now());
        let mut sampler = Sampler::new(begun);
        let mut turn = |after_ms: u64, calls: u64, sampled: u64| {
            (0..calls).for_each(|_| sampler.see(200, 5));
            (0..sampled).for_each(|_| sampler.see_sampled());
            sampler.adjust(&sampling, begun + Duration::from_millis(after_ms), 9);
            sampler.calls
        };
        // 128 calls in each of the turns that the full ring asks for.
        assert_eq!([2, 4, 6].map(|ms| turn(ms, 128, 128)), [128, 256, 384]);
        assert_eq!(
            turn(8, 128, 128),
            0,
            "64,000 calls a second: the share is adjusted"
        );
        assert_eq!(
            turn(500, 30_000, 50),
            30_000,
            "with the right share the second is waited for"
        );
    }
}
