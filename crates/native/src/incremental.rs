//! Native resources as a store keeps them, one document each, and the model that they make together.
//!
//! A document is what stands in a `weir.yaml` for one resource: `services/NAME` holds what an item of `services`
//! holds, short forms included. **What it is not**: it does no I/O, and it does not check what needs the whole
//! model.

use crate::merged_model::{MergedModel, PartialModel};
use crate::translate::{self, translate};
use serde_json::{Value, json};
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
pub struct IncrementalModel {
    /// What each document says by itself, and what they say together.
    whole: MergedModel,
    /// The documents that are tried at the moment, with what was there before, in the order in which they were tried.
    tried: Vec<(String, Option<PartialModel>)>,
}

impl Default for IncrementalModel {
    fn default() -> Self {
        Self::new()
    }
}

impl IncrementalModel {
    /// None yet.
    pub fn new() -> Self {
        Self {
            whole: MergedModel::new(translate::VERSION),
            tried: Vec::new(),
        }
    }

    /// Takes over one document; `None`: it is gone. The key is `KIND/NAME`.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        self.take_back();
        self.whole.replace(key, value.map(|value| read(key, value)));
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.whole.parts().is_empty()
    }

    /// The key of the document that holds this resource of a list of the model: a service may hold routes.
    pub fn document_of(&self, list: &str, name: &str) -> Option<String> {
        let parts = self.whole.parts();
        let own = format!("{list}/{name}");
        if parts.contains_key(&own) {
            return Some(own);
        }
        let holds = |part: &Model| list == "routes" && part.routes.iter().any(|it| it.name == name);
        let mut parts = parts.iter();
        let found = parts.find(|(_, part)| part.as_ref().is_ok_and(holds));
        found.map(|(key, _)| key.clone())
    }

    /// What the good documents say together, in the order of their keys. Only what has changed is put together again.
    pub fn whole(&mut self) -> &Model {
        self.take_back();
        self.whole.model()
    }

    /// A copy of the same, and the documents that are not good.
    pub fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let model = self.whole().clone();
        let broken = self.whole.parts().iter().filter_map(|(key, read)| {
            Some(SkippedDocument {
                document: key.clone(),
                reason: read.as_ref().err()?.clone(),
            })
        });
        (model, broken.collect())
    }

    /// Looks at what the good documents would say together if these were so, or were gone.
    pub fn with<R>(&mut self, changes: &[(&str, Option<&[u8]>)], look: impl FnOnce(&Model) -> R) -> R {
        self.take_back();
        for (key, value) in changes {
            let old = self.whole.replace(key, value.map(|value| read(key, value)));
            self.tried.push(((*key).to_owned(), old));
        }
        let seen = look(self.whole.model());
        self.take_back();
        seen
    }

    /// Puts back what was there before documents were tried, also if looking at them has failed.
    fn take_back(&mut self) {
        while let Some((key, old)) = self.tried.pop() {
            self.whole.replace(&key, old);
        }
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

fn read(key: &str, value: &[u8]) -> PartialModel {
    let (kind, name) = key.split_once('/').ok_or("not the key of a native document")?;
    let value: Value = serde_json::from_slice(value).map_err(|error| format!("no JSON: {error}"))?;
    match resource(kind, name, &value) {
        Ok((model, _)) => Ok(model),
        Err(found) => Err(messages(&found)),
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
    // Gateways do not need to know which publication a document was made for.
    if let Some(fields) = value.as_object_mut() {
        fields.remove(OWNER);
    }
    if kind == CERTIFICATES
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("name");
    }
    let document = json!({ "weir": translate::VERSION, kind: [value] });
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

fn messages(found: &[Diagnostic]) -> String {
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
        assert_eq!(
            names(stored.with(&[("services/aa", Some(fresh))], Model::clone)),
            ["a", "aa"]
        );
        assert_eq!(names(stored.with(&[("services/a", None)], Model::clone)), [""; 0]);
        // Several at once; of one document, the last counts.
        let several: [(&str, Option<&[u8]>); 3] = [
            ("services/a", None),
            ("services/aa", Some(fresh)),
            ("services/aa", None),
        ];
        assert_eq!(names(stored.with(&several, Model::clone)), [""; 0]);
        assert_eq!(names(stored.model().0), ["a"]);
        stored.apply("services/a", None);
        assert_eq!(stored.model().0.routes.len(), 0);
    }
}
