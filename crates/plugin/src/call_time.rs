//! Times of calls as variables write them, in UTC. It reads no clock.

use time::{OffsetDateTime, Time};

/// `2026-11-29T21:16:50+00:00`.
pub fn iso8601(unix_ms: u64) -> String {
    let at = date_time(unix_ms);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    format!("{year:04}-{month:02}-{day:02}T{}+00:00", clock(at.time()))
}

/// `29/Nov/2026:21:16:50 +0000`.
pub fn as_in_access_logs(unix_ms: u64) -> String {
    let at = date_time(unix_ms);
    let month = at.month().to_string();
    let (day, year) = (at.day(), at.year());
    format!("{day:02}/{month:.3}/{year:04}:{} +0000", clock(at.time()))
}

fn clock(time: Time) -> String {
    format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())
}

/// Times after the year 9999 are its last second.
fn date_time(unix_ms: u64) -> OffsetDateTime {
    const LAST_SECOND: u64 = 253_402_300_799;
    let seconds = i64::try_from((unix_ms / 1000).min(LAST_SECOND)).unwrap_or_default();
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
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
                u64::MAX,
                "9999-12-31T23:59:59+00:00",
                "31/Dec/9999:23:59:59 +0000",
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
