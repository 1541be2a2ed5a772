//! Checks of values that many configurations have.

use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};

/// What is found wrong with a configuration.
#[derive(Default)]
pub struct ConfigErrors(Vec<Diagnostic>);

impl ConfigErrors {
    /// Tells a fault of the field.
    pub fn add(&mut self, field: &str, message: impl Into<String>) {
        self.0
            .push(Diagnostic::error(DocPath::root().field(field), message));
    }

    /// Tells a fault of a field that lies deeper.
    pub fn add_at(&mut self, fields: &[&str], message: impl Into<String>) {
        let path = fields
            .iter()
            .fold(DocPath::root(), |path, field| path.field(*field));
        self.0.push(Diagnostic::error(path, message));
    }

    /// Tells faults that were found elsewhere.
    pub fn extend(&mut self, faults: Vec<Diagnostic>) {
        self.0.extend(faults);
    }

    /// A status with which a call can be answered.
    pub fn check_status(&mut self, field: &str, status: u16) {
        if !(200..=599).contains(&status) {
            self.add(
                field,
                format!("expected a status from 200 to 599, found {status}"),
            );
        }
    }

    /// A header's name.
    pub fn check_name(&mut self, field: &str, name: &str) {
        if !is_name(name.as_bytes()) {
            self.add(field, "expected a header name");
        }
    }

    /// Names of headers.
    pub fn check_names(&mut self, field: &str, names: &[String]) {
        for (index, name) in names.iter().enumerate() {
            if !is_name(name.as_bytes()) {
                let path = DocPath::root().field(field).index(index);
                self.0.push(Diagnostic::error(path, "expected a header name"));
            }
        }
    }

    /// A text that a header can hold.
    pub fn check_value(&mut self, field: &str, value: Option<&String>) {
        if value.is_some_and(|text| !is_value(text.as_bytes())) {
            self.add(field, "expected a header value");
        }
    }

    /// At least one of the lists holds something.
    pub fn check_any(&mut self, lists: &[(&str, bool)]) {
        if lists.iter().all(|(_, is_empty)| *is_empty) {
            let names: Vec<&str> = lists.iter().map(|(name, _)| *name).collect();
            let message = format!("expected at least one of: {}", names.join(", "));
            self.0.push(Diagnostic::error(DocPath::root(), message));
        }
    }

    /// Returns all reported faults, if there are any.
    pub fn done(self) -> Result<(), Vec<Diagnostic>> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self.0),
        }
    }
}

/// What was found wrong with a configuration inside of another one, with its place there.
pub fn within(outer: &DocPath, faults: Vec<Diagnostic>) -> impl Iterator<Item = Diagnostic> {
    faults.into_iter().map(|fault| {
        let steps = outer.0.iter().chain(&fault.path.0).cloned().collect();
        Diagnostic {
            path: DocPath(steps),
            ..fault
        }
    })
}
