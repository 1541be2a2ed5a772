//! What streams have to say: heads, data, ends and resets, and how much more may come.

use crate::connection::{ConnectionState, FULL};
use crate::frame::{self, Code};
use crate::hpack;
use crate::resources::Resources;
use crate::stream::Role;
use crate::stream::{Receiving, StreamError};
use slab::Slab;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

/// Says that the peer's decoder need keep nothing (RFC 7541, 6.3): nothing that is written here depends on it.
const KEEP_NOTHING: u8 = 0x20;
/// Streams whose room a connection without any keeps: as many as clients open at once.
const MAX_SPARE_STREAMS: usize = 128;

/// A request's head for an upstream.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'r> {
    /// `:method`
    pub method: &'r [u8],
    /// `:path`
    pub target: &'r [u8],
    /// `:scheme`
    pub scheme: &'static str,
    /// `:authority`
    pub authority: &'r [u8],
    /// The other fields, as header lines.
    pub lines: &'r [u8],
}

impl<R: Resources> ConnectionState<R> {
    /// Opens a stream with a request's head; gives its key. `is_whole`: there is no body.
    pub fn send_request(&mut self, request: RequestHead<'_>, is_whole: bool) -> io::Result<usize> {
        if self.is_over || self.peer_is_going {
            return Err(StreamError::NotProcessed.error());
        }
        // All bytes are looked at, so that it takes no branch for each.
        let is_bad = |byte: &u8| *byte <= 0x20 || *byte == 0x7f;
        let is_good = |part: &[u8]| !part.iter().fold(false, |any, byte| any | is_bad(byte));
        let parts = [request.method, request.target, request.authority];
        if parts.iter().any(|part| part.is_empty() || !is_good(part)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let id = if self.highest == 0 { 1 } else { self.highest + 2 };
        self.highest = id;
        let key = self.open(id, Receiving::Head, None);
        let stream = &mut self.streams[key];
        stream.is_head = request.method == b"HEAD";
        stream.is_sent = is_whole;
        let (from, out) = self.begin_block();
        match request.method {
            b"GET" => hpack::push_indexed(2, out),
            b"POST" => hpack::push_indexed(3, out),
            method => hpack::push_field(2, method, out),
        }
        hpack::push_indexed(if request.scheme == "https" { 7 } else { 6 }, out);
        hpack::push_field(1, request.authority, out);
        match request.target {
            b"/" => hpack::push_indexed(4, out),
            target => hpack::push_field(4, target, out),
        }
        hpack::push_lines(request.lines, out);
        self.end_block(from, is_whole, id);
        self.wake_driver();
        Ok(key)
    }

    /// Sends a response's head; `is_whole`: nothing follows it.
    pub fn send_head(&mut self, key: usize, status: u16, lines: &[u8], is_whole: bool) -> io::Result<()> {
        let id = self.sendable(key)?;
        let (from, out) = self.begin_block();
        hpack::push_status(status, out);
        hpack::push_lines(lines, out);
        self.end_block(from, is_whole, id);
        self.note_sent(key, is_whole);
        Ok(())
    }

    /// Sends trailers, which end the direction.
    pub fn send_trailers(&mut self, key: usize, lines: &[u8]) -> io::Result<()> {
        let id = self.sendable(key)?;
        let (from, out) = self.begin_block();
        hpack::push_lines(lines, out);
        self.end_block(from, true, id);
        self.note_sent(key, true);
        Ok(())
    }

    /// Begins a field list. Returns the offset at which it begins, after the room for a frame's head, and the buffer.
    fn begin_block(&mut self) -> (usize, &mut Vec<u8>) {
        let is_due = std::mem::take(&mut self.table_is_due);
        let out = self.out();
        out.extend_from_slice(&[0; frame::HEAD_BYTES]);
        let from = out.len();
        if is_due {
            out.push(KEEP_NOTHING);
        }
        (from, out)
    }

    /// Ends a field list that begins there.
    fn end_block(&mut self, from: usize, ends_stream: bool, id: u32) {
        hpack::end_frame(from, ends(ends_stream), id, self.peer_max_frame, &mut self.out);
        // A response is output that the client has requested.
        if self.side == Role::Server {
            self.control_bytes += frame::HEAD_BYTES + self.out.len() - from;
        }
    }

    /// Ends the direction.
    pub fn send_end(&mut self, key: usize) -> io::Result<()> {
        let id = self.sendable(key)?;
        frame::push_head(self.out(), 0, frame::DATA, frame::END_STREAM, id);
        self.note_sent(key, true);
        Ok(())
    }

    /// Sends as much data as the peer has room for; `is_last`: nothing follows once all of it was taken. If bodies have to
    /// wait for what was gathered, `flush` is to write of that what it can.
    pub fn poll_send(
        &mut self,
        key: usize,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
        is_last: bool,
        flush: impl FnOnce(&mut Self),
    ) -> Poll<io::Result<usize>> {
        if let Err(error) = self.sendable(key) {
            return Poll::Ready(Err(error));
        }
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if total == 0 {
            return Poll::Ready(if is_last {
                self.send_end(key).map(|()| 0)
            } else {
                Ok(0)
            });
        }
        if self.is_full() {
            flush(self);
        }
        let room = self.streams[key].window_out.min(self.window_out).max(0) as usize;
        let is_full = self.is_full();
        if room == 0 || is_full {
            let stream = &mut self.streams[key];
            stream.wait(context);
            if is_full || stream.window_out > 0 {
                self.waiting.add(key, stream, total);
            }
            return Poll::Pending;
        }
        let count = total.min(room).min(FULL);
        self.push_data(key, parts, count, is_last && count == total);
        Poll::Ready(Ok(count))
    }

    fn push_data(&mut self, key: usize, parts: &[IoSlice<'_>], count: usize, is_last: bool) {
        let id = self.streams[key].id;
        let max_frame = self.peer_max_frame;
        let out = self.out();
        let mut left = count;
        let mut parts = parts.iter().map(|part| &part[..]);
        let mut part = parts.next().unwrap_or_default();
        while left > 0 {
            let length = left.min(max_frame);
            left -= length;
            let flags = ends(is_last && left == 0);
            frame::push_head(out, length, frame::DATA, flags, id);
            let mut missing = length;
            while missing > 0 {
                if part.is_empty() {
                    part = parts.next().unwrap_or_default();
                    continue;
                }
                let (now, behind) = part.split_at(missing.min(part.len()));
                out.extend_from_slice(now);
                missing -= now.len();
                part = behind;
            }
        }
        self.window_out -= count as i64;
        self.idle.note_sent(count);
        let stream = &mut self.streams[key];
        stream.window_out -= count as i64;
        stream.wanted = 0;
        self.note_sent(key, is_last);
    }

    /// The number of a stream on which something can be sent.
    fn sendable(&self, key: usize) -> io::Result<u32> {
        let stream = &self.streams[key];
        match stream.fault {
            Some(fault) => Err(fault.error()),
            None if stream.is_sent => Err(io::ErrorKind::BrokenPipe.into()),
            None => Ok(stream.id),
        }
    }

    fn note_sent(&mut self, key: usize, is_last: bool) {
        self.streams[key].is_sent |= is_last;
        self.wake_driver();
    }

    /// Ends a stream both ways.
    pub fn reset(&mut self, key: usize, code: Code) {
        let stream = &self.streams[key];
        let is_whole = stream.is_sent && stream.receiving == Receiving::Ended;
        if stream.fault.is_none() && !is_whole {
            self.break_stream(key, code);
        }
    }

    /// So many bytes of a stream were read.
    pub fn note_read(&mut self, key: usize, count: usize) {
        let stream = &mut self.streams[key];
        stream.unread = stream.unread.saturating_sub(count);
        self.allow(count);
        self.allow_stream(key, count);
    }

    /// Lets the peer send so many bytes more on the connection. It does not announce little at a time: what is not announced
    /// is missing if unread bodies have taken the rest.
    pub fn allow(&mut self, count: usize) {
        self.unannounced += count;
        if self.unannounced >= self.settings.stream_window as usize && !self.is_over {
            let more = std::mem::take(&mut self.unannounced);
            self.window_in += more as i64;
            let out = self.reserve_control(frame::NUMBER_BYTES);
            frame::push_number(out, frame::WINDOW_UPDATE, 0, more as u32);
            self.wake_driver();
        }
    }

    /// Lets the peer send so many more bytes on a stream, if it has more to send.
    pub fn allow_stream(&mut self, key: usize, count: usize) {
        let half = self.settings.stream_window as usize / 2;
        let stream = &mut self.streams[key];
        stream.unannounced += count;
        if stream.unannounced < half || stream.receiving == Receiving::Ended || stream.fault.is_some() {
            return;
        }
        let (id, more) = (stream.id, std::mem::take(&mut stream.unannounced));
        stream.window_in += more as i64;
        let out = self.reserve_control(frame::NUMBER_BYTES);
        frame::push_number(out, frame::WINDOW_UPDATE, id, more as u32);
        self.wake_driver();
    }

    /// No one reads or writes a stream any more.
    pub fn forget(&mut self, key: usize) {
        let stream = &self.streams[key];
        let (id, unread) = (stream.id, stream.unread);
        let is_answered = self.side == Role::Server && stream.is_sent;
        // An answer that did not need all of the request is whole all the same.
        let code = match is_answered && stream.receiving == Receiving::Body {
            true => Code::NO_ERROR,
            false => Code::CANCEL,
        };
        self.reset(key, code);
        self.allow(unread);
        let stream = self.streams.remove(key);
        self.waiting.remove(key, &stream);
        // It may have been woken, and leaves its share to the others.
        self.wake_waiting();
        self.keys.remove(&id);
        if let Some(mut queues) = stream.waiting
            && queues.empty()
        {
            self.resources.release_buffers(queues);
        }
        if self.streams.is_empty() && self.streams.capacity() > MAX_SPARE_STREAMS {
            self.streams = Slab::new();
            self.keys.shrink_to(MAX_SPARE_STREAMS);
        }
    }
}

fn ends(is_last: bool) -> u8 {
    match is_last {
        true => frame::END_STREAM,
        false => 0,
    }
}
