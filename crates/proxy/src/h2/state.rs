//! What a connection knows of each of its streams.

use super::frame::Code;
use crate::multiplex::list::FieldList;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Waker};

/// Bytes up to which pieces of a body are joined.
const SMALL: usize = 1024;

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
    pub waiting: Queues,
    /// Header lines.
    pub trailers: Option<Vec<u8>>,
}

/// What waits on a stream to be read.
#[derive(Default)]
pub struct Queues {
    pub pieces: VecDeque<Bytes>,
    pub heads: VecDeque<FieldList>,
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

    /// Adds to what nobody has read yet. Small pieces join those before: a piece takes more memory than a few bytes,
    /// and a whole window may come one by one.
    pub fn gather(&mut self, data: &[u8]) {
        self.unread += data.len();
        let is_small = |last: &Bytes| last.len() + data.len() <= SMALL;
        if self.waiting.pieces.back().is_some_and(is_small)
            && let Some(last) = self.waiting.pieces.pop_back()
        {
            match last.try_into_mut() {
                Ok(mut last) => {
                    last.extend_from_slice(data);
                    self.waiting.pieces.push_back(last.freeze());
                    return;
                }
                // Somebody else holds it too: it stays as it is.
                Err(last) => self.waiting.pieces.push_back(last),
            }
        }
        self.waiting.pieces.push_back(Bytes::copy_from_slice(data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_join() {
        let mut stream = StreamState {
            id: 1,
            waker: None,
            window_out: 0,
            window_in: 0,
            unread: 0,
            unannounced: 0,
            receiving: Receiving::Body,
            is_sent: false,
            fault: None,
            left: None,
            is_head: false,
            waiting: Queues::default(),
            trailers: None,
        };
        for _ in 0..3 * SMALL {
            stream.gather(b"a");
        }
        assert_eq!(stream.waiting.pieces.len(), 3);
        stream.gather(b"b");
        let held = stream.waiting.pieces.back().cloned();
        stream.gather(b"c");
        assert_eq!(held.as_deref(), Some(&b"b"[..]));
        let all: Vec<u8> = stream.waiting.pieces.iter().flatten().copied().collect();
        assert_eq!((all.len(), &all[3 * SMALL..]), (stream.unread, &b"bc"[..]));
    }
}
