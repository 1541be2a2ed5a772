//! Former names of fields of plugins: accepted in documents, and shown next to the present ones.

use super::Definition;
use crate::schema::RawFields;
use serde_json::{Map, Value};

/// The former name of a field of `config`, the record in which it stands now (empty: `config` itself), and its name
/// there (empty: what it says means nothing any more). Names inside of records are written with dots.
pub type Shorthand = (&'static str, &'static str, &'static str);

/// Values of former names that are written otherwise now.
const FORMER_VALUES: [(&str, &str, &str); 1] = [("cookie_samesite", "off", "Lax")];

impl Definition {
    /// Moves what is given under former names to the present ones; a value that stands there already stays.
    pub fn expand(&self, config: &mut RawFields<'_>) {
        for (former, record, field) in self.shorthands {
            let Some(mut value) = take(config, former) else {
                continue;
            };
            let is_it = |(name, old, _): &&(&str, &str, &str)| name == former && value == *old;
            if let Some((_, _, present)) = FORMER_VALUES.iter().find(is_it) {
                value = Value::from(*present);
            }
            if field.is_empty() {
                continue;
            }
            if record.is_empty() {
                if config.get(field).is_none_or(Value::is_null) {
                    config.insert(field, value);
                }
                continue;
            }
            let mut steps = record.split('.');
            let first = steps.next().unwrap_or_default();
            if config.get(first).is_none() {
                config.insert(first, Value::Object(Map::new()));
            }
            let mut inner = config.get_mut(first);
            for step in steps {
                inner = inner
                    .and_then(Value::as_object_mut)
                    .map(|record| record.entry(step).or_insert_with(|| Value::Object(Map::new())));
            }
            if let Some(Value::Object(record)) = inner {
                record.entry(*field).or_insert(value);
            }
        }
    }
}

impl Definition {
    /// Adds a configuration's former names to the present ones, as answers of the Admin API do.
    pub fn add_former_names(&self, config: &mut Map<String, Value>) {
        for (former, record, field) in self.shorthands {
            let (parent, name) = former.rsplit_once('.').unwrap_or(("", former));
            // Those of `config` itself went so long ago that they are not reported.
            if record.is_empty() {
                continue;
            }
            let value = inner(config, record)
                .and_then(|record| record.get(*field))
                .cloned();
            if let Some(parent) = inner(config, parent) {
                parent.insert(name.to_owned(), value.unwrap_or_default());
            }
        }
    }
}

/// The record inside of another at a path with dots.
fn inner<'c>(record: &'c mut Map<String, Value>, path: &str) -> Option<&'c mut Map<String, Value>> {
    let mut steps = path.split('.').filter(|step| !step.is_empty());
    steps.try_fold(record, |record, step| record.get_mut(step)?.as_object_mut())
}

/// Takes out what stands under a name with dots.
fn take(config: &mut RawFields<'_>, name: &str) -> Option<Value> {
    let Some((first, rest)) = name.split_once('.') else {
        return config.remove(name).map(std::borrow::Cow::into_owned);
    };
    let (way, last) = rest.rsplit_once('.').unwrap_or(("", rest));
    let pointer = if way.is_empty() {
        String::new()
    } else {
        format!("/{}", way.replace('.', "/"))
    };
    config.get(first)?.pointer(&pointer)?.get(last)?;
    let record = config.get_mut(first)?.pointer_mut(&pointer)?;
    record.as_object_mut()?.remove(last)
}

#[cfg(test)]
mod tests {
    use crate::plugins::{PluginSupport, known};
    use crate::schema::RawFields;
    use serde_json::{Map, Value, json};

    #[test]
    fn former_names_lead_to_present_ones() {
        let table = [
            (
                "rate-limiting",
                json!({"redis_host": "h"}),
                json!({"redis": {"host": "h"}}),
            ),
            (
                "rate-limiting",
                json!({"redis_host": "old", "redis": {"host": "new"}}),
                json!({"redis": {"host": "new"}}),
            ),
            (
                "session",
                json!({"cookie_lifetime": 5, "cookie_renew": 1}),
                json!({"rolling_timeout": 5}),
            ),
            (
                "session",
                json!({"cookie_samesite": "off"}),
                json!({"cookie_same_site": "Lax"}),
            ),
            (
                "session",
                json!({"cookie_samesite": "None"}),
                json!({"cookie_same_site": "None"}),
            ),
            (
                "acme",
                json!({"storage_config": {"redis": {"auth": "a", "namespace": "n"}}}),
                json!({"storage_config": {"redis": {"password": "a", "extra_options": {"namespace": "n"}}}}),
            ),
        ];
        for (name, given, expected) in table {
            let PluginSupport::Yes(definition) = known(name) else {
                panic!("{name} is known");
            };
            let given = given.as_object().expect("a record");
            let mut config = RawFields::of(given);
            definition.expand(&mut config);
            let expanded: Map<String, Value> = config
                .iter()
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect();
            assert_eq!(Value::Object(expanded), expected, "{name}");
        }
    }

    #[test]
    fn former_names_are_shown() {
        let table = [
            (
                "session",
                json!({"rolling_timeout": 5}),
                json!({"rolling_timeout": 5}),
            ),
            (
                "acme",
                json!({"storage_config": {"redis": {"password": "a"}}}),
                json!({"storage_config": {"redis": {
                    "password": "a", "auth": "a", "ssl_server_name": null, "namespace": null, "scan_count": null,
                }}}),
            ),
        ];
        for (name, config, expected) in table {
            let PluginSupport::Yes(definition) = known(name) else {
                panic!("{name} is known");
            };
            let mut config = config.as_object().expect("a record").clone();
            definition.add_former_names(&mut config);
            assert_eq!(Value::Object(config), expected, "{name}");
        }
    }
}
