//! Old names of fields, which stay readable for one release.
//!
//! **What it is not**: a place for fields whose meaning has changed; those are errors.

use serde_json::{Map, Value};
use std::borrow::Cow;
use weir_model::{Diagnostic, DocPath};

/// The old name and the new one.
const RENAMED: [(&str, &str); 1] = [("voice", "dialect")];

/// The parts of a document, besides itself, whose items had an old name.
const LISTS: [&str; 5] = ["routes", "stream_routes", "consumers", "route_tables", "services"];

/// The document with today's names, and a warning for each old one.
pub fn with_current_names(document: &Value) -> (Cow<'_, Value>, Vec<Diagnostic>) {
    let mut warnings = Vec::new();
    if !has_old_name(document) {
        return (Cow::Borrowed(document), warnings);
    }
    let mut changed = document.clone();
    rename(&mut changed, &DocPath::root(), &mut warnings);
    (Cow::Owned(changed), warnings)
}

fn has_old_name(value: &Value) -> bool {
    let Value::Object(map) = value else { return false };
    RENAMED.iter().any(|(old, _)| map.contains_key(*old))
        || items(map).any(|(_, list)| list.iter().any(has_old_name))
}

fn items(map: &Map<String, Value>) -> impl Iterator<Item = (&'static str, &Vec<Value>)> {
    LISTS
        .into_iter()
        .filter_map(|name| Some((name, map.get(name)?.as_array()?)))
}

fn rename(value: &mut Value, place: &DocPath, warnings: &mut Vec<Diagnostic>) {
    let Value::Object(map) = value else { return };
    for (old, new) in RENAMED {
        if map.contains_key(new) {
            continue;
        }
        if let Some(value) = map.remove(old) {
            let message = format!("'{old}' is called '{new}' now; the next release reads '{new}' only");
            warnings.push(Diagnostic::warning(place.field(old), message));
            map.insert(new.to_owned(), value);
        }
    }
    for name in LISTS {
        if let Some(Value::Array(list)) = map.get_mut(name) {
            for (index, item) in list.iter_mut().enumerate() {
                rename(item, &place.field(name).index(index), warnings);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_current_names;
    use serde_json::json;

    #[test]
    fn old_names_are_read_with_a_warning() {
        let document = json!({"weir": 1, "voice": "kong", "routes": [{"name": "r", "voice": "kong"}],
            "services": [{"name": "s", "routes": [{"voice": "apisix"}]}]});
        let (read, warnings) = with_current_names(&document);
        let expected = json!({"weir": 1, "dialect": "kong", "routes": [{"name": "r", "dialect": "kong"}],
            "services": [{"name": "s", "routes": [{"dialect": "apisix"}]}]});
        assert_eq!(*read, expected);
        let places: Vec<_> = warnings.iter().map(|warning| warning.path.to_string()).collect();
        assert_eq!(
            places,
            ["voice", "routes[0].voice", "services[0].routes[0].voice"]
        );
        assert!(
            warnings[0].message.contains("called 'dialect' now"),
            "{}",
            warnings[0].message
        );
    }

    #[test]
    fn other_names_are_left_alone() {
        let document = json!({"weir": 1, "voice": "kong", "dialect": "native"});
        let (read, warnings) = with_current_names(&document);
        assert_eq!((read.get("voice"), warnings.len()), (Some(&json!("kong")), 0));
    }
}
