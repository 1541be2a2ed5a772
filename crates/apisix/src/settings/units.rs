//! Sizes and times as NGINX writes them: numbers followed by a unit. No other units, and no arithmetic.

use serde_json::Value;

/// Bytes: a number, or one followed by `k`, `m` or `g`.
pub fn bytes(value: &Value) -> Option<u64> {
    let text = match value {
        Value::String(text) => text.trim(),
        other => return other.as_u64(),
    };
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Milliseconds: a number of seconds, or one followed by `ms`, `s`, `m`, `h` or `d`.
pub fn milliseconds(value: &Value) -> Option<u64> {
    let text = match value {
        Value::String(text) => text.trim(),
        other => return other.as_u64()?.checked_mul(1000),
    };
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_and_times_are_nginxs() {
        for (value, size, time) in [
            (json!("50m"), Some(50 << 20), Some(3_000_000)),
            (json!("1G"), Some(1 << 30), None),
            (json!("512k"), Some(512 << 10), None),
            (json!("100"), Some(100), Some(100_000)),
            (json!(7), Some(7), Some(7_000)),
            (json!("10s"), None, Some(10_000)),
            (json!("250ms"), None, Some(250)),
            (json!("1d"), None, Some(86_400_000)),
            (json!(""), None, None),
            (json!("99999999999999999999g"), None, None),
            (json!("18446744073709551615g"), None, None),
            (json!(-1), None, None),
            (json!("é"), None, None),
        ] {
            assert_eq!(bytes(&value), size, "{value}");
            assert_eq!(milliseconds(&value), time, "{value}");
        }
    }
}
