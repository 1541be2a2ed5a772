//! The facts about the machine that stand with every figure.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// What does not change while the bench runs.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The kernel's version.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let processor = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.to_owned());
        Self {
            processor,
            kernel: read("/proc/sys/kernel/osrelease"),
        }
    }
}

/// Average number of runnable threads over 1, 5 and 15 minutes.
pub fn load_average() -> String {
    let text = read("/proc/loadavg");
    text.split_ascii_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// Seconds since 1970 as a date and a time of day in UTC, as in `2026-11-20 19:31`.
pub fn date(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    // A clock beyond what years can express is not worth an error in a report.
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{}-{:02}-{:02} {:02}:{:02}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute()
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01 00:00"),
            (951_782_400, "2000-02-29 00:00"),
            (1_700_000_000, "2023-11-14 22:13"),
            (4_102_444_799, "2099-12-31 23:59"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
