//! The fields of a record as rows of a table, read from its schema.

use serde_json::Value;
use weir_dialect::plugin_fields::{Field, bounds, display_default, display_plain, many};

/// The fields of a record.
pub fn of_record(record: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    read_record(record, "", &mut fields);
    fields
}

fn read_record(record: &Value, prefix: &str, fields: &mut Vec<Field>) {
    let described = record["fields"].as_array().into_iter().flatten();
    let former = record["shorthand_fields"].as_array().into_iter().flatten();
    for (name, field) in described.chain(former).filter_map(Value::as_object).flatten() {
        let path = format!("{prefix}{name}");
        let replaced = field.pointer("/deprecation/replaced_with/0/path");
        let meaning = match replaced.and_then(Value::as_array) {
            Some(new) => {
                let new: Vec<&str> = new.iter().filter_map(Value::as_str).collect();
                format!("The former name of `{prefix}{}`.", new.join("."))
            }
            None => String::new(),
        };
        let default = match field.get("default").filter(|it| !it.is_null()) {
            Some(default) if field["type"] != "record" => display_default(default),
            None if field["required"] == true && field["type"] != "record" => "required".to_owned(),
            _ => String::new(),
        };
        fields.push(Field {
            is: kind(field),
            default,
            meaning,
            path: path.clone(),
        });
        read_inside(field, &path, fields);
    }
}

fn read_inside(field: &Value, path: &str, fields: &mut Vec<Field>) {
    match field["type"].as_str() {
        Some("record") => read_record(field, &format!("{path}."), fields),
        Some("array" | "set") => read_inside(&field["elements"], &format!("{path}[]"), fields),
        Some("map") => read_inside(&field["values"], &format!("{path}.*"), fields),
        _ => {}
    }
}

fn kind(field: &Value) -> String {
    if let Some(options) = field["one_of"].as_array() {
        return options.iter().map(display_plain).collect::<Vec<_>>().join(", ");
    }
    let number = |at: &str| field["between"].pointer(at).and_then(Value::as_f64);
    match field["type"].as_str().unwrap_or_default() {
        "string" => "text".to_owned(),
        "integer" | "number" => match field["gt"].as_f64() {
            Some(least) => format!("number above {least}"),
            None => format!("number{}", bounds(number("/0"), number("/1"))),
        },
        "boolean" => "`true`, `false`".to_owned(),
        "array" | "set" => {
            let least = field["len_min"].as_f64().filter(|it| *it > 0.0);
            format!(
                "list of {}{}",
                many(&kind(&field["elements"])),
                bounds(least, None)
            )
        }
        "map" => format!("map of {}", many(&kind(&field["values"]))),
        "record" => "map".to_owned(),
        "foreign" => "an entity".to_owned(),
        _ => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn records_become_rows() {
        let record = json!({
            "fields": [
                {"second": {"type": "number", "gt": 0}},
                {"code": {"type": "number", "between": [100, 599], "default": 429}},
                {"policy": {"type": "string", "one_of": ["local", "redis"], "required": true}},
                {"redis": {"type": "record", "required": true, "fields": [{"host": {"type": "string"}}]}},
                {"names": {"type": "array", "elements": {"type": "string"}, "len_min": 1, "default": ["a"]}}
            ],
            "shorthand_fields": [{"redis_host": {"type": "string", "deprecation": {"replaced_with": [{"path": ["redis", "host"]}]}}}]
        });
        let fields = of_record(&record);
        let rows: Vec<[&str; 4]> = fields
            .iter()
            .map(|it| [&it.path, &it.is, &it.default, &it.meaning].map(String::as_str))
            .collect();
        assert_eq!(
            rows,
            [
                ["second", "number above 0", "", ""],
                ["code", "number, 100 to 599", "`429`", ""],
                ["policy", "`local`, `redis`", "required", ""],
                ["redis", "map", "", ""],
                ["redis.host", "text", "", ""],
                ["names", "list of texts, at least 1", "`[\"a\"]`", ""],
                ["redis_host", "text", "", "The former name of `redis.host`."],
            ]
        );
    }
}
