//! Why a response was not passed on whole, and whether the client can still get an error. Attempts and retries are not
//! here.

use crate::outcome::{ConnectionFate, ShortCircuit};

/// Why a response was not passed on whole.
pub enum RelayError {
    /// The client has a part of it, or is gone: its connection ends so.
    Cut(ConnectionFate),
    /// The client has nothing of it and can get an error.
    Refused(ShortCircuit),
}

impl From<ConnectionFate> for RelayError {
    fn from(after: ConnectionFate) -> Self {
        Self::Cut(after)
    }
}
