//! A limit for frames without effect: empty DATA, SETTINGS, PING, PRIORITY, WINDOW_UPDATE while there is enough room,
//! frames of unknown types. Each is allowed and cheap, but an endless sequence would keep a worker busy.

use crate::frame::Code;
use std::time::{Duration, Instant};

/// Most such frames within a while, beyond those that go with calls and their bodies.
const MOST: i64 = 3000;
/// The most credit for bytes that were sent: a client with large windows may read them later.
const MOST_CREDIT: i64 = 100_000;
const WHILE: Duration = Duration::from_secs(10);
/// The bytes of bodies sent per frame with which a peer may answer: many peers announce small windows.
const BYTES_SENT: usize = 512;

/// The frames of one connection that carried nothing.
#[derive(Debug)]
pub struct UselessFrames {
    /// Below zero: bytes were sent that the peer has not answered with frames yet.
    count: i64,
    since: Instant,
}

impl UselessFrames {
    /// For a connection that begins now.
    pub fn since(now: Instant) -> Self {
        Self { count: 0, since: now }
    }

    /// Notes one. The clock is read for one in three thousand.
    ///
    /// # Errors
    /// The code with which the connection is to end.
    pub fn note(&mut self, now: impl FnOnce() -> Instant) -> Result<(), Code> {
        self.count += 1;
        if self.count <= MOST {
            return Ok(());
        }
        let now = now();
        let is_slow = now.saturating_duration_since(self.since) >= WHILE;
        *self = Self::since(now);
        match is_slow {
            true => Ok(()),
            false => Err(Code::ENHANCE_YOUR_CALM),
        }
    }

    /// The peer has sent a head, or a part of a body.
    pub fn note_use(&mut self) {
        self.earn(4);
    }

    /// So many bytes of a body were sent to the peer.
    pub fn note_sent(&mut self, bytes: usize) {
        self.earn(2 + i64::try_from(bytes / BYTES_SENT).unwrap_or(MOST_CREDIT));
    }

    fn earn(&mut self, credit: i64) {
        self.count = (self.count - credit).max(-MOST_CREDIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_frames_are_bounded_within_a_while() {
        let start = Instant::now();
        for (seconds, uses, sent, is_good) in [
            (0, 0, 0, false),
            (9, 0, 0, false),
            (10, 0, 0, true),
            (0, 1, 0, true),
            (0, 0, 1, true),
        ] {
            let mut idle = UselessFrames::since(start);
            for _ in 0..MOST {
                assert_eq!(idle.note(|| unreachable!("the bound is not reached")), Ok(()));
            }
            (0..uses).for_each(|_| idle.note_use());
            (0..sent).for_each(|_| idle.note_sent(1));
            let last = idle.note(|| start + Duration::from_secs(seconds));
            assert_eq!(last.is_ok(), is_good, "{seconds} {uses} {sent}");
        }
    }

    /// A client with large windows accepts a whole body at once, and acknowledges its parts as it reads them.
    #[test]
    fn frames_for_a_body_may_come_after_all_of_it() {
        let mut idle = UselessFrames::since(Instant::now());
        idle.note_sent(8 << 20);
        for _ in 0..16_000 {
            assert_eq!(idle.note(Instant::now), Ok(()));
        }
    }

    /// A client that reads a body may acknowledge each small part of it.
    #[test]
    fn a_large_body_pays_for_the_frames_that_it_needs() {
        let mut idle = UselessFrames::since(Instant::now());
        for _ in 0..10_000 {
            idle.note_sent(16_384);
            for _ in 0..32 {
                assert_eq!(idle.note(Instant::now), Ok(()));
            }
        }
    }
}
