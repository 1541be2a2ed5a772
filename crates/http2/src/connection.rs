//! The state of a connection as a whole: what it has agreed on, its streams, and what waits to be written. What frames say
//! is in [`crate::receive`] and [`crate::control`], what streams say in [`crate::send`].

use crate::field_list::FieldList;
use crate::frame::{self, Code};
use crate::hpack::Decoder;
use crate::resources::Resources;
use crate::stream::{Role, StreamError, StreamState, WriteWaitList};
use crate::useless_frames::UselessFrames;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::task::Waker;

/// What a client sends first (RFC 9113, 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that gather before they are written although more may come. With a frame and its head they still fit into the
/// buffers that are lent.
pub const FULL: usize = 40 * 1024;
/// The last streams that were reset from this side: for their peer may not know it yet.
const MAX_RESETS: usize = 256;
/// The number of the last stream of a connection.
const MAX_STREAM: u32 = (1 << 31) - 1;
/// Bytes that wait to be written beyond which a connection gets no further calls: more than bodies alone come to.
const MAX_BEHIND: usize = 3 * FULL;
/// Requests that come at once for which the room is kept.
const MAX_SPARE_ACCEPTED: usize = 128;

/// A request of a client.
pub struct Accepted {
    /// The key of its stream.
    pub key: usize,
    /// Its head.
    pub list: Box<FieldList>,
}

/// The two steps of taking no more streams (RFC 9113, 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoAwayState {
    /// Streams are taken.
    Not,
    /// The peer has been asked to open no more.
    Promised,
    /// The peer knows which stream was the last.
    Said,
}

/// A field list that has not come whole.
pub(crate) struct Block {
    pub stream: u32,
    pub ends: bool,
    pub bytes: Vec<u8>,
    pub frames: usize,
}

/// The settings that one side of a connection announces.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Data that the peer may send ahead on a stream.
    pub stream_window: u32,
    /// The same on all streams.
    pub connection_window: u32,
    /// Streams that the peer may have open.
    pub max_streams: u32,
    /// The largest head.
    pub max_head_bytes: usize,
}

/// The state of a connection.
pub struct ConnectionState<R> {
    pub(crate) side: Role,
    pub(crate) settings: Settings,
    pub(crate) resources: R,
    /// Of the client's preface.
    pub(crate) awaits_preface: bool,
    pub(crate) out: Vec<u8>,
    written: usize,
    /// Bytes that the peer's own frames have had this side write since `out` was last empty: its bodies are not among
    /// them, which wait for room.
    pub(crate) control_bytes: usize,
    driver: Waker,
    is_woken: bool,
    /// Nothing is read any more.
    pub(crate) is_over: bool,
    /// Why, if the peer is to blame and it was not counted yet.
    failed: Option<Code>,
    /// The peer's settings have come.
    pub(crate) is_greeted: bool,
    /// How many settings have come.
    pub(crate) settings_taken: usize,
    /// Frames that carried nothing.
    pub(crate) idle: UselessFrames,
    pub(crate) decoder: Decoder,
    pub(crate) block: Option<Block>,
    pub(crate) streams: Slab<StreamState>,
    pub(crate) keys: HashMap<u32, usize, foldhash::fast::RandomState>,
    pub(crate) resets: VecDeque<u32>,
    /// Resets of the peer that came too late to save any work and were not counted yet.
    pub(crate) late_resets: u32,
    pub(crate) accepted: Vec<Accepted>,
    /// The last stream that the peer has opened, or for a client that it itself has; and the last that was taken.
    pub(crate) highest: u32,
    pub(crate) last: u32,
    pub(crate) going: GoAwayState,
    pub(crate) window_out: i64,
    pub(crate) window_in: i64,
    pub(crate) unannounced: usize,
    pub(crate) waiting: WriteWaitList,
    /// What the peer has said.
    pub(crate) peer_window: i64,
    pub(crate) peer_max_frame: usize,
    pub(crate) peer_max_streams: usize,
    pub(crate) peer_is_going: bool,
    /// The table size of its HPACK decoder, and whether it must still be told that nothing need be kept.
    pub(crate) peer_table: u32,
    pub(crate) table_is_due: bool,
}

impl<R: Resources> ConnectionState<R> {
    /// A connection that begins now; its first words wait to be written.
    pub fn new(resources: R, side: Role, settings: Settings) -> Self {
        let mut state = Self {
            side,
            settings,
            awaits_preface: side == Role::Server,
            out: resources.acquire_output(),
            written: 0,
            control_bytes: 0,
            driver: Waker::noop().clone(),
            is_woken: false,
            is_over: false,
            failed: None,
            is_greeted: false,
            settings_taken: 0,
            idle: UselessFrames::since(resources.now()),
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
            resources,
        };
        state.greet();
        state
    }

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

    /// Which side this is.
    pub fn side(&self) -> Role {
        self.side
    }

    /// Whether nothing is read any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the peer's settings have come.
    pub fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// Whether the server has said how many calls it takes at once, and takes some. None at all is for a moment only (RFC
    /// 9113, 5.1.2).
    pub fn is_open_for_calls(&self) -> bool {
        self.is_greeted && self.peer_max_streams > 0
    }

    /// Whether a server takes one more stream beside those that are open.
    pub fn has_room_beside(&self, open: usize) -> bool {
        let is_open = !self.is_over && !self.peer_is_going && self.highest < MAX_STREAM;
        let keeps_up = self.pending_out() <= MAX_BEHIND;
        is_open && keeps_up && open < self.peer_max_streams
    }

    /// Whether all accepted streams are done, after the last one was announced to the peer.
    pub fn is_done(&self) -> bool {
        self.going == GoAwayState::Said && self.streams.is_empty()
    }

    /// Why the connection has failed, if the peer is to blame and this was not asked before.
    pub fn take_failure(&mut self) -> Option<Code> {
        self.failed.take()
    }

    /// The requests that have come, and how many streams were reset too late to spare any work.
    pub fn take_accepted(&mut self) -> (Vec<Accepted>, u32) {
        let late_resets = std::mem::take(&mut self.late_resets);
        (std::mem::take(&mut self.accepted), late_resets)
    }

    /// Takes back an emptied list of requests, for its room.
    pub fn give_accepted(&mut self, accepted: Vec<Accepted>) {
        if accepted.capacity() <= MAX_SPARE_ACCEPTED {
            self.accepted = accepted;
        }
    }

    /// Begins a turn of the task that drives the connection.
    #[inline]
    pub fn begin_turn(&mut self, driver: &Waker) {
        self.is_woken = false;
        self.driver.clone_from(driver);
    }

    /// Wakes the task that drives the connection.
    #[inline]
    pub fn driver(&self) -> &Waker {
        &self.driver
    }

    /// Bytes that wait to be written.
    #[inline]
    pub fn pending_out(&self) -> usize {
        self.out.len() - self.written
    }

    /// What waits to be written.
    #[inline]
    pub fn unwritten(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many of them were written.
    #[inline]
    pub fn note_written(&mut self, count: usize) {
        self.written += count;
    }

    /// All was written: the buffer goes back, and streams that wait for room are woken.
    pub fn end_writing(&mut self) {
        self.written = 0;
        self.control_bytes = 0;
        if self.out.capacity() > 0 {
            self.resources.release_output(std::mem::take(&mut self.out));
        }
        self.wake_waiting();
    }

    /// Whether the peer's own frames have had this side write more than it reads: then nothing more is done for it. Bodies
    /// are no reason: two sides that both wait for the other to read first would wait for ever (RFC 9113, 5.2.2).
    pub fn exceeds_control_limit(&self) -> bool {
        self.control_bytes > FULL
    }

    /// Wakes streams that wait with data, as many as can send some.
    pub(crate) fn wake_waiting(&mut self) {
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
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        if self.out.capacity() == 0 {
            self.out = self.resources.acquire_output();
        }
        &mut self.out
    }

    /// Where a frame of so many bytes is written to that the peer is the reason of.
    pub(crate) fn reserve_control(&mut self, bytes: usize) -> &mut Vec<u8> {
        self.control_bytes += bytes;
        self.out()
    }

    /// Whether bodies have to wait until more of what there is was written. Once control frames are too many, all of it goes
    /// out before they go on.
    pub(crate) fn is_full(&self) -> bool {
        self.pending_out() > FULL || self.control_bytes > FULL
    }

    /// Has the driver write what there is, once it is its turn.
    #[inline]
    pub fn wake_driver(&mut self) {
        if !self.is_woken {
            self.is_woken = true;
            self.driver.wake_by_ref();
        }
    }

    /// Ends the connection and sends the reason to the peer. Returns whether it was in use until now.
    pub fn fail(&mut self, code: Code) -> bool {
        let was_in_use = !self.is_over;
        if was_in_use {
            let last = match self.side {
                Role::Server => self.last,
                Role::Client => 0,
            };
            frame::push_go_away(self.out(), last, code);
            self.failed = Some(code);
        }
        self.lose();
        was_in_use
    }

    /// Nothing comes any more: wakes everything that waits.
    pub fn lose(&mut self) {
        self.is_over = true;
        self.waiting.wake(&mut self.streams, usize::MAX);
        for (_, stream) in &mut self.streams {
            stream.end(self.side, StreamError::Lost);
        }
        self.wake_driver();
    }

    /// A panic has left the state half changed: nothing is read any more, and the driver ends the connection.
    pub fn abandon(&mut self) {
        self.is_over = true;
        self.wake_driver();
    }

    /// Notes a stream that was reset from this side.
    pub(crate) fn note_reset(&mut self, id: u32) {
        if self.resets.len() == MAX_RESETS {
            self.resets.pop_front();
        }
        self.resets.push_back(id);
    }
}
