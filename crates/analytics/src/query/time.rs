//! Points and lengths of time as queries write them: `now`, `-6h`, `2026-01-31T10:00:00Z`, `15m`.

use super::{Length, QueryError, TimePoint};

/// Reads a point in time.
///
/// # Errors
/// If it is invalid.
pub fn read(field: &str, when: &TimePoint, now: u64) -> Result<u64, QueryError> {
    let text = match when {
        TimePoint::Unix(seconds) => return Ok(*seconds),
        TimePoint::Text(text) => text.trim(),
    };
    let relative = text.strip_prefix("now").unwrap_or(text);
    if relative.is_empty() && text == "now" {
        return Ok(now);
    }
    let read = match relative.strip_prefix('-') {
        Some(back) => seconds(back).map(|back| now.saturating_sub(back)),
        None => text.parse().ok().or_else(|| rfc3339(text)),
    };
    read.ok_or_else(|| {
        let message = format!(
            "'{text}' is not a valid time; write seconds since 1970, 'now', '-6h', or '2026-01-31T10:00:00Z'"
        );
        QueryError::new(field, message)
    })
}

/// Reads a length of time, in seconds.
///
/// # Errors
/// If it is invalid.
pub fn length(field: &str, length: &Length) -> Result<u64, QueryError> {
    match length {
        Length::Seconds(seconds) => Ok(*seconds),
        Length::Text(text) => seconds(text).ok_or_else(|| {
            let message = format!(
                "'{text}' is not a valid length of time; write seconds, or '30s', '5m', '1h', '1d', '1w'"
            );
            QueryError::new(field, message)
        }),
    }
}

fn seconds(text: &str) -> Option<u64> {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit {
        "s" | "" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// A time of RFC 3339 with whole seconds, or with a fraction that is left out.
fn rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let end = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(end);
    let clock = clock.split('.').next()?;
    let mut clock = clock.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_in_range = (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !is_in_range {
        return None;
    }
    let offset = match zone {
        "Z" | "z" => 0,
        zone => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset * 60;
    u64::try_from(seconds).ok()
}

/// How many days a month has.
fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since the Unix epoch of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let now = 1_700_000_000;
        for (text, expected) in [
            ("now", Some(now)),
            ("-1h", Some(now - 3_600)),
            ("now-15m", Some(now - 900)),
            ("1700000000", Some(now)),
            ("2023-11-14T22:13:20Z", Some(now)),
            ("2023-11-14T23:13:20.5+01:00", Some(now)),
            ("2024-02-29T00:00:00Z", Some(1_709_164_800)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2023-13-14T22:13:20Z", None),
            ("2026-02-30T00:00:00Z", None),
            ("2023-02-29T00:00:00Z", None),
            ("2100-02-29T00:00:00Z", None),
            ("2026-04-31T00:00:00Z", None),
            ("2023-11-14", None),
            ("yesterday", None),
            ("-1y", None),
            ("", None),
        ] {
            let read = read("from", &TimePoint::Text(text.to_owned()), now);
            assert_eq!(read.as_ref().ok().copied(), expected, "{text}: {read:?}");
        }
        for (text, expected) in [
            ("90", Some(90)),
            ("2w", Some(1_209_600)),
            ("1.5h", None),
            ("m", None),
        ] {
            let read = length("step", &Length::Text(text.to_owned()));
            assert_eq!(read.ok(), expected, "{text}");
        }
    }
}
