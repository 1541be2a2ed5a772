//! Native resources as a store keeps them, one document each, and the model that they make together.
//!
//! A document is what stands in a `weir.yaml` for one resource: `services/NAME` holds what an item of `services`
//! holds, short forms included. **What it is not**: it does no I/O, and it does not check what needs the whole
//! model.

use crate::translate;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Bound;
use weir_dialect::SkippedDocument;
use weir_model::{Diagnostic, Model};

/// The kinds of documents, each with the field that names its resources. They are the lists of a `weir.yaml`.
pub const KINDS: [(&str, &str); 10] = [
    ("acme", "name"),
    (CERTIFICATES, "name"),
    ("consumer_tables", "id"),
    ("consumers", "id"),
    ("dialect_settings", "dialect"),
    ("plugins", "id"),
    ("routes", "name"),
    ("services", "name"),
    ("stream_routes", "name"),
    ("upstreams", "name"),
];

/// The kind of this name. A kind that was renamed is known by its old name, too, for one release.
pub fn current_kind(name: &str) -> &str {
    match name {
        "route_tables" => "dialect_settings",
        name => name,
    }
}

/// The kind whose resources have no names in a `weir.yaml`; in a store they need one.
const CERTIFICATES: &str = "certificates";

/// The field of a stored document that names the publication that it was made for.
pub const OWNER: &str = "owned_by";

/// The native documents of a store.
#[derive(Default)]
pub struct IncrementalModel {
    /// What each document says by itself, by its key.
    read: BTreeMap<String, Result<Model, String>>,
}

impl IncrementalModel {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over one document; `None`: it is gone. The key is `KIND/NAME`.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        match value {
            None => {
                self.read.remove(key);
            }
            Some(value) => {
                self.read.insert(key.to_owned(), read(key, value));
            }
        }
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty()
    }

    /// What the good documents say together, in the order of their keys, and the others.
    pub fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let broken = self.read.iter().filter_map(|(key, read)| {
            Some(SkippedDocument {
                document: key.clone(),
                reason: read.as_ref().err()?.clone(),
            })
        });
        let broken = broken.collect();
        (merged(self.read.values()), broken)
    }

    /// What the good documents would say together if one were this, or were gone. What is kept stays as it is.
    pub fn model_with(&self, key: &str, value: Option<&[u8]>) -> Model {
        let changed = value.map(|value| read(key, value));
        let part = |from, to| self.read.range::<str, _>((from, to)).map(|(_, read)| read);
        let before = part(Bound::Unbounded, Bound::Excluded(key));
        let behind = part(Bound::Excluded(key), Bound::Unbounded);
        merged(before.chain(&changed).chain(behind))
    }
}

impl weir_dialect::IncrementalModel for IncrementalModel {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        Self::model(self)
    }
}

/// What the good ones say together.
fn merged<'r>(parts: impl Iterator<Item = &'r Result<Model, String>>) -> Model {
    let mut whole = Model {
        weir: crate::translate::VERSION,
        ..Model::default()
    };
    for part in parts.flatten() {
        whole.merge(part.clone());
    }
    whole
}

fn read(key: &str, value: &[u8]) -> Result<Model, String> {
    let (kind, name) = key.split_once('/').ok_or("not the key of a native document")?;
    let value: Value = serde_json::from_slice(value).map_err(|error| format!("no JSON: {error}"))?;
    match resource(kind, name, &value) {
        Ok((model, _)) => Ok(model),
        Err(found) => Err(told(&found)),
    }
}

/// What one document says by itself; with it come warnings. Their places lead into the document.
///
/// # Errors
/// All that is wrong with it.
pub fn resource(kind: &str, name: &str, value: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let fail = |message: String| vec![Diagnostic::error(weir_model::DocPath::root(), message)];
    let kind = current_kind(kind);
    let Some((_, field)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        return Err(fail(format!(
            "no kind of resource is named '{kind}'; there are {}",
            kinds.join(", ")
        )));
    };
    let named = value
        .get(field)
        .or_else(|| value.get("name"))
        .and_then(Value::as_str);
    if named != Some(name) {
        return Err(fail(format!(
            "expected '{name}', as in the key, in the field '{field}'"
        )));
    }
    let mut value = value.clone();
    // Which publication the document was made for is nothing that a gateway asks for.
    if let Some(fields) = value.as_object_mut() {
        fields.remove(OWNER);
    }
    if kind == CERTIFICATES
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("name");
    }
    let document = json!({ "weir": crate::translate::VERSION, kind: [value] });
    let inside = |found: Vec<Diagnostic>| {
        let into = |mut found: Diagnostic| {
            // Without the list and the place in it.
            found.path.0.drain(..found.path.0.len().min(2));
            found
        };
        found.into_iter().map(into).collect::<Vec<_>>()
    };
    match translate(&document) {
        Ok((model, found)) => Ok((model, inside(found))),
        Err(found) => Err(inside(found)),
    }
}

fn told(found: &[Diagnostic]) -> String {
    let one = |found: &Diagnostic| match found.path.0.is_empty() {
        true => found.message.clone(),
        false => format!("{}: {}", found.path, found.message),
    };
    found.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_documents_make_a_model_and_broken_ones_are_named() {
        let mut stored = IncrementalModel::new();
        for (key, value) in [
            (
                "services/a",
                r#"{"name":"a","url":"http://127.0.0.1:1","routes":[{"name":"ra","paths":["/a"]}]}"#,
            ),
            ("services/b", r#"{"name":"b"}"#),
            ("services/c", r#"{"name":"d","url":"http://127.0.0.1:1"}"#),
            ("consumers/x", r#"{"name":"x"}"#),
            ("plugins/p", "{"),
            ("cats/c", "{}"),
            (
                "certificates/shop",
                r#"{"name":"shop","names":["shop.test"],"key_pairs":[]}"#,
            ),
        ] {
            stored.apply(key, Some(value.as_bytes()));
        }
        let (model, broken) = stored.model();
        assert_eq!(
            (model.services.len(), model.routes.len(), model.consumers.len()),
            (1, 1, 1)
        );
        assert_eq!(model.certificates[0].names, ["shop.test"]);
        let reasons: Vec<String> = broken
            .iter()
            .map(|it| format!("{}: {}", it.document, it.reason))
            .collect();
        assert_eq!(reasons.len(), 4, "{reasons:?}");
        assert!(
            reasons[0].starts_with("cats/c: no kind of resource is named 'cats'"),
            "{reasons:?}"
        );
        assert!(reasons[1].starts_with("plugins/p: no JSON"), "{reasons:?}");
        assert_eq!(
            reasons[2],
            "services/b: expected 'url' (one target) or 'upstream' (several)"
        );
        assert_eq!(
            reasons[3],
            "services/c: expected 'c', as in the key, in the field 'name'"
        );
        let names =
            |model: Model| -> Vec<String> { model.services.iter().map(|it| it.name.clone()).collect() };
        let fresh = br#"{"name":"aa","url":"http://127.0.0.1:1"}"#;
        assert_eq!(names(stored.model_with("services/aa", Some(fresh))), ["a", "aa"]);
        assert_eq!(names(stored.model_with("services/a", None)), [""; 0]);
        assert_eq!(names(stored.model().0), ["a"]);
        stored.apply("services/a", None);
        assert_eq!(stored.model().0.routes.len(), 0);
    }
}
