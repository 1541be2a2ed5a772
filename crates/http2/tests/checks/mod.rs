//! What must hold, for the fuzz targets and for tests: field lists as any peer may send them, and what a client may hear whatever it has said. Nothing
//! may panic, and what is kept is bounded.

use std::collections::HashMap;
use weir_http1::fields::push_header;
use weir_http2::connection::PREFACE;
use weir_http2::field_list::FieldList;
use weir_http2::frame::{self, Head};
use weir_http2::head;
use weir_http2::hpack::{self, Decoder, Malformed};

/// The most bytes that are kept of a list here.
const MAX_BYTES: usize = 4096;

/// Reads bytes as two field lists of one connection.
pub fn http2_fields(bytes: &[u8], cut: usize) {
    let mut decoder = Decoder::default();
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    for block in [first, second] {
        let Ok((list, is_well_formed)) = read(&mut decoder, block, MAX_BYTES) else {
            return;
        };
        assert!(list.bytes() <= MAX_BYTES, "no more is kept than may be");
        if is_well_formed && head::is_request(&list) && !list.is_too_large {
            again(&list);
        }
        let (_status, _length) = (head::status(&list), head::stated_length(&list));
    }
}

fn read(decoder: &mut Decoder, block: &[u8], max_bytes: usize) -> Result<(FieldList, bool), Malformed> {
    let mut list = FieldList::default();
    let is_well_formed = head::read(decoder, block, max_bytes, &mut list)?;
    Ok((list, is_well_formed))
}

/// What is understood of a request must be understood in the same way once it is written again.
fn again(list: &FieldList) {
    let mut lines = Vec::new();
    for (name, value) in list.iter() {
        push_header(&mut lines, name, value);
    }
    let mut block = Vec::new();
    hpack::push_lines(&lines, &mut block);
    let read = read(&mut Decoder::default(), &block, 2 * MAX_BYTES);
    let (read, is_well_formed) = read.unwrap_or_default();
    assert!(is_well_formed, "what is written is well-formed");
    let wanted = list
        .iter()
        .filter(|(name, _)| *name != b"host" && name.len() <= 256);
    let wanted: Vec<_> = wanted.map(|(name, value)| (name, value.trim_ascii())).collect();
    assert_eq!(read.iter().collect::<Vec<_>>(), wanted);
}

/// What a client has room for, at the most.
#[derive(Default)]
struct ClientWindows {
    connection: u64,
    initial: u64,
    streams: HashMap<u32, u64>,
}

/// The frames that have come whole.
fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (Head, &[u8])> {
    std::iter::from_fn(move || {
        let head = Head::read(bytes)?;
        let whole = bytes.get(..frame::HEAD_BYTES + head.length)?;
        bytes = &bytes[whole.len()..];
        Some((head, &whole[frame::HEAD_BYTES..]))
    })
}

impl ClientWindows {
    /// That of a client that has said this behind its preface.
    fn of(sent: &[u8]) -> Self {
        let usual = u64::from(frame::USUAL_WINDOW);
        let mut room = Self {
            connection: usual,
            initial: usual,
            streams: HashMap::new(),
        };
        for (head, payload) in frames(sent) {
            match head.kind {
                frame::WINDOW_UPDATE => {
                    let more = u64::from(frame::number_at(payload, 0).unwrap_or_default() & 0x7fff_ffff);
                    *match head.stream {
                        0 => &mut room.connection,
                        stream => room.streams.entry(stream).or_default(),
                    } += more;
                }
                frame::SETTINGS => {
                    for setting in payload.as_chunks::<6>().0 {
                        if setting[..2] == frame::INITIAL_WINDOW_SIZE.to_be_bytes() {
                            let initial = frame::number_at(setting, 2).map_or(0, u64::from);
                            room.initial = room.initial.max(initial);
                        }
                    }
                }
                _ => {}
            }
        }
        room
    }

    /// Takes the room for so many bytes.
    fn take(&mut self, stream: u32, count: usize) {
        let of_stream = self.streams.entry(stream).or_default();
        let taken = [&mut self.connection, of_stream];
        // What was taken of the initial room of a stream shows as what is missing.
        let left = taken.map(|room| {
            *room = room.wrapping_sub(count as u64);
            *room
        });
        assert!(left[0] as i64 >= 0, "more than the connection has room for");
        assert!(
            left[1].wrapping_add(self.initial) as i64 >= 0,
            "more than the stream has room for"
        );
    }
}

/// Checks what a client hears that has said this: whole frames of usual size, settings first; on a stream heads, a body,
/// trailers and nothing behind its end; no more of bodies than there is room for.
///
/// # Panics
/// Where that does not hold.
pub fn http2_answers(sent: &[u8], heard: &[u8]) {
    let mut room = ClientWindows::of(sent.strip_prefix(PREFACE).unwrap_or(sent));
    let mut decoder = Decoder::default();
    // Whether a stream's final head has come, and its end.
    let mut streams: HashMap<u32, (bool, bool)> = HashMap::new();
    let mut block: Option<(Head, Vec<u8>)> = None;
    for (position, (head, payload)) in frames(heard).enumerate() {
        let is_settings = head.kind == frame::SETTINGS && !head.has(frame::ACK);
        assert_eq!(is_settings, position == 0, "settings come first, and once");
        assert!(head.length <= frame::MAX_PAYLOAD, "too long a frame");
        assert_eq!(
            block.is_some(),
            head.kind == frame::CONTINUATION,
            "a field list goes on"
        );
        let stream = streams.entry(head.stream).or_default();
        match head.kind {
            frame::DATA => {
                assert_eq!(*stream, (true, false), "data before a head or behind an end");
                stream.1 = head.has(frame::END_STREAM);
                room.take(head.stream, payload.len());
            }
            frame::HEADERS | frame::CONTINUATION => {
                assert!(!stream.1, "a head behind an end");
                let (first, mut bytes) = block.take().unwrap_or((head, Vec::new()));
                bytes.extend_from_slice(payload);
                if !head.has(frame::END_HEADERS) {
                    block = Some((first, bytes));
                    continue;
                }
                let ends = first.has(frame::END_STREAM);
                let is_final = check_list(&mut decoder, &bytes, stream.0);
                assert!(is_final || !ends, "an interim head ends a stream");
                *stream = (is_final, ends);
            }
            frame::RST_STREAM => stream.1 = true,
            _ => {}
        }
    }
}

/// Reads a list; says whether it is a final head, or trailers.
fn check_list(decoder: &mut Decoder, block: &[u8], are_trailers: bool) -> bool {
    let (list, is_well_formed) = read(decoder, block, usize::MAX).expect("invariant: a field list");
    assert!(is_well_formed, "a list that is not well-formed");
    match are_trailers {
        true => !list.has_pseudo(),
        false => head::status(&list).expect("invariant: a status") >= 200,
    }
}
