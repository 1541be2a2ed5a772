//! Bytes both ways between a client and a target, until both have ended or nothing moves any more.
//!
//! Both directions read into one buffer that all sessions of a worker share, and write from it at once. Only what a
//! slow side does not take is kept, and then nothing more is read from the other: an idle session holds no buffer, and
//! a slow one a piece of a bounded size. Bytes of plain connections that come in bulk are moved by the kernel
//! ([`super::splice`]).

use super::report::SessionRecord;
use super::splice::{Pipe, SpliceProgress};
use crate::halves::{ReadHalf, WriteHalf};
use crate::timer::Timer;
use crate::worker::Worker;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_telemetry::metrics::StreamResult;

/// The most that is read in one go, and so the most that is kept of one direction.
pub const PIECE_BYTES: usize = 64 * 1024;
/// Pieces of this size in a row make the bytes of a direction bulk.
const BULK_PIECES: u32 = 3;

/// One side of a session.
pub struct RelaySide {
    pub read: ReadHalf,
    pub write: WriteHalf,
}

/// One direction.
#[derive(Default)]
struct Direction {
    /// The bytes that were read and not written yet, from `written` on.
    waiting: Vec<u8>,
    written: usize,
    /// Full pieces in a row.
    full_pieces: u32,
    /// Lets the kernel move the bytes.
    pipe: Option<Pipe>,
    /// Bytes written.
    carried: u64,
    /// The side that is read has ended, and the other knows.
    is_over: bool,
}

/// Carries bytes until the session is over. `first` was read from the client before.
pub async fn run(
    worker: &Worker,
    mut client: RelaySide,
    mut target: RelaySide,
    first: Vec<u8>,
    idle: Duration,
    report: &mut SessionRecord,
) -> StreamResult {
    let mut up = Direction {
        waiting: first,
        ..Direction::default()
    };
    let mut down = Direction::default();
    let mut timer = Timer::new(Instant::now(), idle);
    let result = std::future::poll_fn(|context| {
        let upward = up.poll(&mut client.read, &mut target.write, context, worker);
        let downward = down.poll(&mut target.read, &mut client.write, context, worker);
        let (sent, received) = (std::mem::take(&mut up.carried), std::mem::take(&mut down.carried));
        if sent + received > 0 {
            report.carried(sent, received);
            timer.set(Instant::now(), idle);
        }
        match (upward, downward) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => {
                tracing::debug!(%error, client = %report.client, "a stream has failed");
                Poll::Ready(StreamResult::Broken)
            }
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(StreamResult::Done),
            _ => timer.poll_expired(context).map(|()| StreamResult::Idle),
        }
    })
    .await;
    if result == StreamResult::Broken {
        // Neither side may take what it got for the whole.
        client.write.reset();
        target.write.reset();
    }
    result
}

impl Direction {
    /// Carries until a side is not ready, or the one that is read has ended.
    fn poll(
        &mut self,
        from: &mut ReadHalf,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<io::Result<()>> {
        while !self.is_over {
            if self.written < self.waiting.len() {
                let rest = &self.waiting[self.written..];
                let count = ready!(Pin::new(&mut *to).poll_write(context, rest))?;
                self.wrote(count)?;
                self.written += count;
                if self.written == self.waiting.len() {
                    (self.waiting, self.written) = (Vec::new(), 0);
                }
                continue;
            }
            let is_at_end = match &mut self.pipe {
                Some(pipe) => match ready!(pipe.poll_move(from, to, context))? {
                    SpliceProgress::Bytes(count) => {
                        self.carried += count as u64;
                        false
                    }
                    SpliceProgress::Trickle(count) => {
                        self.carried += count as u64;
                        (self.pipe, self.full_pieces) = (None, 0);
                        false
                    }
                    SpliceProgress::End => true,
                },
                None => ready!(self.poll_piece(from, to, context, worker))?,
            };
            if is_at_end {
                ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                self.is_over = true;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads a piece and writes what of it can be written; says whether there was none, as the side has ended.
    fn poll_piece(
        &mut self,
        from: &mut ReadHalf,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<io::Result<bool>> {
        let mut piece = worker.stream_buffer.borrow_mut();
        // Sessions of streams alone need it.
        piece.resize(PIECE_BYTES, 0);
        let mut space = ReadBuf::new(&mut piece);
        match ready!(Pin::new(&mut *from).poll_read(context, &mut space)) {
            Ok(()) => {}
            // Many peers end a connection under TLS without a good-bye. What they have sent before must arrive.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(true)),
            Err(error) => return Poll::Ready(Err(error)),
        }
        let read = space.filled();
        if read.is_empty() {
            return Poll::Ready(Ok(true));
        }
        self.full_pieces = match read.len() == PIECE_BYTES {
            true => self.full_pieces + 1,
            false => 0,
        };
        let count = match Pin::new(&mut *to).poll_write(context, read) {
            Poll::Ready(count) => count?,
            Poll::Pending => 0,
        };
        if count < read.len() {
            self.waiting = read[count..].to_vec();
        } else if self.full_pieces >= BULK_PIECES {
            self.pipe = Pipe::between(from, to, &worker.splice_pipes);
            self.full_pieces = 0;
        }
        self.carried += count as u64;
        Poll::Ready(Ok(false))
    }

    fn wrote(&mut self, count: usize) -> io::Result<()> {
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.carried += count as u64;
        Ok(())
    }
}
