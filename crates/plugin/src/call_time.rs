//! Times of calls as variables write them, in UTC. It reads no clock.

/// The last second of the year 9999.
const MAX_SECONDS: u64 = 253_402_300_799;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// `2026-11-29T21:16:50+00:00`.
pub fn iso8601(unix_ms: u64) -> String {
    let ((year, month, day), clock) = parts(unix_ms);
    format!("{year:04}-{month:02}-{day:02}T{clock}+00:00")
}

/// `29/Nov/2026:21:16:50 +0000`.
pub fn as_in_access_logs(unix_ms: u64) -> String {
    let ((year, month, day), clock) = parts(unix_ms);
    let month = usize::try_from(month - 1)
        .ok()
        .and_then(|index| MONTHS.get(index));
    format!("{day:02}/{}/{year:04}:{clock} +0000", month.unwrap_or(&""))
}

fn parts(unix_ms: u64) -> ((u64, u64, u64), String) {
    let seconds = (unix_ms / 1000).min(MAX_SECONDS);
    let second = seconds % 86_400;
    let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    (date(seconds / 86_400), clock)
}

/// Year, month and day of a day since 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // Whole cycles of 400 years first, so that few years are left to count.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (unix_ms, iso, log) in [
            (0, "1970-01-01T00:00:00+00:00", "01/Jan/1970:00:00:00 +0000"),
            (
                951_782_400_000,
                "2000-02-29T00:00:00+00:00",
                "29/Feb/2000:00:00:00 +0000",
            ),
            (
                4_107_542_399_000,
                "2100-02-28T23:59:59+00:00",
                "28/Feb/2100:23:59:59 +0000",
            ),
            (
                4_107_542_400_000,
                "2100-03-01T00:00:00+00:00",
                "01/Mar/2100:00:00:00 +0000",
            ),
            (
                1_735_689_599_000,
                "2024-12-31T23:59:59+00:00",
                "31/Dec/2024:23:59:59 +0000",
            ),
            (
                1_796_073_410_500,
                "2026-11-30T21:16:50+00:00",
                "30/Nov/2026:21:16:50 +0000",
            ),
        ] {
            assert_eq!(
                (iso8601(unix_ms), as_in_access_logs(unix_ms)),
                (iso.into(), log.into())
            );
        }
    }
}
