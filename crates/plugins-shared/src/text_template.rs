//! Texts of configurations: plain, with variables, or with expressions.

use crate::expression::{EvaluationError, Interpolated, RequestScope};
use crate::path_captures::{CaptureTemplate, RegexMatch};
use weir_plugin::Exchange;

/// What stands for something else in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateSyntax {
    /// Nothing.
    Plain,
    /// `$name` for variables and `$1` for groups.
    Variables,
    /// `$(…)` for expressions.
    Expressions,
}

impl From<bool> for TemplateSyntax {
    /// Whether there are variables.
    fn from(variables: bool) -> Self {
        if variables { Self::Variables } else { Self::Plain }
    }
}

/// A text made ready for many calls.
#[derive(Debug)]
pub enum TextTemplate {
    /// A text without anything to fill in.
    Plain(Vec<u8>),
    /// A text with variables.
    Variables(CaptureTemplate),
    /// A text with expressions.
    Expressions(Interpolated),
}

impl TextTemplate {
    /// Reads a text.
    ///
    /// # Errors
    /// Says which expression cannot be read.
    pub fn parse(text: &str, dialect: TemplateSyntax) -> Result<Self, String> {
        Ok(match dialect {
            TemplateSyntax::Variables if text.contains('$') => Self::Variables(CaptureTemplate::parse(text)),
            TemplateSyntax::Expressions if text.contains("$(") => {
                Self::Expressions(Interpolated::parse(text)?)
            }
            _ => Self::Plain(text.as_bytes().to_vec()),
        })
    }

    /// Whether any of its variables is in the request's body.
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::Variables(template) if template.needs_body())
    }

    /// The text for this call, perhaps with the help of `memory`.
    ///
    /// # Errors
    /// When an expression cannot be evaluated.
    pub fn value<'t>(
        &'t self,
        exchange: &Exchange,
        found: &RegexMatch,
        memory: &'t mut Vec<u8>,
    ) -> Result<&'t [u8], EvaluationError> {
        memory.clear();
        match self {
            Self::Plain(text) => return Ok(text),
            Self::Variables(template) => template.render(exchange, found, memory),
            Self::Expressions(template) => template.render(&RequestScope(exchange), memory)?,
        }
        Ok(memory)
    }
}
