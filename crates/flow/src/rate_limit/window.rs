//! The windows over which calls are counted, and the calendar behind them.

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
const WEEK_MS: u64 = 7 * DAY_MS;

/// A span of time with a count of its own, at whose end the count starts again from nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// The second of the clock, as all calendar windows in UTC.
    Second,
    /// The minute of the clock.
    Minute,
    /// The hour of the clock.
    Hour,
    /// The calendar day.
    Day,
    /// The week, which begins on Monday.
    Week,
    /// The calendar month, 28 to 31 days.
    Month,
    /// The calendar year.
    Year,
    /// A fixed window of the clock: the time since the Unix epoch is divided into windows of this length.
    Aligned {
        /// How long it is, in milliseconds. 0 counts as 1.
        length_ms: u64,
    },
    /// A fixed window that opens with a key's first call and the first one after its end.
    FromFirst {
        /// How long it stays open, in milliseconds. 0 counts as 1.
        length_ms: u64,
    },
    /// The last so many milliseconds, whenever that is. Calls are counted in windows of the clock; those of the window
    /// before count for as much as of it lies in the span, as if they had come evenly.
    Sliding {
        /// How long it is, in milliseconds. 0 counts as 1.
        length_ms: u64,
    },
}

impl Window {
    /// When the window that is open, or opens, at `now_ms` ends; milliseconds since the Unix epoch.
    #[must_use]
    pub fn end_ms(self, now_ms: u64) -> u64 {
        let aligned = |length: u64| (now_ms - now_ms % length).saturating_add(length);
        match self {
            Self::Second => aligned(SECOND_MS),
            Self::Minute => aligned(MINUTE_MS),
            Self::Hour => aligned(HOUR_MS),
            Self::Day => aligned(DAY_MS),
            // 1970 began on a Thursday, three days into its week.
            Self::Week => now_ms.saturating_add(WEEK_MS - (now_ms % WEEK_MS + 3 * DAY_MS) % WEEK_MS),
            Self::Month => {
                let (year, month) = year_and_month(now_ms / DAY_MS);
                let (year, month) = if month == 12 {
                    (year + 1, 1)
                } else {
                    (year, month + 1)
                };
                first_of_month(year, month).saturating_mul(DAY_MS)
            }
            Self::Year => {
                let (year, _) = year_and_month(now_ms / DAY_MS);
                first_of_month(year + 1, 1).saturating_mul(DAY_MS)
            }
            Self::FromFirst { length_ms } => now_ms.saturating_add(length_ms.max(1)),
            Self::Aligned { length_ms } | Self::Sliding { length_ms } => aligned(length_ms.max(1)),
        }
    }

    /// The longest that a window of this kind can be, in milliseconds.
    pub(super) fn longest_ms(self) -> u64 {
        match self {
            Self::Second => SECOND_MS,
            Self::Minute => MINUTE_MS,
            Self::Hour => HOUR_MS,
            Self::Day => DAY_MS,
            Self::Week => WEEK_MS,
            Self::Month => 31 * DAY_MS,
            Self::Year => 366 * DAY_MS,
            Self::Aligned { length_ms } | Self::FromFirst { length_ms } | Self::Sliding { length_ms } => {
                length_ms.max(1)
            }
        }
    }

    /// Maps a key to the counter of this window. Different windows map it to places far apart.
    pub(super) fn place(self, key: u128) -> u128 {
        let (kind, length_ms) = match self {
            Self::Second => (1, 0),
            Self::Minute => (2, 0),
            Self::Hour => (3, 0),
            Self::Day => (4, 0),
            Self::Month => (5, 0),
            Self::Year => (6, 0),
            Self::FromFirst { length_ms } => (7, length_ms),
            Self::Sliding { length_ms } => (0, length_ms),
            Self::Aligned { length_ms } => (8, length_ms),
            Self::Week => (9, 0),
        };
        // Any odd factor keeps different windows different; this one also spreads them over the low bits.
        key ^ (u128::from(length_ms) << 4 | kind).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }
}

/// The number of days in 400 years, after which the calendar repeats.
const ERA_DAYS: u64 = 146_097;

/// From 0000-03-01, the assumed beginning of the eras of 400 years, to 1970-01-01.
const DAYS_TO_EPOCH: u64 = 719_468;

/// The year and the month (1 to 12) of a day, counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years are taken to begin in March, so that a leap day is the last of its year and months follow a fixed pattern.
/// Algorithms build on no other crate, so the one that writes dates into logs has a calendar of its own.
fn year_and_month(day: u64) -> (u64, u64) {
    let day = day + DAYS_TO_EPOCH;
    let day_of_era = day % ERA_DAYS;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let (month, turned) = if march_month < 10 {
        (march_month + 3, 0)
    } else {
        (march_month - 9, 1)
    };
    (day / ERA_DAYS * 400 + year_of_era + turned, month)
}

/// The first day of a month (1 to 12) from 1970-01 on, counted from 1970-01-01.
fn first_of_month(year: u64, month: u64) -> u64 {
    let (year, march_month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * march_month + 2) / 5;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - DAYS_TO_EPOCH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Window; 7] = [
        Window::Second,
        Window::Minute,
        Window::Hour,
        Window::Day,
        Window::Week,
        Window::Month,
        Window::Year,
    ];

    /// Expected values from `date -u +%s`.
    #[test]
    fn months_and_years_end_where_the_calendar_says() {
        // In seconds: now, the end of the month, the end of the year.
        let cases: [(&str, u64, u64, u64); 10] = [
            ("1970-01-01 00:00:00", 0, 2_678_400, 31_536_000),
            ("1999-12-31 23:59:59", 946_684_799, 946_684_800, 946_684_800),
            ("2000-02-28 12:00:00", 951_739_200, 951_868_800, 978_307_200),
            ("2000-02-29 23:59:59", 951_868_799, 951_868_800, 978_307_200),
            ("2023-02-28 23:59:59", 1_677_628_799, 1_677_628_800, 1_704_067_200),
            ("2024-02-28 23:59:59", 1_709_164_799, 1_709_251_200, 1_735_689_600),
            ("2024-02-29 00:00:00", 1_709_164_800, 1_709_251_200, 1_735_689_600),
            ("2024-12-31 23:59:59", 1_735_689_599, 1_735_689_600, 1_735_689_600),
            ("2026-11-20 15:30:00", 1_795_188_600, 1_796_083_200, 1_798_761_600),
            ("2100-02-28 00:00:00", 4_107_456_000, 4_107_542_400, 4_133_980_800),
        ];
        for (name, now, month_end, year_end) in cases {
            assert_eq!(
                Window::Month.end_ms(now * 1_000),
                month_end * 1_000,
                "month of {name}"
            );
            assert_eq!(
                Window::Month.end_ms(now * 1_000 + 999),
                month_end * 1_000,
                "month of {name}.999"
            );
            assert_eq!(
                Window::Year.end_ms(now * 1_000),
                year_end * 1_000,
                "year of {name}"
            );
        }
    }

    #[test]
    fn short_windows_follow_the_clock() {
        let now = 1_795_188_661_234; // 2026-11-20 15:31:01.234
        let cases = [
            (Window::Second, 1_795_188_662_000),
            (Window::Minute, 1_795_188_720_000),
            (Window::Hour, 1_795_190_400_000),
            (Window::Day, 1_795_219_200_000),
            (Window::Week, 1_795_392_000_000),
            (Window::FromFirst { length_ms: 60_000 }, now + 60_000),
            (Window::FromFirst { length_ms: 0 }, now + 1),
            (Window::Aligned { length_ms: 7_000 }, 1_795_188_668_000),
            (Window::Aligned { length_ms: 0 }, now + 1),
        ];
        for (window, expected) in cases {
            assert_eq!(window.end_ms(now), expected, "{window:?}");
        }
        for window in ALL {
            let end = window.end_ms(now);
            assert!(
                window.end_ms(end - 1) == end && window.end_ms(end) > end,
                "{window:?}"
            );
        }
    }

    /// The defect: weeks were counted from 1970-01-01 on, a Thursday.
    #[test]
    fn weeks_begin_on_monday() {
        for (now, end) in [
            // 1970-01-01, a Thursday.
            (0, 345_600),
            // 2027-03-07, a Sunday, 23:59:59; then Monday.
            (1_804_463_999, 1_804_464_000),
            (1_804_464_000, 1_805_068_800),
        ] {
            assert_eq!(Window::Week.end_ms(now * 1_000), end * 1_000, "{now}");
        }
    }

    #[test]
    fn every_day_has_its_month_and_year() {
        let (mut day, mut year) = (0, 1970);
        while year < 2_500 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [
                31,
                if leap { 29 } else { 28 },
                31,
                30,
                31,
                30,
                31,
                31,
                30,
                31,
                30,
                31,
            ];
            for (length, month) in lengths.into_iter().zip(1..) {
                assert_eq!(first_of_month(year, month), day, "{year}-{month}");
                for day in day..day + length {
                    assert_eq!(year_and_month(day), (year, month), "day {day}");
                }
                day += length;
            }
            year += 1;
        }
    }

    #[test]
    fn windows_of_one_key_have_places_of_their_own() {
        let from_first =
            [0, 1, 999, 1_000, 60_000, u64::MAX].map(|length_ms| Window::FromFirst { length_ms });
        let mut places: Vec<u64> = ALL
            .iter()
            .chain(&from_first)
            .map(|window| window.place(0) as u64)
            .collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 13);
    }

    proptest! {
        #[test]
        fn no_time_is_too_much(now: u64, length_ms: u64) {
            let others = [Window::FromFirst { length_ms }, Window::Aligned { length_ms }];
            for window in ALL.into_iter().chain(others) {
                let end = window.end_ms(now);
                prop_assert!(end > now || end == u64::MAX);
                prop_assert!(end - now <= window.longest_ms());
            }
        }
    }
}
