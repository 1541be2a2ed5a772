//! Points in time as SAML writes them: `2026-11-23T09:15:00Z`, always in UTC.

/// The seconds since the Unix epoch; parts of a second are left out. `None`: it is no such text.
pub fn parse_instant(text: &str) -> Option<i64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    let is_shaped = bytes.len() >= 20
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')]
            .iter()
            .all(|(at, mark)| bytes[*at] == *mark);
    let rest = is_shaped.then(|| text.get(19..)).flatten()?;
    let fraction = rest.strip_suffix('Z')?;
    let is_fraction = fraction.is_empty()
        || fraction.strip_prefix('.').is_some_and(|digits| {
            (1..=12).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_good = is_fraction
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60;
    is_good.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// The text of a point in time.
pub fn instant_text(unix_s: i64) -> String {
    let (day, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days since the epoch of a date of the Gregorian calendar; years begin in March, so that leap days are last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_and_written() {
        for (text, unix_s) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-23T09:15:00Z", Some(1_795_425_300)),
            ("2026-11-23T09:15:00.123Z", Some(1_795_425_300)),
            ("2000-02-29T23:59:59Z", Some(951_868_799)),
            ("2026-11-23T09:15:00", None),
            ("2026-11-23T09:15:00+01:00", None),
            ("2026-11-23T09:15:00.Z", None),
            ("2026-13-23T09:15:00Z", None),
            ("2026-11-23 09:15:00Z", None),
            ("2026-11-2\u{663}T09:15:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse_instant(text), unix_s, "{text}");
        }
        for unix_s in [0, 951_868_799, 951_868_800, 1_795_425_300, 4_102_444_800] {
            assert_eq!(parse_instant(&instant_text(unix_s)), Some(unix_s));
        }
    }
}
