//! Consumers of a `weir.yaml`, and their credentials.

use super::reader::{Reader, only};
use crate::messages::closest;
use crate::shorthand::{FIELDS, PLUGINS};
use serde_json::{Map, Value, json};
use weir_model::{Consumer, Credential, DocPath};

impl Reader {
    /// A consumer; `name` stands for `id` and `username`.
    pub(super) fn consumer(&mut self, value: &Value, place: &DocPath) -> Option<Consumer> {
        let map = self.map(value, place)?;
        let map = self.known(map, place, &FIELDS.consumer);
        let credentials = self.credentials(&map, place);
        let mut own = only(&map, |key| !matches!(key, "name" | "credentials"));
        if map.contains_key("name") {
            let name = self.text(&map, "name", place)?;
            for long in ["id", "username"] {
                if map.contains_key(long) {
                    let message = format!("expected either 'name' or '{long}', not both");
                    self.error(place.field(long), message);
                }
                own.insert(long.to_owned(), Value::from(name));
            }
        } else if !map.contains_key("id") {
            self.error(place.clone(), "'name' is missing");
            return None;
        }
        let consumer = self.typed::<Consumer>(&Value::Object(own), place)?;
        Some(Consumer {
            credentials,
            ..consumer
        })
    }

    fn credentials(&mut self, map: &Map<String, Value>, place: &DocPath) -> Vec<Credential> {
        let credentials = place.field("credentials");
        let items = self.list(map, "credentials", place);
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.credential(item, &credentials.index(index)))
            .collect()
    }

    /// A credential: the plugin's name as a key and what the plugin needs as its value, or `plugin` and
    /// `config`.
    fn credential(&mut self, value: &Value, place: &DocPath) -> Option<Credential> {
        let map = self.map(value, place)?;
        let plugins: Vec<&String> = map
            .keys()
            .filter(|key| !FIELDS.credential.contains(key))
            .collect();
        let (plugin, config, named_at) = match (plugins.as_slice(), map.get("plugin")) {
            ([], Some(_)) => {
                let config = map.get("config").cloned().unwrap_or_else(|| json!({}));
                (self.text(map, "plugin", place)?, config, place.field("plugin"))
            }
            ([plugin], None) => (
                plugin.as_str(),
                map[plugin.as_str()].clone(),
                place.field(plugin.as_str()),
            ),
            ([], None) => {
                self.error(
                    place.clone(),
                    "expected a plugin's name and what it needs, such as 'key-auth: {key: …}'",
                );
                return None;
            }
            ([.., other], _) => {
                let message =
                    "expected one plugin's credential in an item of the list: begin the next with '- '";
                self.error(place.field(other.as_str()), message);
                return None;
            }
        };
        if !PLUGINS.with_credentials.contains(&plugin) {
            let guess = closest(plugin, &PLUGINS.with_credentials)
                .map(|meant| format!("did you mean '{meant}'? "))
                .unwrap_or_default();
            let names = PLUGINS.with_credentials.join(", ");
            self.error(
                named_at,
                format!("no plugin '{plugin}' has credentials: {guess}Expected one of {names}"),
            );
            return None;
        }
        let id = match map.get("id") {
            Some(_) => Some(self.text(map, "id", place)?.to_owned()),
            None => None,
        };
        let expires = map.get("expires");
        let expires = expires.and_then(|end| self.typed::<Option<u64>>(end, &place.field("expires")));
        Some(Credential {
            id,
            plugin: plugin.to_owned(),
            config,
            expires: expires.flatten(),
        })
    }
}
