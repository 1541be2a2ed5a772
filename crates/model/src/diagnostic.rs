//! Diagnostics: the fault of a document, its place, and what was expected instead.

use std::fmt;

/// A place in a document: field names and list positions from its root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct DocPath(pub Vec<PathStep>);

/// One step of a [`DocPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// A field of a map.
    Field(String),
    /// A zero-based position in a list.
    Index(usize),
}

impl DocPath {
    /// The document's root.
    pub fn root() -> Self {
        Self::default()
    }

    /// The place of field `name` under this one.
    #[must_use]
    pub fn field(&self, name: impl Into<String>) -> Self {
        let mut steps = self.0.clone();
        steps.push(PathStep::Field(name.into()));
        Self(steps)
    }

    /// The place of list item `index` under this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(PathStep::Index(index));
        Self(steps)
    }
}

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Field(name) if position == 0 => write!(f, "{name}")?,
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// What a diagnostic means for the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Served as written, but worth a look.
    Warning,
    /// The resource at this place is left out; the rest is served, as the dialect's original does.
    Dropped,
    /// The document is refused whole.
    Error,
}

/// One finding in a document. Never holds a secret's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What the finding means for the document.
    pub severity: Severity,
    /// Where in the document.
    pub path: DocPath,
    /// What is wrong and what was expected, in one sentence.
    pub message: String,
    /// Line of the place (from 1), when it is already known (syntax errors).
    pub line: Option<usize>,
}

impl Diagnostic {
    /// A finding that refuses the document.
    pub fn error(path: DocPath, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            path,
            message: message.into(),
            line: None,
        }
    }

    /// A finding that leaves one resource out.
    pub fn dropped(path: DocPath, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Dropped,
            ..Self::error(path, message)
        }
    }

    /// A finding that changes nothing.
    pub fn warning(path: DocPath, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, message)
        }
    }

    /// One line for a terminal or a log: `file:line: error: routes[2].paths[0]: message`. `text` is the
    /// document's source, read again only to find the line.
    pub fn render(&self, file: &str, text: &str) -> String {
        let line = self.line.or_else(|| crate::document::line_of(text, &self.path));
        let kind = match self.severity {
            Severity::Warning => "warning",
            Severity::Dropped => "error (left out)",
            Severity::Error => "error",
        };
        let place = match line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        };
        one_line(if self.path.0.is_empty() {
            format!("{place}: {kind}: {}", self.message)
        } else {
            format!("{place}: {kind}: {}: {}", self.path, self.message)
        })
    }
}

/// Some causes have several lines (regular expressions), and a key may hold a line break.
fn one_line(text: String) -> String {
    if !text.contains(['\n', '\r']) {
        return text;
    }
    let lines = text.split(['\n', '\r']).map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line() {
        let found = Diagnostic::error(DocPath::root().field("a\nb"), "bad:\r\n    (\n    ^\nunclosed");
        assert_eq!(found.render("f", ""), "f: error: a b: bad: ( ^ unclosed");
    }
}
