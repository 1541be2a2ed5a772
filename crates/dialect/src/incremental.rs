//! From the documents of a store to the model.

use weir_model::Model;

/// A document that is not served as it is written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SkippedDocument {
    /// Its key; or what a person calls the resource, if that is all that is known.
    pub document: String,
    /// Why.
    pub reason: String,
}

/// The documents of one dialect in a store, read. A document that cannot be served is left out and named; it never
/// stops the rest. Keys are without the dialect's prefix, here and in what is returned.
pub trait IncrementalModel: Send {
    /// Applies the change of a document; `None` if it was removed.
    fn apply(&mut self, key: &str, value: Option<&[u8]>);

    /// The model of all documents that can be served, and those that cannot. It costs what has changed: what has not is
    /// the same shared value as in the model before.
    fn model(&mut self) -> (Model, Vec<SkippedDocument>);

    /// Documents that are served, but differently from what they say.
    fn warnings(&self) -> Vec<SkippedDocument> {
        Vec::new()
    }
}

/// What files say, which comes as a whole.
impl IncrementalModel for Model {
    fn apply(&mut self, _key: &str, _value: Option<&[u8]>) {}

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        (self.clone(), Vec::new())
    }
}
