//! Upstreams of a `weir.yaml` and their targets, as the model has them. Names are resolved by the data plane.

use super::reader::{Reader, only};
use crate::shorthand::FIELDS;
use serde_json::{Value, json};
use weir_model::{DocPath, Target, Upstream};

impl Reader {
    /// An upstream; a target may be written as `host:port`.
    pub(super) fn upstream(&mut self, value: &Value, place: &DocPath) -> Option<Upstream> {
        let map = self.map(value, place)?;
        let map = self.known(map, place, &FIELDS.upstream);
        let mut own = only(&map, |key| key != "targets");
        own.insert("targets".to_owned(), Value::Array(Vec::new()));
        let upstream = self.typed::<Upstream>(&Value::Object(own), place);
        let targets = place.field("targets");
        let items = self.list(&map, "targets", place);
        if !map.contains_key("targets") {
            self.error(place.clone(), "'targets' is missing");
        }
        let targets = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.target(item, &targets.index(index)))
            .collect();
        Some(Upstream { targets, ..upstream? })
    }

    fn target(&mut self, value: &Value, place: &DocPath) -> Option<Target> {
        let Some(text) = value.as_str() else {
            let map = self.map(value, place)?;
            let map = self.known(map, place, &FIELDS.target).into_owned();
            return self.typed(&Value::Object(map), place);
        };
        match split_target(text) {
            Some((host, port)) => self.typed(&json!({"host": host, "port": port}), place),
            None => {
                self.error(place.clone(), format!("expected 'host:port', found '{text}'"));
                None
            }
        }
    }
}

/// Splits `host:port`; an IPv6 address stands in brackets.
fn split_target(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let is_host =
        !host.is_empty() && !host.contains(|character: char| character.is_whitespace() || character == '/');
    let port = port.parse().ok().filter(|port| *port != 0)?;
    is_host.then_some((host, port))
}
