//! How long what is kept: the steps after which minutes become five, hours and days.

use std::ops::Range;

/// Seconds of a minute, an hour, a day.
pub const MINUTE: u64 = 60;
/// An hour in seconds.
pub const HOUR: u64 = 3_600;
/// A day in seconds.
pub const DAY: u64 = 86_400;

/// How many tiers there are.
pub const TIERS: usize = 5;

/// The steps, each an age in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Up to this age, sums are kept by the minute.
    pub minutes: u64,
    /// Up to this age, by five minutes.
    pub five_minutes: u64,
    /// Up to this age, by the hour; later, by the day.
    pub hours: u64,
    /// Up to this age, percentiles of the total time are kept by the minute.
    pub minute_sketches: u64,
    /// Up to this age, by the quarter of an hour; later, by the hour.
    pub quarter_sketches: u64,
    /// Up to this age, unique callers are kept by the hour; later, by the day.
    pub unique_hours: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            minutes: 8 * DAY,
            five_minutes: 30 * DAY,
            hours: 456 * DAY,
            minute_sketches: DAY / 2,
            quarter_sketches: 8 * DAY,
            unique_hours: 30 * DAY,
        }
    }
}

impl Retention {
    /// The finest step of sums that are this old, in seconds.
    pub fn resolution(&self, age: u64) -> u64 {
        match age {
            age if age <= self.minutes => MINUTE,
            age if age <= self.five_minutes => 5 * MINUTE,
            age if age <= self.hours => HOUR,
            _ => DAY,
        }
    }

    /// The finest step of percentiles of the total time.
    pub fn sketch_resolution(&self, age: u64) -> u64 {
        match age {
            age if age <= self.minute_sketches => MINUTE,
            age if age <= self.quarter_sketches => 15 * MINUTE,
            age if age <= self.hours => HOUR,
            _ => DAY,
        }
    }

    /// The finest step of unique callers.
    pub fn unique_resolution(&self, age: u64) -> u64 {
        match age {
            age if age <= self.unique_hours => HOUR,
            _ => DAY,
        }
    }

    /// The spans, in minutes, of the sums and of the sketches of an hour that ended `age` seconds ago.
    pub fn spans(&self, age: u64) -> (u8, u8) {
        let span = |seconds: u64| (seconds / MINUTE).min(60) as u8;
        (span(self.resolution(age)), span(self.sketch_resolution(age)))
    }

    /// The ages at which rows become smaller, in order. Rows lie in a tier for each time between two of them.
    pub fn steps(&self) -> [u64; TIERS - 1] {
        let mut steps = [
            self.minute_sketches,
            self.quarter_sketches,
            self.minutes,
            self.five_minutes,
        ];
        steps.sort_unstable();
        steps
    }

    /// Hours that have come to an age since the last time: those whose end lies between the two times. `first` is the
    /// first hour that was not done the last time.
    pub fn due(age: u64, first: u64, now: u64) -> Range<u64> {
        let end = now.saturating_sub(age) / HOUR;
        first..end.max(first)
    }
}
