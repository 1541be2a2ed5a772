//! An HTTP/2 connection: the state of its streams, what has come of frames and what waits to be written.
//!
//! One task drives a connection: it reads frames until there are no more, and writes what has gathered in one go, that of
//! many streams together. The calls on its streams run in tasks of their own and share the state with it; nobody holds it
//! over a wait. What frames say is in [`super::receive`], what streams say in [`super::send`].

use super::frame::{self, Code};
use super::hpack::Decoder;
use super::idle::IdleFrames;
use super::state::{StreamFault, StreamState, WriteWaitList};
use crate::buffer::Inbox;
use crate::multiplex::field_list::FieldList;
use crate::transport::{ReadHalf, WriteHalf};
use crate::worker::Worker;
use slab::Slab;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client sends first (RFC 9113, 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that gather before they are written although more may come. With a frame and its head they still fit into the
/// buffers that are lent.
pub const FULL: usize = 40 * 1024;
/// Most bytes that are read before a frame is whole.
const MAX_READ: usize = 2 * frame::MAX_PAYLOAD;
/// The last streams that were reset from this side: for their peer may not know it yet.
const MAX_RESETS: usize = 256;

/// A connection, which its driver and its streams share.
pub struct Connection(RefCell<State>);

/// Which side of a connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Server,
    Client,
}

/// A request of a client.
pub struct Accepted {
    pub key: usize,
    pub list: Box<FieldList>,
}

/// The two steps of taking no more streams (RFC 9113, 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoAwayState {
    Not,
    Promised,
    Said,
}

/// A field list that has not come whole.
pub struct Block {
    pub stream: u32,
    pub ends: bool,
    pub bytes: Vec<u8>,
    pub frames: usize,
}

/// What one side of a connection tells of itself.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub stream_window: u32,
    pub connection_window: u32,
    pub max_streams: u32,
    pub max_head_bytes: usize,
}

/// The state of a connection.
pub struct State {
    pub side: Role,
    pub settings: Settings,
    pub worker: Rc<Worker>,
    read: ReadHalf,
    write: WriteHalf,
    inbox: Inbox,
    /// Of the client's preface.
    pub awaits_preface: bool,
    pub out: Vec<u8>,
    written: usize,
    /// Bytes that the peer's own frames have had this side write since `out` was last empty: its bodies are not among
    /// them, which wait for room.
    pub owed: usize,
    driver: Waker,
    is_woken: bool,
    /// Nothing is read any more.
    pub is_over: bool,
    /// Why, where the peer is to blame and nobody has counted it yet.
    pub failed: Option<Code>,
    /// The peer's settings have come.
    pub is_greeted: bool,
    /// How many settings have come.
    pub settings_taken: usize,
    /// Frames that carried nothing.
    pub idle: IdleFrames,
    pub decoder: Decoder,
    pub block: Option<Block>,
    pub streams: Slab<StreamState>,
    pub keys: HashMap<u32, usize, foldhash::fast::RandomState>,
    pub resets: VecDeque<u32>,
    /// Resets of the peer that came too late to spare any work, and nobody has counted yet.
    pub late_resets: u32,
    pub accepted: Vec<Accepted>,
    /// The last stream that the peer has opened, or for a client that it itself has; and the last that was taken.
    pub highest: u32,
    pub last: u32,
    pub going: GoAwayState,
    pub window_out: i64,
    pub window_in: i64,
    pub unannounced: usize,
    pub waiting: WriteWaitList,
    /// What the peer has said.
    pub peer_window: i64,
    pub peer_max_frame: usize,
    pub peer_max_streams: usize,
    pub peer_is_going: bool,
    /// What its HPACK decoder may keep, and whether it is still to be told that nothing need be.
    pub peer_table: u32,
    pub table_is_due: bool,
}

/// Ends a connection whose state a panic has left half changed: what is written next may be no frame.
struct EndOnPanic<'s>(&'s mut State);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        self.0.is_over = true;
        self.0.wake_driver();
    }
}

/// Ends the streams of a connection whose driver panics: their calls would wait for a task that is gone.
pub struct LoseOnPanic(pub Rc<Connection>);

impl Drop for LoseOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.with(State::lose);
        }
    }
}

impl Connection {
    /// A connection of these halves; what was read of it already is in `inbox`.
    pub fn new(
        worker: &Rc<Worker>,
        (read, write): (ReadHalf, WriteHalf),
        inbox: Inbox,
        side: Role,
        settings: Settings,
    ) -> Rc<Self> {
        let mut state = State {
            side,
            settings,
            worker: Rc::clone(worker),
            read,
            write,
            inbox,
            awaits_preface: side == Role::Server,
            out: worker.buffers.take_output(),
            written: 0,
            owed: 0,
            driver: Waker::noop().clone(),
            is_woken: false,
            is_over: false,
            failed: None,
            is_greeted: false,
            settings_taken: 0,
            idle: IdleFrames::since(Instant::now()),
            decoder: Decoder::default(),
            block: None,
            streams: Slab::new(),
            keys: HashMap::default(),
            resets: VecDeque::new(),
            late_resets: 0,
            accepted: Vec::new(),
            highest: 0,
            last: 0,
            going: GoAwayState::Not,
            window_out: i64::from(frame::USUAL_WINDOW),
            window_in: i64::from(settings.connection_window),
            unannounced: 0,
            waiting: WriteWaitList::default(),
            peer_window: i64::from(frame::USUAL_WINDOW),
            peer_max_frame: frame::MAX_PAYLOAD,
            peer_max_streams: usize::MAX,
            peer_is_going: false,
            peer_table: frame::USUAL_TABLE,
            table_is_due: false,
        };
        state.greet();
        Rc::new(Self(RefCell::new(state)))
    }

    /// Does something with the state.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.0.borrow_mut();
        let guard = EndOnPanic(&mut state);
        let result = work(guard.0);
        // Costs nothing but where a panic unwinds.
        std::mem::forget(guard);
        result
    }

    /// Takes in what has come. Ready once the connection is over; it may still have to say why.
    pub fn poll_in(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll_in(context)
    }

    /// Writes what has gathered.
    pub fn poll_out(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_out(context)
    }

    /// Writes what has gathered, and says that there will be no more.
    pub fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.borrow_mut();
        ready!(state.poll_out(context))?;
        Pin::new(&mut state.write).poll_shutdown(context)
    }

    /// Reads and forgets; gives the number of bytes, 0 at the end of the stream.
    pub fn poll_discard(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut scratch = [0; 4096];
        let mut space = ReadBuf::new(&mut scratch);
        ready!(Pin::new(&mut self.0.borrow_mut().read).poll_read(context, &mut space))?;
        Poll::Ready(Ok(space.filled().len()))
    }
}

impl State {
    fn greet(&mut self) {
        let mut settings = vec![
            (frame::INITIAL_WINDOW_SIZE, self.settings.stream_window),
            (
                frame::MAX_HEADER_LIST_SIZE,
                u32::try_from(self.settings.max_head_bytes).unwrap_or(u32::MAX),
            ),
        ];
        match self.side {
            Role::Server => {
                settings.push((frame::MAX_CONCURRENT_STREAMS, self.settings.max_streams));
                settings.push((frame::ENABLE_CONNECT_PROTOCOL, 1));
            }
            Role::Client => {
                self.out.extend_from_slice(PREFACE);
                settings.push((frame::ENABLE_PUSH, 0));
            }
        }
        frame::push_settings(&mut self.out, &settings);
        if let Some(more) = self.settings.connection_window.checked_sub(frame::USUAL_WINDOW) {
            frame::push_number(&mut self.out, frame::WINDOW_UPDATE, 0, more);
        }
    }

    fn poll_in(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.is_woken = false;
        self.driver.clone_from(context.waker());
        while !self.is_over {
            let mut inbox = std::mem::take(&mut self.inbox);
            let taken = self.take_frames(&mut inbox);
            self.inbox = inbox;
            if let Err(code) = taken {
                self.fail(code);
                break;
            }
            // Who does not read what it asks for gets nothing more done. Bodies are no reason: two sides that both wait
            // for the other to read first would wait for ever (RFC 9113, 5.2.2).
            if self.pending_out() > FULL {
                match self.poll_out(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => break,
                    Poll::Pending if self.owed > FULL => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            let worker = Rc::clone(&self.worker);
            match self
                .inbox
                .poll_fill(&mut self.read, context, &worker.buffers, MAX_READ)
            {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) if count > 0 => {
                    if count >= crate::buffer::BUFFER_BYTES {
                        self.inbox.enlarge(&worker.buffers);
                    }
                }
                Poll::Ready(_) => break,
            }
        }
        self.lose();
        Poll::Ready(())
    }

    /// Bytes that wait to be written.
    pub fn pending_out(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes what waits as far as it can be, whoever asks; the driver sees to the rest.
    pub fn flush(&mut self) {
        let driver = self.driver.clone();
        // What is wrong the driver finds out as well.
        let _written = self.poll_out(&mut Context::from_waker(&driver));
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let bytes = &self.out[self.written..];
            match ready!(Pin::new(&mut self.write).poll_write(context, bytes)) {
                Ok(count) if count > 0 => self.written += count,
                failed => {
                    self.lose();
                    let error = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    return Poll::Ready(Err(error));
                }
            }
        }
        self.written = 0;
        self.owed = 0;
        if self.out.capacity() > 0 {
            self.worker.buffers.give_output(std::mem::take(&mut self.out));
        }
        self.wake_waiting();
        Poll::Ready(Ok(()))
    }

    /// Wakes streams that wait with data, as many as can send some.
    pub fn wake_waiting(&mut self) {
        if self.waiting.is_empty() || self.is_full() {
            return;
        }
        let window = usize::try_from(self.window_out).unwrap_or(0);
        let room = window.min(1 + FULL - self.pending_out());
        self.waiting.wake(&mut self.streams, room);
        if room > 0 && !self.waiting.is_empty() {
            // Those that were woken may not want to send any more: then it is the turn of the next.
            self.wake_driver();
        }
    }

    /// Where frames are written to.
    pub fn out(&mut self) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = self.worker.buffers.take_output();
        }
        &mut self.out
    }

    /// Where a frame of so many bytes is written to that the peer is the reason of.
    pub fn owe(&mut self, bytes: usize) -> &mut Vec<u8> {
        self.owed += bytes;
        self.out()
    }

    /// Whether bodies have to wait until more of what there is was written. Once what is owed is too much, all of it goes
    /// out before they go on.
    pub fn is_full(&self) -> bool {
        self.pending_out() > FULL || self.owed > FULL
    }

    /// Has the driver write what there is, once it is its turn.
    pub fn wake_driver(&mut self) {
        if !self.is_woken {
            self.is_woken = true;
            self.driver.wake_by_ref();
        }
    }

    /// The connection is of no further use, and the peer is told why.
    pub fn fail(&mut self, code: Code) {
        if !self.is_over {
            let last = match self.side {
                Role::Server => self.last,
                Role::Client => 0,
            };
            frame::push_go_away(self.out(), last, code);
            self.failed = Some(code);
            tracing::debug!(?code, side = ?self.side, "an HTTP/2 connection has failed");
        }
        self.lose();
    }

    /// Nothing comes any more: whoever waits is told.
    pub fn lose(&mut self) {
        self.is_over = true;
        let worker = Rc::clone(&self.worker);
        self.inbox.consume(self.inbox.bytes().len());
        self.inbox.release(&worker.buffers);
        self.waiting.wake(&mut self.streams, usize::MAX);
        for (_, stream) in &mut self.streams {
            stream.end(self.side, StreamFault::Lost);
        }
        self.wake_driver();
    }

    /// Notes a stream that was reset from this side.
    pub fn note_reset(&mut self, id: u32) {
        if self.resets.len() == MAX_RESETS {
            self.resets.pop_front();
        }
        self.resets.push_back(id);
    }
}
