//! What is found in a description: a rule, a level, a sentence, and the place in the uploaded text.

use serde::{Deserialize, Serialize};
use weir_model::DocPath;

/// How much a finding matters. The words are Spectral's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The description is wrong.
    Error,
    /// The description can be used, but will cause trouble.
    Warn,
    /// Worth a look.
    Info,
    /// A matter of taste.
    Hint,
}

/// A place in a text. Both count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    /// The beginning of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: String,
    /// How much it matters.
    pub level: Level,
    /// What is wrong and what was expected, in one sentence.
    pub message: String,
    /// The place in the document.
    pub path: DocPath,
    /// The place in the text; `None` until it is looked up.
    pub position: Option<Position>,
}

impl Finding {
    /// An error of a rule.
    pub fn error(rule: &str, path: DocPath, message: impl Into<String>) -> Self {
        Self {
            rule: rule.to_owned(),
            level: Level::Error,
            message: message.into(),
            path,
            position: None,
        }
    }

    /// The same finding at a known position.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        Self {
            position: Some(position),
            ..self
        }
    }
}

/// As JSON: rule, level, message, path, line, column.
impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut map = serializer.serialize_struct("Finding", 6)?;
        map.serialize_field("rule", &self.rule)?;
        map.serialize_field("level", &self.level)?;
        map.serialize_field("message", &self.message)?;
        map.serialize_field("path", &self.path.to_string())?;
        map.serialize_field("line", &self.position.map(|it| it.line))?;
        map.serialize_field("column", &self.position.map(|it| it.column))?;
        map.end()
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Position { line, column } = self.position.unwrap_or(Position::START);
        let level = match self.level {
            Level::Error => "error",
            Level::Warn => "warning",
            Level::Info => "info",
            Level::Hint => "hint",
        };
        write!(f, "{line}:{column}: {level}: {} ({})", self.message, self.rule)?;
        match self.path.0.is_empty() {
            true => Ok(()),
            false => write!(f, " at {}", self.path),
        }
    }
}
