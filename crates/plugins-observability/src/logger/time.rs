//! Formats times as the log servers expect them. It does not read the clock.

use weir_telemetry::civil_date::{MAX_TIME_MS, civil_date};

/// A date and a time of day in UTC.
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    second_of_day: u64,
    ms: u64,
}

impl Civil {
    fn of(unix_ms: u64) -> Self {
        let unix_ms = unix_ms.min(MAX_TIME_MS);
        let (year, month, day) = civil_date(unix_ms / 86_400_000);
        Self {
            year,
            month,
            day,
            second_of_day: unix_ms / 1000 % 86_400,
            ms: unix_ms % 1000,
        }
    }

    fn clock(&self) -> String {
        let second = self.second_of_day;
        format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
    }
}

/// RFC 3339 in UTC: with milliseconds and `Z`, or without and with `+00:00`.
pub fn rfc3339(unix_ms: u64, with_ms: bool) -> String {
    let time = Civil::of(unix_ms);
    let (date, clock) = (
        format!("{:04}-{:02}-{:02}", time.year, time.month, time.day),
        time.clock(),
    );
    match with_ms {
        true => format!("{date}T{clock}.{:03}Z", time.ms),
        false => format!("{date}T{clock}+00:00"),
    }
}

/// The form of RFC 3164, such as `Nov  5 15:31:00`.
pub fn rfc3164(unix_ms: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let time = Civil::of(unix_ms);
    let month = MONTHS[(time.month - 1) as usize % 12];
    format!("{month} {:2} {}", time.day, time.clock())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written() {
        for (unix_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(unix_ms, true), expected);
        }
        assert_eq!(rfc3339(1_709_210_096_789, false), "2024-02-29T12:34:56+00:00");
        assert_eq!(rfc3164(1_795_188_660_000), "Nov 20 15:31:00");
        assert_eq!(rfc3164(0), "Jan  1 00:00:00");
    }
}
