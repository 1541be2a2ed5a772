//! When each call of a constant-rate load is meant to be sent, and the reading of its response. Time is an argument.
//!
//! Latency is counted from the intended time: a call that waits because the server stalls keeps its place in the
//! schedule, so a stall shows in every call that it held up (no coordinated omission).

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::client::parse_head;

/// The longest response head that is read.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The intended times of a constant rate, handed out in order.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    start: Instant,
    rate: u32,
    next: u64,
    calls: u64,
}

impl Schedule {
    /// `rate` calls per second from `start`, during `length`.
    pub fn new(start: Instant, rate: u32, length: Duration) -> Self {
        let calls = (f64::from(rate) * length.as_secs_f64()) as u64;
        Self {
            start,
            rate,
            next: 0,
            calls,
        }
    }

    /// When the next call is meant to be sent; `None` when all have been handed out.
    pub fn next_time(&self) -> Option<Instant> {
        let nanoseconds = u128::from(self.next) * 1_000_000_000 / u128::from(self.rate);
        (self.next < self.calls).then(|| self.start + Duration::from_nanos(nanoseconds as u64))
    }

    /// Hands out the next call if its time has come.
    pub fn take_due(&mut self, now: Instant) -> Option<Instant> {
        let time = self.next_time().filter(|time| *time <= now)?;
        self.next += 1;
        Some(time)
    }

    /// Calls that have not been handed out.
    pub fn left(&self) -> u64 {
        self.calls - self.next
    }

    /// No call is due after this time.
    pub fn end_now(&mut self) {
        self.calls = self.next;
    }
}

/// Reads one response after the other from the pieces in which they arrive.
#[derive(Debug, Default)]
pub struct ResponseReader {
    head: Vec<u8>,
    status: Option<u16>,
    body_left: u64,
    /// Length in bytes of the body that was read last, or is being read.
    pub body_length: u64,
    /// The server closes the connection after the response that was read last.
    pub closes: bool,
}

impl ResponseReader {
    /// Takes the bytes that arrived; the status once the response is complete.
    ///
    /// # Errors
    /// Not HTTP/1, more than one response, or a body without a length.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Option<u16>> {
        if self.status.is_none() {
            self.head.extend_from_slice(bytes);
            let Some(head) = parse_head(&self.head)? else {
                if self.head.len() > MAX_HEAD_BYTES {
                    bail!("a response head of more than {MAX_HEAD_BYTES} bytes");
                }
                return Ok(None);
            };
            let Some(length) = head.body_length else {
                bail!("a response without Content-Length")
            };
            let in_head_buffer = self.head.len() - head.length;
            bytes = &bytes[bytes.len() - in_head_buffer..];
            self.head.clear();
            (self.status, self.body_left, self.body_length) = (Some(head.status), length, length);
            self.closes = head.closes;
        }
        if bytes.len() as u64 > self.body_left {
            bail!("more bytes than the response has");
        }
        self.body_left -= bytes.len() as u64;
        Ok(if self.body_left == 0 {
            self.status.take()
        } else {
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_keep_their_intended_time() {
        let start = Instant::now();
        let at = |microseconds| start + Duration::from_micros(microseconds);
        let mut schedule = Schedule::new(start, 10_000, Duration::from_millis(1));
        // A stall until 250 µs leaves three calls due, each with its own time.
        let cases = [
            (0, Some(0)),
            (50, None),
            (250, Some(100)),
            (250, Some(200)),
            (250, None),
            (5000, Some(300)),
        ];
        for (now, expected) in cases {
            assert_eq!(schedule.take_due(at(now)), expected.map(at), "at {now} µs");
        }
        assert_eq!(schedule.left(), 6);
        while schedule.take_due(at(5000)).is_some() {}
        assert_eq!((schedule.left(), schedule.next_time()), (0, None));
    }

    #[test]
    fn responses_in_pieces() {
        let good = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let cases = [
            (vec![good], Ok(vec![200])),
            (vec![&good[..10], &good[10..40], &good[40..]], Ok(vec![200])),
            (
                vec![good, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"],
                Ok(vec![200, 503]),
            ),
            (vec![&good[..good.len() - 1]], Ok(vec![])),
            (vec![good, "x"], Err(())),
            (vec!["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"], Err(())),
            (vec!["HTTP/1.1 200 OK\r\n\r\n"], Err(())),
            (vec!["nonsense\r\n\r\n"], Err(())),
        ];
        for (pieces, expected) in cases {
            let mut reader = ResponseReader::default();
            let mut statuses = Vec::new();
            let mut read = || -> Result<()> {
                for piece in &pieces {
                    statuses.extend(reader.take(piece.as_bytes())?);
                }
                Ok(())
            };
            let result = read().map_err(|_| ());
            assert_eq!(result.map(|()| statuses), expected, "{pieces:?}");
        }
    }
}
