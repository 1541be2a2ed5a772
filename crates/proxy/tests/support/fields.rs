//! Fields as the crates of clients hold them.
#![allow(dead_code, reason = "few tests ask")]

use http::{HeaderMap, HeaderName, HeaderValue};

/// A field list.
pub fn list(fields: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    map
}

/// The values of a field, joined.
pub fn joined(map: &HeaderMap, name: &str) -> Option<String> {
    let values: Vec<_> = map
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    (!values.is_empty()).then(|| values.join(" | "))
}
