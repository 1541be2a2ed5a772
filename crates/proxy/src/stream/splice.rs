//! Moving bytes from one plain connection to another within the kernel (`splice(2)`), through a pipe.
//!
//! It pays where bytes come in bulk, as they are not copied into the gateway and out of it again. For small pieces
//! reading and writing is cheaper, so a direction that turns out to be a trickle goes back to that.

use crate::halves::{ReadHalf, WriteHalf};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The size that a pipe is set to. If the kernel grants less, it stays at its usual 64 KiB or less.
const PIPE_BYTES: usize = 256 * 1024;
/// Less than this in one go is a trickle.
const TRICKLE_BYTES: usize = 16 * 1024;
/// So many trickles in a row end it.
const TRICKLES: u32 = 4;

/// Pipes of one worker; directions beyond go on being copied.
const MAX_PIPES: usize = 128;

/// A pipe between two connections, and what is in it.
pub struct Pipe {
    _counted: Rc<()>,
    into: OwnedFd,
    out: OwnedFd,
    filled: usize,
    trickles: u32,
}

/// The result of one step of moving.
pub enum SpliceProgress {
    /// So many bytes have reached the other side.
    Bytes(usize),
    /// So many have, and there are too few at a time. The pipe is empty.
    Trickle(usize),
    /// The side that is read has ended. The pipe is empty.
    End,
}

impl Pipe {
    /// A pipe between two connections, counted by `all`; `None`: they are not both plain, or no pipe can be had.
    pub fn between(from: &ReadHalf, to: &WriteHalf, all: &Rc<()>) -> Option<Self> {
        let (ReadHalf::Tcp(_), WriteHalf::Tcp(_)) = (from, to) else {
            return None;
        };
        if Rc::strong_count(all) > MAX_PIPES {
            return None;
        }
        let (out, into) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok()?;
        // There is a bound on what all pipes of a user may hold; a small one will do.
        let _stays_small = fcntl_setpipe_size(&into, PIPE_BYTES);
        Some(Self {
            _counted: Rc::clone(all),
            into,
            out,
            filled: 0,
            trickles: 0,
        })
    }

    /// Moves what there is into the pipe, once it is empty, and what is in it to the other side.
    pub fn poll_move(
        &mut self,
        from: &ReadHalf,
        to: &WriteHalf,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<SpliceProgress>> {
        let (ReadHalf::Tcp(from), WriteHalf::Tcp(to)) = (from, to) else {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        };
        if self.filled == 0 {
            let from: &TcpStream = from.as_ref();
            let count = ready!(poll_until_done(from, Interest::READABLE, context, || {
                splice(from, None, &self.into, None, PIPE_BYTES, flags()).map_err(io::Error::from)
            }))?;
            if count == 0 {
                return Poll::Ready(Ok(SpliceProgress::End));
            }
            self.filled = count;
            self.trickles = match count < TRICKLE_BYTES {
                true => self.trickles + 1,
                false => 0,
            };
        }
        let to: &TcpStream = to.as_ref();
        let (filled, out) = (self.filled, &self.out);
        let count = ready!(poll_until_done(to, Interest::WRITABLE, context, || {
            splice(out, None, to, None, filled, flags()).map_err(io::Error::from)
        }))?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.filled -= count;
        Poll::Ready(Ok(match self.filled == 0 && self.trickles >= TRICKLES {
            true => SpliceProgress::Trickle(count),
            false => SpliceProgress::Bytes(count),
        }))
    }
}

fn flags() -> SpliceFlags {
    SpliceFlags::MOVE | SpliceFlags::NONBLOCK
}

/// Does `work` as soon as the connection is ready for it.
fn poll_until_done(
    stream: &TcpStream,
    interest: Interest,
    context: &mut Context<'_>,
    mut work: impl FnMut() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(match interest.is_readable() {
            true => stream.poll_read_ready(context),
            false => stream.poll_write_ready(context),
        })?;
        match stream.try_io(interest, &mut work) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
}
