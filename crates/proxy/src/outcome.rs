//! How a call goes on or ends: an answer in place of what would come next, and what becomes of the connection.

use crate::kafka::consumer::OpenEvents;
use weir_plugin::{Refusal, RefusalKind, Reply};

/// The fate of the connection after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFate {
    /// The next request may come.
    KeepAlive,
    /// It ends.
    Close,
    /// It ends once the client has had a chance to read the answer.
    Linger,
    /// It ends with a reset, as a proper end would be taken for that of the answer.
    Reset,
}

/// An answer in place of what would come next.
pub enum ShortCircuit {
    /// In the route's dialect.
    Refuse(Box<Refusal>),
    /// As it is.
    Reply(Box<Reply>),
    /// With a stream of records.
    Events(Box<OpenEvents>),
    /// The client has gone.
    Gone,
}

impl From<RefusalKind> for ShortCircuit {
    fn from(kind: RefusalKind) -> Self {
        Self::Refuse(Box::new(Refusal::new(kind)))
    }
}

impl From<Refusal> for ShortCircuit {
    fn from(refusal: Refusal) -> Self {
        Self::Refuse(Box::new(refusal))
    }
}
