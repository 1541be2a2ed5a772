//! A closed loop for slices of some milliseconds: each connection sends its next call when it has its answer. `wrk`
//! cannot run for less than a second, in which a shared machine changes its speed by more than a plugin costs.
//! Connections stay open from one slice to the next, and a slice ends when every call has its answer, so that the
//! gateway is idle when its account is read.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use crate::client::{connect, parse_head};

/// A call without an answer for this long has failed.
const TIME_OUT: Duration = Duration::from_secs(10);
const BUFFER: usize = 256 << 10;
/// The end of a body in chunks. Nothing else ends so: the bodies of the bench are text, or compressed text that is
/// looked at only if an answer may end.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The connections to one gateway.
#[derive(Debug)]
pub struct ClosedLoop {
    connections: Vec<LoopConnection>,
    poll: OwnedFd,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct LoopConnection {
    stream: TcpStream,
    answer: PartialResponse,
}

impl ClosedLoop {
    /// Opens `count` connections to `target`.
    ///
    /// # Errors
    /// It takes none.
    pub fn open(target: SocketAddr, count: usize) -> Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).context("making an epoll")?;
        let mut connections = Vec::with_capacity(count);
        for index in 0..count {
            let stream = connect(target)?;
            stream
                .set_nonblocking(true)
                .context("making a connection non-blocking")?;
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&poll, &stream, data, epoll::EventFlags::IN).context("watching a connection")?;
            connections.push(LoopConnection {
                stream,
                answer: PartialResponse::default(),
            });
        }
        Ok(Self {
            connections,
            poll,
            buffer: vec![0; BUFFER],
        })
    }

    /// Sends `request` over every connection until `more`, given the answers so far, says no; the number of
    /// answers.
    ///
    /// # Errors
    /// An answer is not 200, or does not come.
    pub fn run(&mut self, request: &[u8], mut more: impl FnMut(u64) -> bool) -> Result<u64> {
        for connection in &mut self.connections {
            connection.send(request)?;
        }
        let mut under_way = self.connections.len();
        let mut answers = 0;
        let mut events = Vec::with_capacity(self.connections.len());
        let mut heard = Instant::now();
        while under_way > 0 {
            let timeout = rustix::event::Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            events.clear();
            match epoll::wait(
                &self.poll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&timeout),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("waiting for answers"),
            }
            if !events.is_empty() {
                heard = Instant::now();
            } else if heard.elapsed() > TIME_OUT {
                bail!("{under_way} calls without an answer");
            }
            let goes_on = more(answers);
            for event in &events {
                let index = usize::try_from(event.data.u64()).context("the number of a connection")?;
                let connection = &mut self.connections[index];
                match connection.receive(&mut self.buffer)? {
                    None => {}
                    Some(200) => {
                        answers += 1;
                        if goes_on {
                            connection.send(request)?;
                        } else {
                            under_way -= 1;
                        }
                    }
                    Some(status) => bail!("status {status}"),
                }
            }
        }
        Ok(answers)
    }
}

impl LoopConnection {
    fn send(&mut self, request: &[u8]) -> Result<()> {
        let sent = self.stream.write(request).context("sending a call")?;
        // A request is far smaller than a socket's buffer.
        if sent < request.len() {
            bail!("a call could not be sent as a whole");
        }
        Ok(())
    }

    /// Reads what is there; the status once the answer is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<Option<u16>> {
        match self.stream.read(buffer) {
            Ok(0) => bail!("the gateway has closed a connection"),
            Ok(length) => self.answer.take(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error).context("reading an answer"),
        }
    }
}

/// An answer that is being read.
#[derive(Debug, Default)]
struct PartialResponse {
    head: Vec<u8>,
    status: Option<u16>,
    /// Bytes of the body still to come; `None`: it is in chunks.
    left: Option<u64>,
    /// The last bytes of a body in chunks.
    end: Vec<u8>,
}

impl PartialResponse {
    fn take(&mut self, mut bytes: &[u8]) -> Result<Option<u16>> {
        if self.status.is_none() {
            self.head.extend_from_slice(bytes);
            let Some(head) = parse_head(&self.head)? else {
                return Ok(None);
            };
            bytes = &bytes[bytes.len() - (self.head.len() - head.length)..];
            self.head.clear();
            self.end.clear();
            self.status = Some(head.status);
            self.left = match head.body_length {
                None if head.chunked => None,
                length => Some(length.context("an answer without a length")?),
            };
        }
        let is_over = match &mut self.left {
            Some(left) => {
                *left = left
                    .checked_sub(bytes.len() as u64)
                    .context("more than the answer has")?;
                *left == 0
            }
            None => {
                let kept = bytes.len().saturating_sub(LAST_CHUNK.len());
                self.end.extend_from_slice(&bytes[kept..]);
                let gone = self.end.len().saturating_sub(LAST_CHUNK.len());
                self.end.drain(..gone);
                self.end == LAST_CHUNK
            }
        };
        Ok(self.status.take_if(|_| is_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_where_they_say() {
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for whole in [sized, chunked] {
            for at in 1..whole.len() {
                let mut answer = PartialResponse::default();
                assert_eq!(
                    answer.take(&whole.as_bytes()[..at]).unwrap(),
                    None,
                    "{whole} {at}"
                );
                assert_eq!(
                    answer.take(&whole.as_bytes()[at..]).unwrap(),
                    Some(200),
                    "{whole} {at}"
                );
                assert_eq!(answer.take(whole.as_bytes()).unwrap(), Some(200), "{whole} again");
            }
        }
    }
}
