//! The body of a request: how much of it has been read, and why no more comes. It is read in [`crate::read_body`].

use crate::body_time_budget::BodyTimeBudget;
use weir_http1::body::BodyCursor;
use weir_plugin::{Refusal, RefusalKind};

/// The request's body as far as it has been read.
#[derive(Debug)]
pub struct RequestBody {
    pub cursor: BodyCursor,
    /// Bytes of data read so far.
    pub received: u64,
    /// Most bytes allowed; `u64::MAX`: no bound.
    pub limit: u64,
    /// Data that was read for a filter that then could not have it whole; it is sent on first.
    pub prefix: Vec<u8>,
    /// How slowly it may come.
    pub pace: BodyTimeBudget,
}

impl RequestBody {
    /// Stands in for this body while it is away: nothing of it can be read, and its end is not known.
    pub fn away(&self) -> Self {
        Self {
            cursor: BodyCursor::UntilClose,
            received: u64::MAX,
            limit: 0,
            prefix: Vec::new(),
            pace: self.pace,
        }
    }
}

/// Why no more of a request body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// The client closed.
    Gone,
    /// The client did not send in time.
    TimedOut,
    /// Its framing is broken.
    Invalid,
    /// It is larger than allowed.
    TooLarge,
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Refusal::new(match error {
            BodyError::Gone | BodyError::TimedOut => RefusalKind::RequestTimeout,
            BodyError::Invalid => RefusalKind::BadRequest("the request body"),
            BodyError::TooLarge => RefusalKind::BodyTooLarge,
        })
    }
}
