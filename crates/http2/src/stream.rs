//! One stream, as its connection knows it, and the streams that wait for room to write.

use crate::buffers::StreamBuffers;
use crate::frame::Code;
use crate::resources::Resources;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::task::{Context, Waker};

/// Which side of a connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Clients connect to it.
    Server,
    /// It connects to a server.
    Client,
}

/// Why a stream has ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamError {
    /// The peer has reset it.
    Reset(Code),
    /// The peer has not looked at it.
    NotProcessed,
    /// The connection is lost.
    Lost,
    /// What the peer sent makes no message, or it was reset from this side.
    Invalid,
}

impl StreamError {
    /// What it means for a call. `ConnectionRefused`: the peer has not looked at the request.
    pub fn error(self) -> io::Error {
        match self {
            Self::Reset(Code::REFUSED_STREAM) | Self::NotProcessed => io::ErrorKind::ConnectionRefused,
            Self::Reset(_) => io::ErrorKind::ConnectionReset,
            Self::Lost => io::ErrorKind::BrokenPipe,
            Self::Invalid => io::ErrorKind::InvalidData,
        }
        .into()
    }
}

/// How far what the peer sends on a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// The final head is to come.
    Head,
    Body,
    Ended,
}

/// One stream.
pub(crate) struct StreamState {
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
    pub fault: Option<StreamError>,
    /// The rest of a body with an announced length.
    pub left: Option<u64>,
    /// The answer to a HEAD states a length of what does not come.
    pub is_head: bool,
    /// It is in [`WriteWaitList`] for so many bytes; 0 if it has got them since.
    pub is_waiting: bool,
    pub wanted: usize,
    /// None as long as nothing has come.
    pub waiting: Option<Box<StreamBuffers>>,
    /// Header lines.
    pub trailers: Option<Vec<u8>>,
}

/// Streams that wait for the connection's window, or for room in what it writes, in the order in which they get some.
/// Each is there once, however often it has been woken for nothing.
#[derive(Default)]
pub(crate) struct WriteWaitList(VecDeque<usize>);

impl WriteWaitList {
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a stream that has so many bytes to send.
    pub fn add(&mut self, key: usize, stream: &mut StreamState, wanted: usize) {
        stream.wanted = wanted;
        if !std::mem::replace(&mut stream.is_waiting, true) {
            self.0.push_back(key);
        }
    }

    /// Takes a stream out that is over.
    pub fn remove(&mut self, key: usize, stream: &StreamState) {
        if stream.is_waiting {
            self.0.retain(|it| *it != key);
        }
    }

    /// Wakes as many as there is room for, and lets go of them; the others could only wait again.
    pub fn wake(&mut self, streams: &mut Slab<StreamState>, mut room: usize) {
        while room > 0
            && let Some(key) = self.0.pop_front()
        {
            let Some(stream) = streams.get_mut(key) else {
                continue;
            };
            stream.is_waiting = false;
            if stream.wanted > 0 {
                let window = usize::try_from(stream.window_out).unwrap_or(0);
                room -= stream.wanted.min(window).min(room);
                stream.wake();
            }
        }
    }
}

impl StreamState {
    /// The peer, or the connection, has ended it before its time. A response that arrived completely stays valid: the
    /// upstream may not need the rest of the request.
    pub fn end(&mut self, side: Role, fault: StreamError) {
        if side == Role::Client && self.receiving == Receiving::Ended {
            self.is_sent = true;
        } else {
            self.fault.get_or_insert(fault);
        }
        self.wake();
    }

    /// Wakes the tasks that wait for it.
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

    /// What waits to be read, whether there is any yet or not.
    pub fn queues(&mut self, resources: &impl Resources) -> &mut StreamBuffers {
        self.waiting.get_or_insert_with(|| resources.acquire_buffers())
    }

    /// Whether data waits to be read.
    pub fn has_data(&self) -> bool {
        self.waiting.as_ref().is_some_and(|queues| queues.has_data())
    }

    /// Adds to the unread data.
    pub fn gather(&mut self, data: &[u8], resources: &impl Resources) {
        self.unread += data.len();
        self.queues(resources).push(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::task::Wake;

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
            wanted: 0,
            waiting: None,
            trailers: None,
        }
    }

    /// A client that gives each stream a byte more, and the connection none, wakes them for nothing.
    #[test]
    fn streams_wait_once() {
        let mut streams = Slab::new();
        let keys = [streams.insert(stream()), streams.insert(stream())];
        let mut waiting = WriteWaitList::default();
        for _ in 0..1000 {
            for key in keys {
                streams[key].wake();
                waiting.add(key, &mut streams[key], 1);
            }
        }
        assert_eq!(waiting.0, keys);
        // Another stream gets the place of one that is over.
        let over = streams.remove(keys[0]);
        waiting.remove(keys[0], &over);
        assert_eq!(streams.insert(stream()), keys[0]);
        assert_eq!(waiting.0, [keys[1]]);
        waiting.wake(&mut streams, 1);
        assert!(waiting.is_empty() && !streams[keys[1]].is_waiting);
        waiting.add(keys[1], &mut streams[keys[1]], 1);
        assert_eq!(waiting.0, [keys[1]]);
    }

    /// A client that gives the connection a byte more gets a byte of one stream, and not all of them woken.
    #[test]
    fn no_more_wake_than_there_is_room_for() {
        let wakes = || Arc::new(WakeCounter::default());
        let mut streams = Slab::new();
        let mut waiting = WriteWaitList::default();
        // What each wants, and has a window for.
        let all: Vec<_> = [(10, 100), (10, 4), (10, 0), (0, 100), (10, 100), (10, 100)]
            .map(|(wanted, window_out)| {
                let wakes = wakes();
                let key = streams.insert(StreamState {
                    window_out,
                    waker: Some(Waker::from(Arc::clone(&wakes))),
                    ..stream()
                });
                waiting.add(key, &mut streams[key], wanted);
                wakes
            })
            .into();
        let woken = || -> Vec<usize> { all.iter().map(|it| it.0.load(Relaxed)).collect() };
        waiting.wake(&mut streams, 0);
        assert_eq!(woken(), [0; 6]);
        for (room, wanted) in [
            (1, [1, 0, 0, 0, 0, 0]),
            // The second takes 4 of these, the third has no window of its own, the fourth has got what it wanted.
            (5, [1, 1, 1, 0, 1, 0]),
            (1000, [1, 1, 1, 0, 1, 1]),
        ] {
            waiting.wake(&mut streams, room);
            assert_eq!(woken(), wanted, "{room}");
        }
        assert!(waiting.is_empty());
    }

    #[derive(Default)]
    struct WakeCounter(AtomicUsize);

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
