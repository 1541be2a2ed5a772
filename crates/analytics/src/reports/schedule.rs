//! When a report is due, and which time it is of: whole weeks and months of a time zone.

use crate::query::QueryError;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportInterval {
    /// Every week.
    Week,
    /// Every month.
    Month,
}

/// When a report is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// How often.
    pub every: ReportInterval,
    /// The day: 1 (Monday) to 7 of a week, 1 to 28 of a month.
    #[serde(default = "first")]
    pub day: u8,
    /// The time of the day, as HH:MM.
    #[serde(default = "morning")]
    pub at: String,
    /// The time zone, such as `Europe/Berlin`.
    #[serde(default = "utc")]
    pub time_zone: String,
}

fn first() -> u8 {
    1
}

fn morning() -> String {
    "07:00".to_owned()
}

fn utc() -> String {
    "UTC".to_owned()
}

/// A time, in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Period {
    /// Its beginning.
    pub from: u64,
    /// Its end, which is not in it.
    pub to: u64,
}

/// The calendar's years end here. Later times are refused.
fn out_of_range(error: &jiff::Error) -> QueryError {
    QueryError::new("schedule", format!("the time cannot be computed: {error}"))
}

fn seconds(time: &Zoned) -> u64 {
    u64::try_from(time.timestamp().as_second()).unwrap_or(0)
}

impl Schedule {
    /// Checks it.
    ///
    /// # Errors
    /// Something is; the error names the field.
    pub fn check(&self) -> Result<(), QueryError> {
        let last = match self.every {
            ReportInterval::Week => 7,
            ReportInterval::Month => 28,
        };
        if !(1..=last).contains(&self.day) {
            let message = format!("{} is not a valid day: write 1 to {last}", self.day);
            return Err(QueryError::new("schedule.day", message));
        }
        self.clock()?;
        self.zone()?;
        Ok(())
    }

    fn clock(&self) -> Result<(i8, i8), QueryError> {
        let read = || {
            let (hour, minute) = self.at.split_once(':')?;
            let is_plain = |it: &str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_digit());
            let (hour, minute): (i8, i8) = match is_plain(hour) && is_plain(minute) {
                true => (hour.parse().ok()?, minute.parse().ok()?),
                false => return None,
            };
            ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
        };
        read().ok_or_else(|| {
            let message = format!(
                "'{}' is not a valid time of the day; write HH:MM, such as 07:00",
                self.at
            );
            QueryError::new("schedule.at", message)
        })
    }

    fn zone(&self) -> Result<TimeZone, QueryError> {
        TimeZone::get(&self.time_zone).map_err(|_| {
            let message = format!(
                "there is no time zone '{}'; write a name such as 'Europe/Berlin', or 'UTC'",
                self.time_zone
            );
            QueryError::new("schedule.time_zone", message)
        })
    }

    fn local(&self, now: u64) -> Result<Zoned, QueryError> {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let at = Timestamp::from_second(now).map_err(|error| out_of_range(&error))?;
        Ok(at.to_zoned(self.zone()?))
    }

    fn at(&self, date: Date) -> Result<u64, QueryError> {
        let (hour, minute) = self.clock()?;
        // A time that the clock skips is as much later as it skips; of one that comes twice, the first is meant.
        let at = date.at(hour, minute, 0, 0).to_zoned(self.zone()?);
        Ok(seconds(&at.map_err(|error| out_of_range(&error))?))
    }

    /// The day that is due in the week or the month of a date.
    fn day_near(&self, date: Date) -> Result<Date, QueryError> {
        let day = match self.every {
            ReportInterval::Week => {
                let monday = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_add((i64::from(self.day) - 1 - monday).days())
            }
            ReportInterval::Month => date
                .first_of_month()
                .checked_add((i64::from(self.day) - 1).days()),
        };
        day.map_err(|error| out_of_range(&error))
    }

    /// The same day of the next or an earlier week or month.
    fn moved(&self, date: Date, by: i64) -> Result<Date, QueryError> {
        let moved = match self.every {
            ReportInterval::Week => date.checked_add((7 * by).days()),
            ReportInterval::Month => date.checked_add(by.months()),
        };
        moved.map_err(|error| out_of_range(&error))
    }

    /// When it was due the last time, at a time or before.
    ///
    /// # Errors
    /// The schedule is wrong, or the year is.
    pub fn last_due(&self, now: u64) -> Result<u64, QueryError> {
        let date = self.day_near(self.local(now)?.date())?;
        match self.at(date)? {
            due if due <= now => Ok(due),
            _ => self.at(self.moved(date, -1)?),
        }
    }

    /// When it is due next, after a time.
    ///
    /// # Errors
    /// As [`Self::last_due`].
    pub fn next_due(&self, now: u64) -> Result<u64, QueryError> {
        let date = self.day_near(self.local(now)?.date())?;
        match self.at(date)? {
            due if due > now => Ok(due),
            _ => self.at(self.moved(date, 1)?),
        }
    }

    fn midnight(&self, date: Date) -> Result<u64, QueryError> {
        let start = date.to_zoned(self.zone()?);
        Ok(seconds(&start.map_err(|error| out_of_range(&error))?))
    }

    /// The time that a report of a moment is about: the seven days before its day, or the month before its month.
    ///
    /// # Errors
    /// As [`Self::last_due`].
    pub fn last(&self, now: u64) -> Result<Period, QueryError> {
        let today = self.local(now)?.date();
        let end = match self.every {
            ReportInterval::Week => today,
            ReportInterval::Month => today.first_of_month(),
        };
        Ok(Period {
            from: self.midnight(self.moved(end, -1)?)?,
            to: self.midnight(end)?,
        })
    }

    /// The week or the month of a moment, up to then.
    ///
    /// # Errors
    /// As [`Self::last_due`].
    pub fn current(&self, now: u64) -> Result<Period, QueryError> {
        let today = self.local(now)?.date();
        let monday = i64::from(today.weekday().to_monday_zero_offset());
        let start = match self.every {
            ReportInterval::Week => today.checked_sub(monday.days()),
            ReportInterval::Month => Ok(today.first_of_month()),
        };
        let from = self.midnight(start.map_err(|error| out_of_range(&error))?)?;
        Ok(Period {
            from,
            // A time without length has no calls, but a query needs one.
            to: now.max(from + 60),
        })
    }

    /// A time as people of the time zone write it: `2026-03-29`, with the time of the day if it is asked for.
    pub fn written(&self, at: u64, has_clock: bool) -> String {
        let format = if has_clock { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d" };
        match self.local(at) {
            Ok(local) => local.strftime(format).to_string(),
            Err(_) => at.to_string(),
        }
    }
}
