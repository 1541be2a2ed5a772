//! What a connection knows of each of its streams.

use super::connection::Side;
use super::frame::Code;
use crate::multiplex::list::FieldList;
use bytes::Bytes;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Waker};

/// Bytes up to which pieces of a body are joined.
const SMALL: usize = 1024;
/// Most room in queues that are kept for another stream.
const MAX_SPARE_ROOM: usize = 8;

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
    /// It is among [`Waiting`].
    pub is_waiting: bool,
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

impl Queues {
    /// Empties them, for another stream; `None` where keeping them is not worth it.
    pub fn emptied(mut self) -> Option<Self> {
        let (pieces, heads) = (self.pieces.capacity(), self.heads.capacity());
        let is_worth_it = pieces + heads > 0 && pieces.max(heads) <= MAX_SPARE_ROOM;
        is_worth_it.then(|| {
            self.pieces.clear();
            self.heads.clear();
            self
        })
    }
}

/// Streams that wait for the connection's window, or for room in what it writes. Each is there once, however often it
/// has been woken for nothing.
#[derive(Default)]
pub struct Waiting(Vec<usize>);

impl Waiting {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a stream.
    pub fn add(&mut self, key: usize, stream: &mut StreamState) {
        if !std::mem::replace(&mut stream.is_waiting, true) {
            self.0.push(key);
        }
    }

    /// Takes a stream out that is over.
    pub fn remove(&mut self, key: usize, stream: &StreamState) {
        if stream.is_waiting {
            self.0.retain(|it| *it != key);
        }
    }

    /// Wakes all, and lets go of them.
    pub fn wake(&mut self, streams: &mut Slab<StreamState>) {
        for key in self.0.drain(..) {
            if let Some(stream) = streams.get_mut(key) {
                stream.is_waiting = false;
                stream.wake();
            }
        }
    }
}

impl StreamState {
    /// The peer, or the connection, has ended it before its time. What has come whole of an upstream is still good:
    /// it may not want the rest of the request.
    pub fn end(&mut self, side: Side, fault: Fault) {
        if side == Side::Client && self.receiving == Receiving::Ended {
            self.is_sent = true;
        } else {
            self.fault.get_or_insert(fault);
        }
        self.wake();
    }

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

    fn stream() -> StreamState {
        StreamState {
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
            is_waiting: false,
            waiting: Queues::default(),
            trailers: None,
        }
    }

    /// A client that gives each stream a byte more, and the connection none, wakes them for nothing.
    #[test]
    fn streams_wait_once() {
        let mut streams = Slab::new();
        let keys = [streams.insert(stream()), streams.insert(stream())];
        let mut waiting = Waiting::default();
        for _ in 0..1000 {
            for key in keys {
                streams[key].wake();
                waiting.add(key, &mut streams[key]);
            }
        }
        assert_eq!(waiting.0, keys);
        // Another stream gets the place of one that is over.
        let over = streams.remove(keys[0]);
        waiting.remove(keys[0], &over);
        assert_eq!(streams.insert(stream()), keys[0]);
        assert_eq!(waiting.0, keys[1..]);
        waiting.wake(&mut streams);
        assert!(waiting.is_empty() && !streams[keys[1]].is_waiting);
        waiting.add(keys[1], &mut streams[keys[1]]);
        assert_eq!(waiting.0, keys[1..]);
    }

    #[test]
    fn queues_of_usual_size_are_kept() {
        assert!(Queues::default().emptied().is_none());
        for (count, is_kept) in [(1, true), (4, true), (100, false)] {
            let mut queues = Queues::default();
            queues.pieces.extend((0..count).map(|_| Bytes::from_static(b"a")));
            let kept = queues.emptied();
            assert_eq!(kept.is_some(), is_kept, "{count}");
            assert!(kept.is_none_or(|kept| kept.pieces.is_empty()));
        }
    }

    #[test]
    fn small_pieces_join() {
        let mut stream = stream();
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
