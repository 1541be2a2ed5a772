//! Reading a header from a connection, and not a byte more: what follows belongs to another protocol.

use super::parse::{ProxyHeader, header_length, parse};
use std::io;
use tokio::net::TcpStream;

/// How much is looked at in one go; most headers are shorter.
const GLANCE: usize = 256;

/// Reads the header with which the connection begins. The caller bounds the time.
///
/// # Errors
/// If there is no header, or the connection is lost.
pub async fn read(tcp: &TcpStream) -> io::Result<ProxyHeader> {
    let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut header: Vec<u8> = Vec::with_capacity(GLANCE);
    loop {
        // Peeked at and then taken, so that what follows stays where it is.
        let mut glance = [0; GLANCE];
        let seen = tcp.peek(&mut glance).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let known = header.len();
        header.extend_from_slice(&glance[..seen]);
        let length = header_length(&header).map_err(broken)?;
        header.truncate(length.unwrap_or(usize::MAX));
        // All that was seen so far belongs to the header, so taking it never leads to looking at it again.
        let mut wanted = &mut glance[..header.len() - known];
        while !wanted.is_empty() {
            match tcp.try_read(wanted) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => wanted = &mut wanted[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tcp.readable().await?,
                Err(error) => return Err(error),
            }
        }
        if length == Some(header.len()) {
            return parse(&header).map_err(broken);
        }
    }
}
