//! Maps places in the model back to places in the `weir.yaml` that it came from.
//!
//! The checks of the whole model (its validation, the compile) use the model's fields. If the document uses a short
//! form, those fields are elsewhere in it. The place is searched in the document only if there is something to report,
//! so a translation carries no positions.

use crate::messages::reword;
use crate::shorthand::FIELDS;
use serde_json::{Map, Value};
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, DocPath};

/// The same finding at its place in `document`, in the document's words. The diagnostic's path begins at the
/// model that [`crate::translate`] made of it.
pub fn locate(document: &Value, diagnostic: Diagnostic) -> Diagnostic {
    let diagnostic = reword(diagnostic);
    Diagnostic {
        path: document_path(document, &diagnostic.path),
        ..diagnostic
    }
}

fn document_path(document: &Value, path: &DocPath) -> DocPath {
    let mut place = SourceNode {
        path: DocPath::root(),
        value: Some(document),
    };
    let rest = match path.0.as_slice() {
        [PathStep::Field(list), PathStep::Index(index), rest @ ..] => match list.as_str() {
            "routes" => {
                place = route_place(document, *index);
                place.route(rest)
            }
            "stream_routes" => {
                place.enter(list, *index);
                place.stream_route(rest)
            }
            "consumers" => {
                place.enter(list, *index);
                place.consumer(rest)
            }
            "plugins" => {
                place.enter(list, *index);
                place.instance(rest)
            }
            "unmatched" => {
                place.enter(list, *index);
                place.step(rest)
            }
            "upstreams" => {
                place.enter(list, *index);
                place.upstream(rest)
            }
            _ => &path.0,
        },
        all => all,
    };
    place.path.0.extend_from_slice(rest);
    place.path
}

/// A place in the document on the way down.
struct SourceNode<'d> {
    path: DocPath,
    value: Option<&'d Value>,
}

impl<'d> SourceNode<'d> {
    fn field(&mut self, name: &str) {
        self.path = self.path.field(name);
        self.value = self.value.and_then(|value| value.get(name));
    }

    fn enter(&mut self, list: &str, index: usize) {
        self.field(list);
        self.path = self.path.index(index);
        self.value = self.value.and_then(|value| value.get(index));
    }

    fn map(&self) -> Option<&'d Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    fn has(&self, field: &str) -> bool {
        self.map().is_some_and(|map| map.contains_key(field))
    }

    /// Goes to the first of these fields that is there.
    fn field_of(&mut self, names: &[&str]) {
        if let Some(name) = names.iter().find(|name| self.has(name)) {
            self.field(name);
        }
    }

    /// The methods from here on walk along a path within one kind of value, as far as document and model
    /// differ, and return the part on which they do not.
    fn route<'p>(&mut self, path: &'p [PathStep]) -> &'p [PathStep] {
        let [PathStep::Field(field), rest @ ..] = path else {
            return path;
        };
        match (field.as_str(), rest) {
            ("plugins", [PathStep::Index(index), rest @ ..]) => {
                self.enter("plugins", *index);
                self.step(rest)
            }
            ("match", _) if self.has("match") => path,
            ("match", [PathStep::Index(index), PathStep::Field(field), rest @ ..]) => {
                match field.as_str() {
                    "path" if self.has("paths") => self.enter("paths", *index),
                    field => self.field_of(&[field]),
                }
                rest
            }
            ("match", _) => {
                self.field_of(&["paths", "hosts", "methods", "headers"]);
                &[]
            }
            ("service" | "to", _) => {
                self.field_of(&["service", "to"]);
                &[]
            }
            ("path", _) if !self.has("path") && self.has("strip_prefix") => {
                self.field("strip_prefix");
                &[]
            }
            ("upstream_host", _) if self.has("preserve_host") => {
                self.field("preserve_host");
                &[]
            }
            _ => path,
        }
    }

    fn stream_route<'p>(&mut self, path: &'p [PathStep]) -> &'p [PathStep] {
        match path {
            [PathStep::Field(list), PathStep::Index(index), rest @ ..] if list == "plugins" => {
                self.enter(list, *index);
                self.step(rest)
            }
            path => path,
        }
    }

    fn step<'p>(&mut self, path: &'p [PathStep]) -> &'p [PathStep] {
        match path {
            [PathStep::Field(field), rest @ ..] if field == "use" => {
                if self.has("use") {
                    self.field("use");
                }
                self.instance(rest)
            }
            path if self.has("use") => {
                let is_own =
                    matches!(path.first(), Some(PathStep::Field(field)) if FIELDS.step.contains(field));
                if !is_own && self.map().is_some_and(|map| map["use"].is_object()) {
                    self.field("use");
                }
                self.instance(path)
            }
            path => self.instance(path),
        }
    }

    fn instance<'p>(&mut self, path: &'p [PathStep]) -> &'p [PathStep] {
        let plugin = self.named_by_key(|key| {
            FIELDS
                .instance
                .iter()
                .chain(&FIELDS.step)
                .all(|field| field != key)
        });
        self.below_named(plugin, "name", path)
    }

    fn consumer<'p>(&mut self, path: &'p [PathStep]) -> &'p [PathStep] {
        match path {
            [PathStep::Field(list), PathStep::Index(index), rest @ ..] if list == "credentials" => {
                self.enter(list, *index);
                let plugin = self.named_by_key(|key| FIELDS.credential.iter().all(|field| field != key));
                self.below_named(plugin, "plugin", rest)
            }
            [PathStep::Field(field)] if matches!(field.as_str(), "id" | "username") && self.has("name") => {
                self.field("name");
                &[]
            }
            path => path,
        }
    }

    /// The key with a plugin's name, if a value is written in that form.
    fn named_by_key(&self, is_name: impl Fn(&str) -> bool) -> Option<&'d str> {
        self.map()?.keys().map(String::as_str).find(|key| is_name(key))
    }

    fn below_named<'p>(&mut self, plugin: Option<&str>, name: &str, path: &'p [PathStep]) -> &'p [PathStep] {
        match (plugin, path) {
            (Some(plugin), [PathStep::Field(field), rest @ ..]) if field == "config" => {
                self.field(plugin);
                rest
            }
            (Some(plugin), [PathStep::Field(field)]) if field == name => {
                self.field(plugin);
                &[]
            }
            _ => path,
        }
    }

    fn upstream<'p>(&mut self, path: &'p [PathStep]) -> &'p [PathStep] {
        match path {
            [PathStep::Field(list), PathStep::Index(index), rest @ ..] if list == "targets" => {
                self.enter(list, *index);
                if self.value.is_some_and(Value::is_string) {
                    &[]
                } else {
                    rest
                }
            }
            path => path,
        }
    }
}

/// Where the model's route number `index` stands: those within services come first.
fn route_place(document: &Value, index: usize) -> SourceNode<'_> {
    let list = |value: &Value| value.get("routes").and_then(Value::as_array).map_or(0, Vec::len);
    let services = document.get("services").and_then(Value::as_array);
    let mut place = SourceNode {
        path: DocPath::root(),
        value: Some(document),
    };
    let mut before = 0;
    for (position, service) in services.into_iter().flatten().enumerate() {
        let count = list(service);
        if index < before + count {
            place.enter("services", position);
            break;
        }
        before += count;
    }
    place.enter("routes", index - before);
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::document;

    const DOCUMENT: &str = "
weir: 1
services:
  - name: a
    url: http://a
    routes:
      - {name: a1, paths: [/1, /2], plugins: [{rate-limit: {limits: []}}]}
  - name: b
    url: http://b
    routes:
      - {name: b1, hosts: [b], strip_prefix: true, preserve_host: true}
routes:
  - name: c1
    service: c
    match: [{path: /c}]
    plugins:
      - use: {name: key-auth, config: {}}
        overrides: [t]
      - use: shared
  - {name: c2, to: {service: c}, paths: [/c2]}
upstreams: [{name: u, targets: ['h:1', {host: h, port: 2}]}]
consumers: [{name: n, credentials: [{key-auth: {key: k}}, {plugin: jwt, config: {}}]}]
plugins: [{id: shared, cors: {}}]
unmatched: [{name: cors}]
stream_routes: [{name: s, plugins: [{ip-restriction: {deny: []}}]}]
";

    /// `a[1].b` as a path.
    fn path(text: &str) -> DocPath {
        let mut path = DocPath::root();
        for part in text.split('.') {
            let (name, index) = match part.split_once('[') {
                Some((name, index)) => (name, Some(index.trim_end_matches(']'))),
                None => (part, None),
            };
            path = path.field(name);
            if let Some(index) = index {
                path = path.index(index.parse().expect("a number"));
            }
        }
        path
    }

    #[test]
    fn places_in_the_model_are_found_in_the_document() {
        let document = document::parse(DOCUMENT).expect("valid");
        for (model, wanted) in [
            ("routes[0]", "services[0].routes[0]"),
            ("routes[0].match[1].path", "services[0].routes[0].paths[1]"),
            ("routes[0].match", "services[0].routes[0].paths"),
            ("routes[0].service", "services[0].routes[0]"),
            (
                "routes[0].plugins[0].use.config.limits",
                "services[0].routes[0].plugins[0].rate-limit.limits",
            ),
            (
                "routes[0].plugins[0].config.limits",
                "services[0].routes[0].plugins[0].rate-limit.limits",
            ),
            (
                "routes[0].plugins[0].use.name",
                "services[0].routes[0].plugins[0].rate-limit",
            ),
            ("routes[1].match[0].hosts[0]", "services[1].routes[0].hosts[0]"),
            (
                "routes[1].path.strip_matched",
                "services[1].routes[0].strip_prefix",
            ),
            ("routes[1].upstream_host", "services[1].routes[0].preserve_host"),
            ("routes[2].service", "routes[0].service"),
            ("routes[2].match[0].path", "routes[0].match[0].path"),
            (
                "routes[2].plugins[0].use.config.x",
                "routes[0].plugins[0].use.config.x",
            ),
            (
                "routes[2].plugins[0].config.x",
                "routes[0].plugins[0].use.config.x",
            ),
            (
                "routes[2].plugins[0].overrides[0]",
                "routes[0].plugins[0].overrides[0]",
            ),
            ("routes[2].plugins[1].use", "routes[0].plugins[1].use"),
            ("routes[3].service", "routes[1].to"),
            ("routes[3].name", "routes[1].name"),
            ("upstreams[0].targets[0].port", "upstreams[0].targets[0]"),
            ("upstreams[0].targets[1].port", "upstreams[0].targets[1].port"),
            ("consumers[0].id", "consumers[0].name"),
            (
                "consumers[0].credentials[0].config.key",
                "consumers[0].credentials[0].key-auth.key",
            ),
            (
                "consumers[0].credentials[1].config.key",
                "consumers[0].credentials[1].config.key",
            ),
            ("plugins[0].config.origins", "plugins[0].cors.origins"),
            (
                "stream_routes[0].plugins[0].config.deny",
                "stream_routes[0].plugins[0].ip-restriction.deny",
            ),
            ("stream_routes[0].service", "stream_routes[0].service"),
            ("unmatched[0].config.origins", "unmatched[0].config.origins"),
            ("services[1].upstream", "services[1].upstream"),
        ] {
            assert_eq!(
                document_path(&document, &path(model)).to_string(),
                wanted,
                "{model}"
            );
        }
    }
}
