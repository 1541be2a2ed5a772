//! The place of a value while a document is read, and what was found wrong. A place owns nothing until there
//! is something to report.

use std::sync::Arc;
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, DocPath};

/// A place in a document, as a chain of steps that lead back to its root.
#[derive(Debug, Clone, Copy)]
pub struct Location<'p> {
    parent: Option<&'p Location<'p>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Index(usize),
}

impl<'p> Location<'p> {
    /// The document's root.
    pub const ROOT: Location<'static> = Location {
        parent: None,
        step: Step::Root,
    };

    /// The place of field `name` under this one.
    pub fn field<'c>(&'c self, name: &'c str) -> Location<'c> {
        Location {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// The place of list item `index` under this one.
    pub fn index(&self, index: usize) -> Location<'_> {
        Location {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// The same place as a value of its own.
    pub fn to_path(&self) -> DocPath {
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(place) = here {
            match place.step {
                Step::Root => {}
                Step::Field(name) => steps.push(PathStep::Field(name.to_owned())),
                Step::Index(index) => steps.push(PathStep::Index(index)),
            }
            here = place.parent;
        }
        steps.reverse();
        DocPath(steps)
    }
}

/// The place of an item of a list, to be kept. It shares the way to the list with the list's other items.
#[derive(Debug, Clone)]
pub struct ItemLocation {
    /// The list.
    pub list: Arc<DocPath>,
    /// The item's position in it.
    pub index: usize,
}

impl ItemLocation {
    /// The same place as a path of its own.
    pub fn to_path(&self) -> DocPath {
        self.list.index(self.index)
    }
}

/// The findings while a document was read.
#[derive(Debug, Default)]
pub struct Problems(pub Vec<Diagnostic>);

impl Problems {
    /// Reports what refuses the document.
    pub fn error(&mut self, place: &Location<'_>, message: impl Into<String>) {
        self.0.push(Diagnostic::error(place.to_path(), message));
    }

    /// Reports what changes nothing.
    pub fn warning(&mut self, place: DocPath, message: impl Into<String>) {
        self.0.push(Diagnostic::warning(place, message));
    }
}
