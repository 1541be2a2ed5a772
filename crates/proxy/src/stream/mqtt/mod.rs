//! The begin of a session of MQTT: its CONNECT (MQTT 3.1.1 and 5.0, section 3.1) as far as the client's id.
//!
//! **What it is not**: a broker. What is read here goes to the target as it came, and nothing behind it is looked at.

pub mod fuzzing;

use crate::halves::ReadHalf;
use std::io;
use tokio::io::AsyncReadExt;
use weir_model::MqttConnect;

/// The most bytes that are read to find a client's id, which has 65,535 at most.
const MAX_BYTES: usize = 128 * 1024;
/// The first byte of a CONNECT.
const CONNECT: u8 = 0x10;
/// The first version that has properties.
const FIVE: u8 = 5;

/// A CONNECT, as far as the client's id.
#[derive(Debug, PartialEq, Eq)]
struct Connect<'b> {
    protocol_name: &'b [u8],
    protocol_level: u8,
    /// Empty: the broker gives one.
    client_id: &'b [u8],
}

/// That bytes are no CONNECT.
#[derive(Debug, PartialEq, Eq)]
struct Malformed;

/// What a client has said, for the target, and its id if it has one.
pub struct MqttClient {
    pub received: Vec<u8>,
    pub id: Option<Vec<u8>>,
}

/// Reads from a client until its id is known.
///
/// # Errors
/// The connection ends, or it begins with something other than what is expected.
pub async fn read(from: &mut ReadHalf, expected: &MqttConnect) -> io::Result<MqttClient> {
    let mut received = Vec::new();
    loop {
        let read = match parse(&received) {
            Ok(None) if received.len() < MAX_BYTES => {
                let room = MAX_BYTES - received.len();
                (&mut *from).take(room as u64).read_buf(&mut received).await?
            }
            Ok(Some(connect)) if connect.is(expected) => {
                let id = (!connect.client_id.is_empty()).then(|| connect.client_id.to_vec());
                return Ok(MqttClient { received, id });
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

impl Connect<'_> {
    fn is(&self, expected: &MqttConnect) -> bool {
        self.protocol_name == expected.protocol_name.as_bytes()
            && self.protocol_level == expected.protocol_level
    }
}

/// Reads the begin of a connection; `Ok(None)`: more of it is needed.
fn parse(bytes: &[u8]) -> Result<Option<Connect<'_>>, Malformed> {
    let Some((first, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    if *first != CONNECT {
        return Err(Malformed);
    }
    let Some((length, rest)) = variable_integer(rest)? else {
        return Ok(None);
    };
    // What stands behind the packet is not its own.
    let (rest, is_whole) = match rest.get(..length) {
        Some(whole) => (whole, true),
        None => (rest, false),
    };
    match body(rest)? {
        Some(connect) => Ok(Some(connect)),
        None if is_whole => Err(Malformed),
        None => Ok(None),
    }
}

/// The packet behind its length.
fn body(bytes: &[u8]) -> Result<Option<Connect<'_>>, Malformed> {
    let Some((protocol_name, rest)) = text(bytes) else {
        return Ok(None);
    };
    // The level, the flags, and two bytes of how long a client may be silent.
    let Some((&[protocol_level, _, _, _], mut rest)) = rest.split_first_chunk() else {
        return Ok(None);
    };
    if protocol_level >= FIVE {
        let Some((length, behind)) = variable_integer(rest)? else {
            return Ok(None);
        };
        let Some(behind) = behind.get(length..) else {
            return Ok(None);
        };
        rest = behind;
    }
    Ok(text(rest).map(|(client_id, _)| Connect {
        protocol_name,
        protocol_level,
        client_id,
    }))
}

/// A text with its length before it, and what follows.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// An integer of one to four bytes (section 2.2.3), and what follows.
fn variable_integer(bytes: &[u8]) -> Result<Option<(usize, &[u8])>, Malformed> {
    let mut value = 0;
    for at in 0..4 {
        let Some(byte) = bytes.get(at) else {
            return Ok(None);
        };
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, &bytes[at + 1..])));
        }
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connect_is_read_as_far_as_the_id() {
        let four = b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04car7rest";
        let five = b"\x10\x13\0\x04MQTT\x05\x02\0\x3c\x02\x21\x0a\0\x04car7";
        let connect = |protocol_level| Connect {
            protocol_name: b"MQTT",
            protocol_level,
            client_id: b"car7",
        };
        assert_eq!(parse(four), Ok(Some(connect(4))));
        assert_eq!(parse(five), Ok(Some(connect(5))));
        for at in 0..18 {
            assert_eq!(parse(&four[..at]), Ok(None), "{at}");
        }
        let none = b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0";
        assert_eq!(parse(none).map(|it| it.map(|it| it.client_id.len())), Ok(Some(0)));
        for wrong in [
            &b"\x30\x10\0\x04MQTT"[..],
            b"GET / HTTP/1.1\r\n",
            b"\x10\xff\xff\xff\xff\x01",
            // It ends before the id.
            b"\x10\x0a\0\x04MQTT\x04\x02\0\x3c",
            b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\xffcar7",
            b"\x10\x0c\0\x04MQTT\x05\x02\0\x3c\x7f\0",
        ] {
            assert_eq!(parse(wrong), Err(Malformed), "{wrong:?}");
        }
    }
}
