//! What the frames of the peer say, taken over into the connection's state. What is sent stands beside.

use crate::connection::{Accepted, Block, ConnectionState, GoAwayState, PREFACE};
use crate::field_list::FieldList;
use crate::fields::trailer_lines;
use crate::frame::{self, Code, Head};
use crate::head;
use crate::resources::Resources;
use crate::stream::Role;
use crate::stream::{Receiving, StreamError, StreamState};

/// Most CONTINUATION frames of one field list.
const MAX_CONTINUATIONS: usize = 32;
/// Most unread interim heads of a response.
const MAX_HEADS: usize = 16;

impl<R: Resources> ConnectionState<R> {
    /// Takes in all frames that have come whole; gives the number of bytes that they have taken.
    ///
    /// # Errors
    /// The code with which the connection is to end.
    pub fn take_frames(&mut self, bytes: &[u8]) -> Result<usize, Code> {
        let mut rest = bytes;
        if self.awaits_preface {
            let count = rest.len().min(PREFACE.len());
            if rest[..count] != PREFACE[..count] {
                return Err(Code::PROTOCOL_ERROR);
            }
            if count < PREFACE.len() {
                return Ok(0);
            }
            rest = &rest[count..];
            self.awaits_preface = false;
        }
        while let Some(head) = Head::read(rest) {
            if head.length > frame::MAX_PAYLOAD {
                return Err(Code::FRAME_SIZE_ERROR);
            }
            let whole = frame::HEAD_BYTES + head.length;
            let Some(payload) = rest.get(frame::HEAD_BYTES..whole) else {
                break;
            };
            self.take_frame(head, payload)?;
            rest = &rest[whole..];
        }
        Ok(bytes.len() - rest.len())
    }

    fn take_frame(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let goes_on = |block: &Block| head.kind == frame::CONTINUATION && head.stream == block.stream;
        if self.block.as_ref().is_some_and(|block| !goes_on(block)) {
            return Err(Code::PROTOCOL_ERROR);
        }
        if !self.is_greeted && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
            return Err(Code::PROTOCOL_ERROR);
        }
        match head.kind {
            frame::DATA => self.take_data(head, payload),
            frame::HEADERS => self.take_headers(head, payload),
            frame::CONTINUATION => self.take_continuation(head, payload),
            frame::PRIORITY => self.take_priority(head, payload),
            frame::RST_STREAM => self.take_reset(head, payload),
            frame::SETTINGS => self.take_settings(head, payload),
            frame::PING => self.take_ping(head, payload),
            frame::GOAWAY => self.take_go_away(head, payload),
            frame::WINDOW_UPDATE => self.take_window_update(head, payload),
            frame::PUSH_PROMISE => Err(Code::PROTOCOL_ERROR),
            _ => self.note_idle(),
        }
    }

    /// Notes a frame that carries nothing.
    pub(crate) fn note_idle(&mut self) -> Result<(), Code> {
        let resources = &self.resources;
        self.idle.note(|| resources.now())
    }

    /// Whether no stream of this number was ever opened.
    fn is_idle(&self, id: u32) -> bool {
        id > self.highest || id.is_multiple_of(2)
    }

    fn take_data(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let data = frame::unpadded(head, payload).ok_or(Code::PROTOCOL_ERROR)?;
        if head.stream == 0 || self.is_idle(head.stream) {
            return Err(Code::PROTOCOL_ERROR);
        }
        self.window_in -= payload.len() as i64;
        if self.window_in < 0 {
            return Err(Code::FLOW_CONTROL_ERROR);
        }
        match data.is_empty() {
            false => self.idle.note_use(),
            true if head.has(frame::END_STREAM) => {}
            true => self.note_idle()?,
        }
        let Some(&key) = self.keys.get(&head.stream) else {
            self.allow(payload.len());
            if !self.resets.contains(&head.stream) {
                self.push_reset(head.stream, Code::STREAM_CLOSED);
            }
            return Ok(());
        };
        let stream = &mut self.streams[key];
        if stream.fault.is_some() {
            self.allow(payload.len());
            return Ok(());
        }
        stream.window_in -= payload.len() as i64;
        let mut wrong = None;
        if let Some(left) = &mut stream.left {
            match left.checked_sub(data.len() as u64) {
                Some(rest) => *left = rest,
                None => wrong = Some(Code::PROTOCOL_ERROR),
            }
        }
        if stream.window_in < 0 {
            wrong = Some(Code::FLOW_CONTROL_ERROR);
        }
        match stream.receiving {
            Receiving::Body => {}
            Receiving::Ended => wrong = Some(Code::STREAM_CLOSED),
            Receiving::Head => wrong = Some(Code::PROTOCOL_ERROR),
        }
        if let Some(code) = wrong {
            self.allow(payload.len());
            self.break_stream(key, code);
            return Ok(());
        }
        if !data.is_empty() {
            stream.gather(data, &self.resources);
        }
        stream.wake();
        let padding = payload.len() - data.len();
        if padding > 0 {
            self.allow(padding);
            self.allow_stream(key, padding);
        }
        if head.has(frame::END_STREAM) {
            self.end_receiving(key);
        }
        Ok(())
    }

    /// The peer has said all on a stream; says whether that is as long as it should be.
    fn end_receiving(&mut self, key: usize) {
        let stream = &mut self.streams[key];
        if stream.left.is_some_and(|left| left > 0) && !stream.is_head {
            return self.break_stream(key, Code::PROTOCOL_ERROR);
        }
        stream.receiving = Receiving::Ended;
        stream.wake();
    }

    fn take_headers(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let mut fragment = frame::unpadded(head, payload).ok_or(Code::PROTOCOL_ERROR)?;
        if head.stream == 0 {
            return Err(Code::PROTOCOL_ERROR);
        }
        let mut depends_on_itself = false;
        if head.has(frame::WITH_PRIORITY) {
            let on = frame::number_at(fragment, 0).ok_or(Code::FRAME_SIZE_ERROR)?;
            depends_on_itself = on & 0x7fff_ffff == head.stream;
            fragment = fragment.get(5..).ok_or(Code::FRAME_SIZE_ERROR)?;
        }
        let ends = head.has(frame::END_STREAM);
        if head.has(frame::END_HEADERS) {
            self.take_list(head.stream, ends, fragment)?;
        } else {
            self.block = Some(Block {
                stream: head.stream,
                ends,
                bytes: fragment.to_vec(),
                frames: 0,
            });
        }
        if depends_on_itself {
            match self.keys.get(&head.stream) {
                Some(&key) => self.break_stream(key, Code::PROTOCOL_ERROR),
                None => self.push_reset(head.stream, Code::PROTOCOL_ERROR),
            }
        }
        Ok(())
    }

    fn take_continuation(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let most = 2 * self.settings.max_head_bytes + frame::MAX_PAYLOAD;
        let block = self.block.as_mut().ok_or(Code::PROTOCOL_ERROR)?;
        block.frames += 1;
        if block.frames > MAX_CONTINUATIONS || block.bytes.len() + payload.len() > most {
            return Err(Code::ENHANCE_YOUR_CALM);
        }
        block.bytes.extend_from_slice(payload);
        if head.has(frame::END_HEADERS)
            && let Some(block) = self.block.take()
        {
            self.take_list(block.stream, block.ends, &block.bytes)?;
        }
        Ok(())
    }

    /// Takes in a field list that has come whole.
    fn take_list(&mut self, id: u32, ends: bool, block: &[u8]) -> Result<(), Code> {
        let (most, mut list) = (2 * self.settings.max_head_bytes, self.resources.take_list());
        let is_well_formed =
            head::read(&mut self.decoder, block, most, &mut list).map_err(|_| Code::COMPRESSION_ERROR)?;
        // Most lists are the first word on their stream.
        let is_first = self.is_idle(id);
        if let Some(&key) = (!is_first).then(|| self.keys.get(&id)).flatten() {
            let stream = &self.streams[key];
            if stream.fault.is_some() {
                return Ok(());
            }
            match stream.receiving {
                Receiving::Ended => self.break_stream(key, Code::STREAM_CLOSED),
                Receiving::Body => self.take_trailers(key, ends, &list, is_well_formed),
                Receiving::Head => self.take_answer(key, ends, list, is_well_formed),
            }
            return Ok(());
        }
        match self.side {
            Role::Client if self.is_idle(id) => Err(Code::PROTOCOL_ERROR),
            // It was given up.
            Role::Client => self.note_idle(),
            Role::Server if id.is_multiple_of(2) => Err(Code::PROTOCOL_ERROR),
            Role::Server if id <= self.highest => match self.resets.contains(&id) {
                true => self.note_idle(),
                false => Err(Code::STREAM_CLOSED),
            },
            Role::Server => self.accept(id, ends, list, is_well_formed),
        }
    }

    /// A client has opened a stream.
    fn accept(
        &mut self,
        id: u32,
        ends: bool,
        list: Box<FieldList>,
        is_well_formed: bool,
    ) -> Result<(), Code> {
        self.highest = id;
        if self.going == GoAwayState::Said {
            // The peer knows that this stream is not served.
            self.note_reset(id);
            return self.note_idle();
        }
        self.last = id;
        let is_well_formed = is_well_formed && head::is_request(&list);
        let left = head::stated_length(&list);
        // Streams that were given up are not open any more, but still take room for a moment.
        let most = self.settings.max_streams as usize;
        if self.keys.len() >= most || self.streams.len() >= 2 * most {
            self.push_reset(id, Code::REFUSED_STREAM);
            return self.note_idle();
        }
        if !is_well_formed || (ends && left.is_some_and(|left| left > 0)) {
            self.push_reset(id, Code::PROTOCOL_ERROR);
            return self.note_idle();
        }
        self.idle.note_use();
        let receiving = if ends { Receiving::Ended } else { Receiving::Body };
        let key = self.open(id, receiving, left);
        self.accepted.push(Accepted { key, list });
        Ok(())
    }

    /// A stream more.
    pub(crate) fn open(&mut self, id: u32, receiving: Receiving, left: Option<u64>) -> usize {
        let key = self.streams.insert(StreamState {
            id,
            waker: None,
            window_out: self.peer_window,
            window_in: i64::from(self.settings.stream_window),
            unread: 0,
            unannounced: 0,
            receiving,
            is_sent: false,
            fault: None,
            left,
            is_head: false,
            is_waiting: false,
            wanted: 0,
            waiting: None,
            trailers: None,
        });
        self.keys.insert(id, key);
        key
    }

    /// An upstream's head has come.
    fn take_answer(&mut self, key: usize, ends: bool, list: Box<FieldList>, is_well_formed: bool) {
        let status = head::status(&list).filter(|_| is_well_formed && !list.is_too_large);
        let stream = &mut self.streams[key];
        let queues = stream.queues(&self.resources);
        let is_final = match status {
            Some(101) | None => return self.break_stream(key, Code::PROTOCOL_ERROR),
            Some(100..200) if ends || queues.heads.len() >= MAX_HEADS => {
                return self.break_stream(key, Code::PROTOCOL_ERROR);
            }
            Some(status) => status >= 200,
        };
        let stated = head::stated_length(&list).filter(|_| is_final);
        queues.heads.push_back(list);
        self.idle.note_use();
        if is_final {
            stream.is_head |= matches!(status, Some(204 | 304));
            stream.left = stated.filter(|_| !stream.is_head);
            stream.receiving = Receiving::Body;
        }
        stream.wake();
        if ends {
            self.end_receiving(key);
        }
    }

    fn take_trailers(&mut self, key: usize, ends: bool, list: &FieldList, is_well_formed: bool) {
        if !ends || !is_well_formed || list.has_pseudo() || list.is_too_large {
            return self.break_stream(key, Code::PROTOCOL_ERROR);
        }
        self.streams[key].trailers = Some(trailer_lines(list.iter()));
        self.end_receiving(key);
    }

    fn take_priority(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        if head.stream == 0 {
            return Err(Code::PROTOCOL_ERROR);
        }
        let code = match payload.len() {
            5 => {
                let depends_on = frame::number_at(payload, 0).map(|on| on & 0x7fff_ffff);
                (depends_on == Some(head.stream)).then_some(Code::PROTOCOL_ERROR)
            }
            _ => Some(Code::FRAME_SIZE_ERROR),
        };
        match (code, self.keys.get(&head.stream)) {
            (None, _) => {}
            (Some(code), Some(&key)) => self.break_stream(key, code),
            (Some(code), None) => return Err(code),
        }
        self.note_idle()
    }

    fn take_reset(&mut self, head: Head, payload: &[u8]) -> Result<(), Code> {
        let code = frame::number_at(payload, 0).filter(|_| payload.len() == 4);
        let code = Code(code.ok_or(Code::FRAME_SIZE_ERROR)?);
        if head.stream == 0 || self.is_idle(head.stream) {
            return Err(Code::PROTOCOL_ERROR);
        }
        let Some(&key) = self.keys.get(&head.stream) else {
            self.late_resets += 1;
            return Ok(());
        };
        // It counts among the open ones no more.
        self.keys.remove(&head.stream);
        self.streams[key].end(self.side, StreamError::Reset(code));
        Ok(())
    }

    /// Ends a stream with a reset from this side.
    pub(crate) fn break_stream(&mut self, key: usize, code: Code) {
        let stream = &mut self.streams[key];
        let id = stream.id;
        stream.fault.get_or_insert(StreamError::Invalid);
        stream.wake();
        self.keys.remove(&id);
        self.push_reset(id, code);
    }

    pub(crate) fn push_reset(&mut self, id: u32, code: Code) {
        self.note_reset(id);
        frame::push_number(
            self.reserve_control(frame::NUMBER_BYTES),
            frame::RST_STREAM,
            id,
            code.0,
        );
        self.wake_driver();
    }
}
