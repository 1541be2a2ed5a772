//! The calendar that times in logs are written by: dates of days since 1970, in UTC. No clock and no time zones.

/// The last millisecond since 1970 that a year of four digits can express.
pub const MAX_TIME_MS: u64 = 253_402_300_799_999;

/// Year, month (1 to 12) and day (from 1) of a day since 1970-01-01 in the proleptic Gregorian calendar. Computed in
/// years that begin in March, so that the leap day comes last and months repeat a pattern of 153 days in five.
pub fn civil_date(unix_days: u64) -> (u64, u64, u64) {
    const DAYS_PER_ERA: u64 = 146_097; // 400 years
    const EPOCH_FROM_MARCH_0000: u64 = 719_468;
    let days = unix_days + EPOCH_FROM_MARCH_0000;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}
