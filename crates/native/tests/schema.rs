//! The checked-in JSON Schema is the one that the types give.

use serde_json::Value;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/weir.schema.json");

#[test]
fn the_checked_in_schema_is_up_to_date() {
    let text = format!(
        "{}\n",
        serde_json::to_string_pretty(&weir_native::schema()).expect("JSON")
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(PATH, &text).expect("docs/schema can be written");
    }
    let checked_in = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        checked_in == text,
        "docs/schema/weir.schema.json has drifted from the types; write it again with \
         `UPDATE_GOLDEN=1 cargo test -p weir-native schema` and check it in"
    );
}

/// Every reference in the schema leads to a definition in it.
#[test]
fn references_lead_somewhere() {
    fn references<'v>(schema: &'v Value, found: &mut Vec<&'v str>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let schema = weir_native::schema();
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference
            .strip_prefix('#')
            .expect("a reference within the schema");
        assert!(schema.pointer(pointer).is_some(), "{reference}");
    }
}
