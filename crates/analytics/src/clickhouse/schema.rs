//! The tables, and which columns they have.

use crate::cell::{FIELDS, Field};
use crate::store::StoreError;

/// Columns of sums, by the numbers of [`Field`]s. All but the longest time are added up.
pub const SUMS: [(Field, &str); FIELDS] = [
    (Field::Calls, "calls"),
    (Field::Total, "total_us"),
    (Field::BytesOut, "bytes_out"),
    (Field::BytesIn, "bytes_in"),
    (Field::Refused, "refused"),
    (Field::Aborted, "aborted"),
    (Field::ClientErrors, "errors_4xx"),
    (Field::ServerErrors, "errors_5xx"),
    (Field::Retries, "retries"),
    (Field::Upstream, "upstream_us"),
    (Field::UpstreamCalls, "upstream_calls"),
    (Field::Longest, "longest_us"),
];
/// Columns of a key.
pub const KEY: &str = "d1, d2, d3, d4, d5";
/// Inserts whose tokens the server remembers, for each table.
const TOKENS: u32 = 20_000;

/// The name of a field's column.
pub fn column(field: Field) -> &'static str {
    let found = SUMS.iter().find(|(known, _)| *known == field);
    found.map_or("calls", |(_, name)| name)
}

/// How a field of several rows becomes one value.
pub fn summed(field: Field) -> String {
    let function = if field == Field::Longest { "max" } else { "sum" };
    format!("{function}({})", column(field))
}

/// Whether a server of a version knows deduplication tokens for tables that are not replicated.
pub fn has_tokens(version: &str) -> Result<bool, StoreError> {
    let mut parts = version.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor) >= (22, 1)),
        _ => Err(StoreError::Engine(format!(
            "ClickHouse: '{version}' is not a valid version of a ClickHouse server"
        ))),
    }
}

/// The statements that make tables that are missing.
pub fn tables(has_tokens: bool) -> Vec<String> {
    let settings = match has_tokens {
        true => format!(" SETTINGS non_replicated_deduplication_window = {TOKENS}"),
        false => String::new(),
    };
    let sums: Vec<String> = SUMS.iter().map(|(_, name)| format!("{name} UInt64")).collect();
    let (sums, times) = (sums.join(", "), "kind UInt8, bucket UInt16, count UInt64");
    let keys = "d1 String, d2 String, d3 String, d4 String, d5 String";
    let of = |name: &str, at: &str, a_day: u32, columns: &str, order: &str| {
        format!(
            "CREATE TABLE IF NOT EXISTS {name} (cube_id UInt8, {at} UInt32, {keys}, {columns}) ENGINE = MergeTree() \
             PARTITION BY intDiv({at}, {a_day}) ORDER BY (cube_id, {at}, {KEY}{order}){settings}"
        )
    };
    vec![
        of("weir_minute", "minute", 1_440, &format!("{sums}, batch UInt64"), ""),
        of("weir_minute_times", "minute", 1_440, &format!("{times}, batch UInt64"), ", kind, bucket"),
        of("weir_hour", "hour", 24, &sums, ""),
        of("weir_hour_times", "hour", 24, times, ", kind, bucket"),
        // The same register with the same rank is one row: what comes twice is put together.
        "CREATE TABLE IF NOT EXISTS weir_callers (hour UInt32, d1 String, d2 String, register UInt16, rank UInt8) \
         ENGINE = ReplacingMergeTree() PARTITION BY intDiv(hour, 720) ORDER BY (hour, d1, d2, register, rank)"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_column() {
        for (place, (field, name)) in SUMS.iter().enumerate() {
            assert_eq!(*field as usize, place, "{name}");
            assert_eq!(column(*field), *name);
        }
        assert_eq!(
            (summed(Field::Longest), summed(Field::Calls)),
            ("max(longest_us)".into(), "sum(calls)".into())
        );
    }

    #[test]
    fn versions_show_whether_there_are_tokens() {
        for (version, expected) in [
            ("18.16.1", Some(false)),
            ("21.12.4.1", Some(false)),
            ("22.1.2.2", Some(true)),
            ("26.5.1.1", Some(true)),
            ("Ok.", None),
            ("", None),
        ] {
            assert_eq!(has_tokens(version).ok(), expected, "{version}");
        }
    }
}
