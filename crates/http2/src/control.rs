//! What the frames of the peer say about the connection as a whole: settings, windows, pings, farewells.

use crate::connection::{ConnectionState, GoAwayState};
use crate::frame::{self, Code, Head};
use crate::resources::Resources;
use crate::stream::Role;
use crate::stream::StreamError;

/// What the PING says behind the promise to take no more streams.
const PROMISED: &[u8; 8] = b"promised";
/// Most settings, and frames of them, that a peer may send over the life of a connection: some ten are usual.
const MAX_SETTINGS: usize = 4096;

impl<R: Resources> ConnectionState<R> {
    pub(crate) fn take_settings(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        if head.stream != 0 {
            return Err(Code::PROTOCOL_ERROR);
        }
        if head.has(frame::ACK) {
            return match payload.is_empty() {
                true => self.note_idle(),
                false => Err(Code::FRAME_SIZE_ERROR),
            };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        // Each may concern all streams.
        self.note_idle()?;
        self.settings_taken += settings.len() + 1;
        if self.settings_taken > MAX_SETTINGS {
            return Err(Code::ENHANCE_YOUR_CALM);
        }
        for [name @ .., a, b, c, d] in settings {
            self.take_setting(u16::from_be_bytes(*name), u32::from_be_bytes([*a, *b, *c, *d]))?;
        }
        self.is_greeted = true;
        frame::push_head(
            self.reserve_control(frame::HEAD_BYTES),
            0,
            frame::SETTINGS,
            frame::ACK,
            0,
        );
        self.wake_driver();
        Ok(())
    }

    fn take_setting(&mut self, name: u16, value: u32) -> Result<(), Code> {
        match name {
            frame::HEADER_TABLE_SIZE => {
                // The peer may insist on hearing so (RFC 9113, 4.3.1).
                self.table_is_due |= value < self.peer_table;
                self.peer_table = value;
            }
            frame::ENABLE_PUSH if value > 1 => return Err(Code::PROTOCOL_ERROR),
            frame::ENABLE_CONNECT_PROTOCOL if value > 1 => return Err(Code::PROTOCOL_ERROR),
            frame::MAX_CONCURRENT_STREAMS => self.peer_max_streams = value as usize,
            frame::MAX_FRAME_SIZE => match value {
                0x4000..=0x00ff_ffff => self.peer_max_frame = (value as usize).min(frame::MAX_PAYLOAD),
                _ => return Err(Code::PROTOCOL_ERROR),
            },
            frame::INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                if window > frame::MAX_WINDOW {
                    return Err(Code::FLOW_CONTROL_ERROR);
                }
                let more = window - self.peer_window;
                self.peer_window = window;
                for (_, stream) in &mut self.streams {
                    stream.window_out += more;
                    if stream.window_out > frame::MAX_WINDOW {
                        return Err(Code::FLOW_CONTROL_ERROR);
                    }
                    if more > 0 {
                        stream.wake();
                    }
                }
            }
            // What it does not want to read of heads it can refuse.
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn take_ping(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        if head.stream != 0 {
            return Err(Code::PROTOCOL_ERROR);
        }
        if payload.len() != 8 {
            return Err(Code::FRAME_SIZE_ERROR);
        }
        self.note_idle()?;
        if head.has(frame::ACK) {
            if self.going == GoAwayState::Promised && payload == PROMISED {
                self.go_away();
            }
            return Ok(());
        }
        let out = self.reserve_control(frame::HEAD_BYTES + payload.len());
        frame::push_head(out, 8, frame::PING, frame::ACK, 0);
        out.extend_from_slice(payload);
        self.wake_driver();
        Ok(())
    }

    pub(crate) fn take_go_away(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        if head.stream != 0 {
            return Err(Code::PROTOCOL_ERROR);
        }
        let last = frame::number_at(payload, 0).filter(|_| payload.len() >= 8);
        let last = last.ok_or(Code::FRAME_SIZE_ERROR)? & 0x7fff_ffff;
        self.note_idle()?;
        self.peer_is_going = true;
        if self.side == Role::Client {
            for (_, stream) in &mut self.streams {
                if stream.id > last {
                    stream.end(self.side, StreamError::NotProcessed);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn take_window_update(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let more = frame::number_at(payload, 0).filter(|_| payload.len() == 4);
        let more = i64::from(more.ok_or(Code::FRAME_SIZE_ERROR)? & 0x7fff_ffff);
        if head.stream == 0 {
            self.note_room(self.window_out)?;
            self.window_out += more;
            if more == 0 {
                return Err(Code::PROTOCOL_ERROR);
            }
            if self.window_out > frame::MAX_WINDOW {
                return Err(Code::FLOW_CONTROL_ERROR);
            }
            self.wake_waiting();
            return Ok(());
        }
        if head.stream > self.highest || head.stream.is_multiple_of(2) {
            return Err(Code::PROTOCOL_ERROR);
        }
        let Some(&key) = self.keys.get(&head.stream) else {
            return self.note_idle();
        };
        self.note_room(self.streams[key].window_out)?;
        let stream = &mut self.streams[key];
        stream.window_out += more;
        if more == 0 {
            self.break_stream(key, Code::PROTOCOL_ERROR);
        } else if stream.window_out > frame::MAX_WINDOW {
            self.break_stream(key, Code::FLOW_CONTROL_ERROR);
        } else if !stream.is_waiting {
            // One that waits for the connection is woken once that has room.
            stream.wake();
        }
        Ok(())
    }

    /// Records that the peer gives more window than it gave already; it counts as idle if there was plenty.
    fn note_room(&mut self, given: i64) -> Result<(), Code> {
        match given > i64::from(frame::USUAL_WINDOW) {
            true => self.note_idle(),
            false => Ok(()),
        }
    }

    /// Promises that no more streams are taken; the peer shows that it knows by answering a ping.
    pub fn start_graceful_shutdown(&mut self) {
        self.going = GoAwayState::Promised;
        let out = self.out();
        frame::push_go_away(out, frame::MAX_WINDOW as u32, Code::NO_ERROR);
        frame::push_head(out, 8, frame::PING, 0, 0);
        out.extend_from_slice(PROMISED);
        self.wake_driver();
    }

    /// Says which stream is the last.
    pub fn go_away(&mut self) {
        if self.going != GoAwayState::Said {
            self.going = GoAwayState::Said;
            let last = self.last;
            frame::push_go_away(self.out(), last, Code::NO_ERROR);
            self.wake_driver();
        }
    }
}
