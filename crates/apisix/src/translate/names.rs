//! Names that are known while a document is translated: `$route_name`, `$service_name`, `$service_id`.
//!
//! The model calls routes by their ids and services by their positions, so these variables are filled in here.

use regex::{Captures, Regex};
use serde_json::Value;
use std::sync::LazyLock;

static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{\s*(route_name|service_name|service_id)\s*\}|\$(route_name|service_name|service_id)\b")
        .expect("invariant: a constant pattern")
});

/// The names of a route and its service.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'d> {
    pub route_name: Option<&'d str>,
    pub service_name: Option<&'d str>,
    pub service_id: Option<&'d str>,
}

impl Names<'_> {
    /// The configuration with the names filled in; `None` if it has no such variable.
    pub fn fill(&self, config: &Value) -> Option<Value> {
        if !mentions(config) {
            return None;
        }
        let mut config = config.clone();
        self.replace(&mut config);
        Some(config)
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let filled = NAMES.replace_all(text, |found: &Captures<'_>| {
                    let name = found.get(1).or_else(|| found.get(2)).map_or("", |it| it.as_str());
                    let value = match name {
                        "route_name" => self.route_name,
                        "service_name" => self.service_name,
                        _ => self.service_id,
                    };
                    value.unwrap_or_default().to_owned()
                });
                *text = filled.into_owned();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.replace(value)),
            _ => {}
        }
    }
}

fn mentions(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('$') && NAMES.is_match(text),
        Value::Array(items) => items.iter().any(mentions),
        Value::Object(map) => map.values().any(mentions),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_filled_in() {
        let names = Names {
            route_name: Some("r"),
            service_name: None,
            service_id: Some("s"),
        };
        for (config, filled) in [
            (json!({"a": "$route_id"}), None),
            (
                json!({"a": ["[$route_name]", "${service_name}x"], "b": "$service_ids $service_id"}),
                Some(json!({"a": ["[r]", "x"], "b": "$service_ids s"})),
            ),
        ] {
            assert_eq!(names.fill(&config), filled);
        }
    }
}
