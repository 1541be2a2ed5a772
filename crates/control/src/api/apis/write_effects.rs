//! What a write of API management comes to, before it is committed.

use std::collections::BTreeSet;

/// The effects of a write: the note for the history, the publications that are to be rendered, and the answer.
pub struct WriteEffects<A> {
    pub note: String,
    /// As `API/VERSION/ENVIRONMENT`, and products as `products/NAME`.
    pub publications: BTreeSet<String>,
    pub answer: A,
}

impl<A> WriteEffects<A> {
    /// A write that gateways do not notice.
    pub fn quiet(note: impl Into<String>, answer: A) -> Self {
        Self {
            note: note.into(),
            publications: BTreeSet::new(),
            answer,
        }
    }
}
