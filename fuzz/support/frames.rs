//! Frames of HTTP/2 as either side may send them, in order or not.

use arbitrary::Arbitrary;
use weir_proxy::connection_fuzzing::MAX_BYTES;

const METHODS: [&[u8]; 6] = [b"GET", b"POST", b"HEAD", b"OPTIONS", b"CONNECT", b"PUT"];
/// Routes of the first gateway, and none.
const PATHS: [&[u8]; 8] = [b"/1", b"/2", b"/3", b"/v", b"/", b"*", b"/1/a?b=c", b"/2/%2e"];
/// Fields that mean something to a gateway; a byte chooses one.
const FIELDS: [&[u8]; 12] = [
    b"content-length",
    b"te",
    b"expect",
    b"connection",
    b"transfer-encoding",
    b"host",
    b"content-type",
    b"cookie",
    b"upgrade",
    b"x-forwarded-for",
    b"grpc-timeout",
    b":protocol",
];

/// What a side does next.
#[derive(Debug, Arbitrary)]
pub enum Step<'a> {
    Request {
        stream: u8,
        method: u8,
        path: u8,
        ends: bool,
        fields: Vec<(u8, &'a [u8])>,
    },
    Whole {
        stream: u8,
        length: u8,
    },
    DetectorResponse {
        stream: u8,
        status: u16,
        ends: bool,
        fields: Vec<(u8, &'a [u8])>,
    },
    Data {
        stream: u8,
        flags: u8,
        bytes: &'a [u8],
    },
    Fill {
        stream: u8,
        length: u16,
    },
    Trailers {
        stream: u8,
        name: &'a [u8],
        value: &'a [u8],
    },
    Reset {
        stream: u8,
        code: u8,
    },
    Settings(Vec<(u8, u32)>),
    Window {
        stream: u8,
        more: u32,
    },
    Ping,
    Farewell(u8),
    Frame {
        kind: u8,
        flags: u8,
        stream: u8,
        bytes: &'a [u8],
    },
    Bytes(&'a [u8]),
    Pause,
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let payload = &payload[..payload.len().min(16 * 1024)];
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// A client's stream: small odd numbers.
fn odd(stream: u8) -> u32 {
    u32::from(stream % 16) * 2 + 1
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(126)];
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(0);
    text(out, name);
    text(out, value);
}

fn ordinary(block: &mut Vec<u8>, fields: &[(u8, &[u8])]) {
    for (name, value) in fields.iter().take(8) {
        field(block, FIELDS[usize::from(*name) % FIELDS.len()], value);
    }
}

fn request(method: u8, path: u8, fields: &[(u8, &[u8])]) -> Vec<u8> {
    let method = METHODS[usize::from(method) % METHODS.len()];
    let mut block = vec![0x86, 0x41, 1, b'h'];
    field(&mut block, b":method", method);
    field(&mut block, b":path", PATHS[usize::from(path) % PATHS.len()]);
    let is_pseudo = |(name, _): &&(u8, &[u8])| FIELDS[usize::from(*name) % FIELDS.len()].starts_with(b":");
    // Those that are none of a head stand before the others.
    let (first, others): (Vec<_>, Vec<_>) = fields.iter().partition(is_pseudo);
    ordinary(&mut block, &first);
    ordinary(&mut block, &others);
    block
}

impl Step<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Request {
                stream,
                method,
                path,
                ends,
                fields,
            } => {
                frame(
                    out,
                    1,
                    4 | u8::from(*ends),
                    odd(*stream),
                    &request(*method, *path, fields),
                );
            }
            Self::Whole { stream, length } => {
                let length = length % 100;
                let stated = length.to_string();
                frame(
                    out,
                    1,
                    4,
                    odd(*stream),
                    &request(1, *stream, &[(0, stated.as_bytes())]),
                );
                frame(out, 0, 1, odd(*stream), &vec![b'a'; usize::from(length)]);
            }
            Self::DetectorResponse {
                stream,
                status,
                ends,
                fields,
            } => {
                let mut block = Vec::new();
                field(
                    &mut block,
                    b":status",
                    (100 + status % 500).to_string().as_bytes(),
                );
                ordinary(&mut block, fields);
                frame(out, 1, 4 | u8::from(*ends), odd(*stream), &block);
            }
            Self::Data { stream, flags, bytes } => frame(out, 0, *flags, odd(*stream), bytes),
            Self::Fill { stream, length } => {
                frame(out, 0, 0, odd(*stream), &vec![b'a'; usize::from(*length)])
            }
            Self::Trailers { stream, name, value } => {
                let mut block = Vec::new();
                field(&mut block, name, value);
                frame(out, 1, 5, odd(*stream), &block);
            }
            Self::Reset { stream, code } => frame(out, 3, 0, odd(*stream), &[0, 0, 0, *code]),
            Self::Settings(settings) => {
                let all = settings
                    .iter()
                    .take(8)
                    .flat_map(|(name, value)| [&[0, name % 10][..], &value.to_be_bytes()].concat());
                frame(out, 4, 0, 0, &all.collect::<Vec<_>>());
            }
            Self::Window { stream, more } => {
                let stream = stream.checked_sub(1).map_or(0, odd);
                frame(out, 8, 0, stream, &more.to_be_bytes());
            }
            Self::Ping => frame(out, 6, 0, 0, b"12345678"),
            Self::Farewell(last) => frame(out, 7, 0, 0, &[0, 0, 0, *last, 0, 0, 0, 0]),
            Self::Frame {
                kind,
                flags,
                stream,
                bytes,
            } => frame(out, kind % 12, *flags, u32::from(*stream % 32), bytes),
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Pause => {}
        }
    }
}

/// All that a side says, behind what it says first and its settings, with the places where it pauses; `None`: that is too
/// much.
pub fn script(first: &[u8], steps: &[Step<'_>]) -> Option<(Vec<u8>, Vec<usize>)> {
    let mut sent = first.to_vec();
    frame(&mut sent, 4, 0, 0, &[]);
    let mut cuts = Vec::new();
    for step in steps {
        step.write(&mut sent);
        if matches!(step, Step::Pause) {
            cuts.push(sent.len());
        }
    }
    let is_little = sent.len() <= MAX_BYTES && cuts.len() <= 8;
    cuts.push(sent.len());
    is_little.then_some((sent, cuts))
}

/// What is sent between pauses.
pub fn pieces<'s>(sent: &'s [u8], cuts: &[usize]) -> Vec<&'s [u8]> {
    let mut from = 0;
    cuts.iter()
        .map(|to| &sent[std::mem::replace(&mut from, *to)..*to])
        .collect()
}
