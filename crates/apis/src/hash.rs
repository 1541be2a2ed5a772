//! SHA-256 of texts and of values. Equal values have equal hashes, whatever the order of their keys.

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value};

/// The hash of bytes, in hexadecimal digits.
pub fn of_bytes(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

/// The hash of a value, in hexadecimal digits.
pub fn of_value(value: &Value) -> String {
    of_bytes(sorted(value).to_string().as_bytes())
}

/// The same value with the keys of its maps in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let sorted: Map<String, Value> = entries
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            Value::Object(sorted)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_count() {
        let one = json!({"a": {"x": 1, "y": [1, 2]}, "b": 2});
        let other = json!({"b": 2, "a": {"y": [1, 2], "x": 1}});
        assert_eq!(of_value(&one), of_value(&other));
        assert_ne!(
            of_value(&one),
            of_value(&json!({"a": {"x": 1, "y": [2, 1]}, "b": 2}))
        );
        assert_eq!(
            of_bytes(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
