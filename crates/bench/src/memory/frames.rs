//! As much of HTTP/2 as it takes to hold many streams open: frames (RFC 9113, 4.1), read and written without a look at
//! most of them. No client or server for anything else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

use crate::loopback::LoopbackServer;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
/// Of SETTINGS and PING.
const ACK: u8 = 1;
/// Of HEADERS: they are whole, and nothing follows them.
const END: u8 = 0x4 | 0x1;
const MAX_CONCURRENT_STREAMS: u16 = 3;

struct Frame {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

fn write_frame(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    to.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    to.extend_from_slice(&[kind, flags]);
    to.extend_from_slice(&stream.to_be_bytes());
    to.extend_from_slice(payload);
}

fn read_frame(from: &mut impl Read) -> Result<Frame> {
    let mut head = [0; 9];
    from.read_exact(&mut head).context("reading a frame")?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    from.read_exact(&mut payload)
        .context("reading a frame's payload")?;
    Ok(Frame {
        kind: head[3],
        flags: head[4],
        payload,
    })
}

/// What a frame asks of its receiver: an answer that every endpoint owes.
fn answer(frame: &Frame, to: &mut Vec<u8>) {
    match frame.kind {
        SETTINGS if frame.flags & ACK == 0 => write_frame(to, SETTINGS, ACK, 0, &[]),
        PING if frame.flags & ACK == 0 => write_frame(to, PING, ACK, 0, &frame.payload),
        _ => {}
    }
}

/// A connection on which `count` calls wait for their answers, which do not come.
///
/// # Errors
/// The server does not take them.
pub fn open_streams(address: SocketAddr, count: u32) -> Result<TcpStream> {
    let mut stream = crate::client::connect(address)?;
    let mut out = PREFACE.to_vec();
    write_frame(&mut out, SETTINGS, 0, 0, &[]);
    stream.write_all(&out).context("greeting")?;
    // Its settings, and that it has seen ours: a PING's echo comes behind all that.
    let is_sent = ping(&mut stream, b"greeting")?;
    if is_sent < count {
        bail!("it takes {is_sent} streams on a connection");
    }
    // No field by name, and nothing that a table would have to keep: GET, http, and two literals (RFC 7541).
    let host = address.to_string();
    let mut fields = vec![0x82, 0x86, 0x01, host.len() as u8];
    fields.extend_from_slice(host.as_bytes());
    fields.extend_from_slice(b"\x04\x06/hello");
    for part in 0..count.div_ceil(PART) {
        let mut out = Vec::new();
        for number in part * PART..count.min((part + 1) * PART) {
            write_frame(&mut out, HEADERS, END, 2 * number + 1, &fields);
        }
        stream.write_all(&out).context("opening streams")?;
        ping(&mut stream, b"streams!")?;
    }
    Ok(stream)
}

/// Streams that are opened in one go.
const PART: u32 = 500;

/// Waits until the server has seen what was sent; returns the streams that it takes, if it has said so on the way.
///
/// # Errors
/// It ends a stream or the connection.
pub fn ping(stream: &mut TcpStream, word: &[u8; 8]) -> Result<u32> {
    let mut out = Vec::new();
    write_frame(&mut out, PING, 0, 0, word);
    stream.write_all(&out).context("sending a ping")?;
    let mut taken = u32::MAX;
    loop {
        let frame = read_frame(stream)?;
        match frame.kind {
            PING if frame.flags & ACK != 0 && frame.payload == word => return Ok(taken),
            RST_STREAM => bail!("it has reset a stream"),
            GOAWAY => bail!("it has ended the connection"),
            HEADERS => bail!("it has answered"),
            SETTINGS => {
                for setting in frame.payload.chunks_exact(6) {
                    if setting[..2] == MAX_CONCURRENT_STREAMS.to_be_bytes() {
                        taken = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    }
                }
            }
            _ => {}
        }
        let mut out = Vec::new();
        answer(&frame, &mut out);
        stream.write_all(&out).context("answering a frame")?;
    }
}

/// Starts a server that takes any number of calls over HTTP/2 and answers none. Its connections end with the gateway.
///
/// # Errors
/// No port is free.
pub fn start_silent() -> Result<LoopbackServer> {
    LoopbackServer::start("silent", listen_to)
}

fn listen_to(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true).context("setting TCP_NODELAY")?;
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).context("reading the preface")?;
    let mut out = Vec::new();
    let mut taken = MAX_CONCURRENT_STREAMS.to_be_bytes().to_vec();
    taken.extend_from_slice(&1_000_000u32.to_be_bytes());
    write_frame(&mut out, SETTINGS, 0, 0, &taken);
    loop {
        stream.write_all(&out).context("answering")?;
        let frame = read_frame(&mut stream)?;
        out.clear();
        answer(&frame, &mut out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_stay_open() {
        let server = start_silent().unwrap();
        let mut stream = open_streams(server.address, 1_200).unwrap();
        ping(&mut stream, b"still on").unwrap();
    }
}
