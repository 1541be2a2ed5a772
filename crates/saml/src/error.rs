//! Why a message is not taken: words for logs. Clients get none of them.

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SamlError(pub &'static str);

impl SamlError {
    /// The words for it.
    pub fn reason(self) -> &'static str {
        self.0
    }
}

/// `Err` with these words, if the condition does not hold.
pub(crate) fn ensure(holds: bool, words: &'static str) -> Result<(), SamlError> {
    match holds {
        true => Ok(()),
        false => Err(SamlError(words)),
    }
}
