//! Frames (RFC 9113, 4.1 and 6): their heads, kinds, flags and the codes of errors.

/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = 9;
/// Bytes of a frame whose payload is one number.
pub const NUMBER_BYTES: usize = HEAD_BYTES + 4;
/// The most bytes of a frame's payload, in both directions: the default, which need not be announced.
pub const MAX_PAYLOAD: usize = 16 * 1024;
/// The largest window.
pub const MAX_WINDOW: i64 = (1 << 31) - 1;
/// The default window of a stream and of a connection.
pub const USUAL_WINDOW: u32 = 65_535;
/// The default size of an HPACK decoder's table.
pub const USUAL_TABLE: u32 = 4096;

/// A piece of a body.
pub const DATA: u8 = 0;
/// A field list, or its begin.
pub const HEADERS: u8 = 1;
/// Which stream to prefer.
pub const PRIORITY: u8 = 2;
/// A stream ends before its time.
pub const RST_STREAM: u8 = 3;
/// What the sender can take.
pub const SETTINGS: u8 = 4;
/// A response without a request.
pub const PUSH_PROMISE: u8 = 5;
/// To be answered with the same bytes.
pub const PING: u8 = 6;
/// No more streams are taken.
pub const GOAWAY: u8 = 7;
/// More may be sent.
pub const WINDOW_UPDATE: u8 = 8;
/// More of a field list.
pub const CONTINUATION: u8 = 9;

/// Flag: nothing follows on the stream.
pub const END_STREAM: u8 = 1;
/// Of SETTINGS and PING.
pub const ACK: u8 = 1;
/// Flag: the field list is whole.
pub const END_HEADERS: u8 = 4;
/// Flag: padding follows.
pub const PADDED: u8 = 8;
/// Flag: a dependency stands before the field list.
pub const WITH_PRIORITY: u8 = 0x20;

/// Settings (RFC 9113, 6.5.2; RFC 8441, 3).
pub const HEADER_TABLE_SIZE: u16 = 1;
/// Whether `PUSH_PROMISE` is taken.
pub const ENABLE_PUSH: u16 = 2;
/// Streams that may be open.
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
/// Bytes that may be sent on a new stream.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
/// The largest payload.
pub const MAX_FRAME_SIZE: u16 = 5;
/// The largest field list.
pub const MAX_HEADER_LIST_SIZE: u16 = 6;
/// Whether `:protocol` is understood (RFC 8441).
pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// Why a stream or a connection ends (RFC 9113, 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// A rule of the protocol was broken.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The sender has failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than there was room for.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Something came on a stream that has ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The request was not looked at.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(8);
    /// A field list that cannot be read.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer causes too much work.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

/// A frame's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the payload.
    pub length: usize,
    /// Which kind of frame it is.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// The stream that it belongs to; 0: the connection.
    pub stream: u32,
}

impl Head {
    /// Parses a frame head; `None` if it is not complete.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let [a, b, c, kind, flags, id @ ..] = *bytes;
        Some(Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(id) & 0x7fff_ffff,
        })
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes a head into the room that was left for it.
#[inline]
pub fn put_head(room: &mut [u8], length: usize, kind: u8, flags: u8, stream: u32) {
    room[..3].copy_from_slice(&(length as u32).to_be_bytes()[1..]);
    room[3] = kind;
    room[4] = flags;
    room[5..HEAD_BYTES].copy_from_slice(&stream.to_be_bytes());
}

/// Writes a head.
#[inline]
pub fn push_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let mut head = [0; HEAD_BYTES];
    put_head(&mut head, length, kind, flags, stream);
    out.extend_from_slice(&head);
}

/// Writes a frame whose payload is one number.
#[inline]
pub fn push_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    push_head(out, 4, kind, 0, stream);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes GOAWAY.
pub fn push_go_away(out: &mut Vec<u8>, last: u32, code: Code) {
    push_head(out, 8, GOAWAY, 0, 0);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Writes settings.
pub fn push_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    push_head(out, settings.len() * 6, SETTINGS, 0, 0);
    for (setting, value) in settings {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// A payload without its padding; `None` if the padding is longer than the payload.
#[inline]
pub fn unpadded(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(PADDED) {
        return Some(payload);
    }
    let (padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(*padding))?)
}

/// The number at a place of a payload.
#[inline]
pub fn number_at(payload: &[u8], at: usize) -> Option<u32> {
    payload
        .get(at..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}
