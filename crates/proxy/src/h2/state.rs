//! What a connection knows of each of its streams.

use super::frame::Code;
use crate::multiplex::list::FieldList;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Waker};

/// Why a stream has ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The peer has reset it.
    Reset(Code),
    /// The peer has not looked at it.
    Unseen,
    /// The connection is lost.
    Lost,
    /// What the peer sent makes no message, or it was reset from this side.
    Broken,
}

impl Fault {
    /// What it means for a call. `ConnectionRefused`: the peer has not looked at the request.
    pub fn error(self) -> io::Error {
        match self {
            Self::Reset(Code::REFUSED_STREAM) | Self::Unseen => io::ErrorKind::ConnectionRefused,
            Self::Reset(_) => io::ErrorKind::ConnectionReset,
            Self::Lost => io::ErrorKind::BrokenPipe,
            Self::Broken => io::ErrorKind::InvalidData,
        }
        .into()
    }
}

/// How far what the peer sends on a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiving {
    /// The final head is to come.
    Head,
    Body,
    Ended,
}

/// One stream.
pub struct StreamState {
    pub id: u32,
    pub waker: Option<Waker>,
    /// Bytes that may be sent, and that may come.
    pub window_out: i64,
    pub window_in: i64,
    /// Bytes that came and were not read, and that were read and not yet allowed to come again.
    pub unread: usize,
    pub unannounced: usize,
    pub receiving: Receiving,
    pub is_sent: bool,
    pub fault: Option<Fault>,
    /// What is to come of a body of stated length.
    pub left: Option<u64>,
    /// The answer to a HEAD states a length of what does not come.
    pub is_head: bool,
    pub pieces: VecDeque<Bytes>,
    pub heads: VecDeque<FieldList>,
    /// Header lines.
    pub trailers: Option<Vec<u8>>,
}

impl StreamState {
    /// Wakes whoever waits for it.
    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Has this task woken.
    pub fn wait(&mut self, context: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
    }
}
