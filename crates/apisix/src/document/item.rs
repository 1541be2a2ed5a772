//! A resource as it was read, and what may be wrong with it.

use weir_model::DocPath;

/// A resource with its id and its place in the document.
#[derive(Debug)]
pub struct Item<T> {
    /// The id; of one that has none, its position.
    pub id: String,
    /// Its place in the document.
    pub path: DocPath,
    /// The resource.
    pub value: T,
}

/// A fault of an item: a place under it, and the words.
pub type ItemError = (DocPath, String);
