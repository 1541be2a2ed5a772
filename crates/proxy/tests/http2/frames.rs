//! HTTP/2 frame by frame, for peers that do what no library would.

use super::support::{Ended, TestGateway, Upstream, Wire};

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// GET http / of an authority, by HPACK's static table.
pub const REQUEST: &[u8] = b"\x82\x86\x84\x41\x01h";
/// The same with POST.
pub const POST: &[u8] = b"\x83\x86\x84\x41\x01h";
/// A window as large as there is, and what makes one of the usual size so.
pub const MAX_WINDOW: u32 = (1 << 31) - 1;
pub const MORE_WINDOW: u32 = MAX_WINDOW - 65_535;

/// Kinds of frames.
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

/// Flags.
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const BOTH: u8 = END_STREAM | END_HEADERS;

/// Settings.
pub const HEADER_TABLE_SIZE: u16 = 1;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A frame of settings.
pub fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let setting = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &list.iter().flat_map(setting).collect::<Vec<_>>())
}

/// Room for so many bytes more.
pub fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// A frame that came.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

/// Reads the next frame.
pub fn next(wire: &mut Wire) -> Result<Frame, Ended> {
    let head = wire.read(9)?;
    let number = |at: usize| u32::from_be_bytes(*head[at..].first_chunk().unwrap());
    Ok(Frame {
        kind: head[3],
        flags: head[4],
        stream: number(5),
        payload: wire.read(number(0) as usize >> 8)?,
    })
}

/// Reads through the next frame of a kind.
pub fn next_of(wire: &mut Wire, kind: u8) -> Frame {
    loop {
        let frame = next(wire).unwrap();
        if frame.kind == kind {
            return frame;
        }
    }
}

/// Reads through the end of a stream: the bytes of its body, or the code of a reset.
pub fn body(wire: &mut Wire, stream: u32) -> Result<usize, Vec<u8>> {
    let mut length = 0;
    loop {
        let frame = next(wire).expect("the connection lasts");
        match frame.kind {
            RST_STREAM if frame.stream == stream => return Err(frame.payload),
            DATA if frame.stream == stream => length += frame.payload.len(),
            _ => {}
        }
        if frame.stream == stream && frame.ends_stream() {
            return Ok(length);
        }
    }
}

/// A client's connection that begins with these frames, settings first.
pub fn connect(gateway: &TestGateway, frames: &[Vec<u8>]) -> Wire {
    let mut wire = gateway.connect();
    wire.send([PREFACE, &frames.concat()].concat());
    wire
}

/// An upstream's connection that begins with these frames, settings first.
pub fn accept(upstream: &Upstream, frames: &[Vec<u8>]) -> Wire {
    let mut wire = upstream.accept();
    wire.send(frames.concat());
    assert_eq!(wire.read(PREFACE.len()).unwrap(), PREFACE);
    wire
}
