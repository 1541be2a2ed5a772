//! The two directions of a plain TCP connection.
//!
//! Both try first and ask afterwards: the runtime is asked to watch a socket only once that has nothing to give or no
//! room to take. A notification for each attempt would cost more. The system calls are made without the C
//! library, whose wrappers look each time whether their thread is to be cancelled.

use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::coop::has_budget_remaining;

/// Reads that one task makes in a row before others get their turn.
const MAX_STREAK: u8 = 64;
/// Writes up to this size are tried without asking. Of a larger one a part may be left, and then the runtime should
/// know that there is no room.
const MAX_TRIED: usize = 16 * 1024;

/// The direction from a peer.
pub struct TcpRead {
    half: OwnedReadHalf,
    /// Reads that gave something since the last that did not.
    streak: u8,
    /// Whom the runtime will wake at the socket's next event; `None`: it may have had one since it was asked.
    watcher: Cell<Option<Watcher>>,
}

/// Distinguishes wakers. The runtime holds the waker itself, so no other one can be in its place meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Watcher {
    data: usize,
    vtable: usize,
}

impl Watcher {
    #[inline]
    fn of(context: &Context<'_>) -> Self {
        Self {
            data: context.waker().data().addr(),
            vtable: std::ptr::from_ref(context.waker().vtable()).addr(),
        }
    }
}

impl TcpRead {
    pub fn new(half: OwnedReadHalf) -> Self {
        Self {
            half,
            streak: 0,
            watcher: Cell::new(None),
        }
    }

    /// Ready when a read may give something, as far as the runtime knows.
    #[inline]
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.stream().try_io(Interest::READABLE, || Ok(())).is_ok() {
            self.watcher.set(None);
            return Poll::Ready(Ok(()));
        }
        self.poll_event(context)
    }

    /// Makes the runtime wake the task at the next event. It is not asked again for what it does already: that would
    /// take a lock.
    #[inline]
    fn poll_event(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let watcher = Some(Watcher::of(context));
        if self.watcher.get() == watcher {
            return Poll::Pending;
        }
        // Without budget the runtime lets the task go round once more, and has not been asked.
        let is_asked = has_budget_remaining();
        let ready = self.stream().poll_read_ready(context);
        self.watcher
            .set(watcher.filter(|_| is_asked && ready.is_pending()));
        ready
    }

    /// The same as [`TcpRead::poll_readable`]; if nothing is there, the other tasks have had their turn.
    #[inline]
    pub fn poll_readable_fairly(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ready = self.poll_readable(context);
        if ready.is_pending() {
            self.streak = 0;
        }
        ready
    }

    /// See [`super::ReadHalf::is_dead`].
    pub fn is_dead(&self) -> bool {
        // An event may be left over from the last response; only a read shows the truth.
        self.watcher.set(None);
        let read = self.stream().try_read(&mut [0; 1]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    #[inline]
    pub fn poll_read(&mut self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.streak >= MAX_STREAK {
            self.streak = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            self.watcher.set(None);
            match receive(self.stream(), space.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.streak = 0;
                    ready!(self.poll_event(context))?;
                }
                received => {
                    self.streak += 1;
                    return Poll::Ready(received.map(|count| space.advance(count)));
                }
            }
        }
    }

    fn stream(&self) -> &TcpStream {
        self.half.as_ref()
    }
}

impl AsRef<TcpStream> for TcpRead {
    /// The socket itself. Who has it may take events from it.
    fn as_ref(&self) -> &TcpStream {
        self.watcher.set(None);
        self.stream()
    }
}

/// Reads what is there.
#[inline]
fn receive(stream: &TcpStream, space: &mut [u8]) -> io::Result<usize> {
    let mut drained = None;
    let received = stream.try_io(Interest::READABLE, || {
        let (count, _) = recv(stream, &mut *space, RecvFlags::empty())?;
        if 0 < count && count < space.len() {
            // Less than there was room for: the next read has to wait for an event, which this makes known to the
            // runtime.
            drained = Some(count);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    });
    drained.map_or(received, Ok)
}

/// The direction to a peer.
pub struct TcpWrite(OwnedWriteHalf);

impl TcpWrite {
    pub fn new(half: OwnedWriteHalf) -> Self {
        Self(half)
    }

    /// Writes what the system takes at once; 0: nothing, or it should be asked.
    #[inline]
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_TRIED {
            return Ok(0);
        }
        let stream: &TcpStream = self.0.as_ref();
        let sent = stream.try_io(Interest::WRITABLE, || {
            Ok(send(stream, bytes, SendFlags::NOSIGNAL)?)
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }

    #[inline]
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.try_write(bytes) {
            Ok(0) => {}
            sent => return Poll::Ready(sent),
        }
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    #[inline]
    pub fn poll_write_vectored(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }

    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    /// See [`super::WriteHalf::reset`].
    pub fn reset(self) -> io::Result<()> {
        let stream: &TcpStream = self.0.as_ref();
        let set = stream.set_zero_linger();
        // Without this the half would say a proper good-bye when it goes.
        self.0.forget();
        set
    }
}

impl AsRef<TcpStream> for TcpWrite {
    fn as_ref(&self) -> &TcpStream {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// Counts how often it wakes.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets the runtime look for events until the count is that, or what a slow machine takes is over.
    async fn until(count: &Count, wanted: usize) -> bool {
        for _ in 0..3_000 {
            if count.0.load(Ordering::Relaxed) == wanted {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        false
    }

    fn read(half: &mut TcpRead, waker: &Waker, room: usize) -> Poll<Vec<u8>> {
        let mut bytes = vec![0; room];
        let mut space = ReadBuf::new(&mut bytes);
        let read = half.poll_read(&mut Context::from_waker(waker), &mut space);
        read.map(|read| {
            read.unwrap();
            space.filled().to_vec()
        })
    }

    #[tokio::test]
    async fn tcp_reads_are_woken_for_each_event_by_whom_waits_last() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (half, _write) = stream.into_split();
        let mut half = TcpRead::new(half);
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let wakers = counts.clone().map(Waker::from);
        let is_readable = |half: &TcpRead, waker| half.poll_readable(&mut Context::from_waker(waker));
        let mut woken = [0; 2];
        // Of a new socket the runtime knows nothing: a read is tried.
        assert!(read(&mut half, &wakers[0], 16).is_pending());
        // Each asks several times, as a call does that waits for something else too.
        for (turn, waits) in [0, 0, 1, 0, 1, 1, 0].into_iter().enumerate() {
            for _ in 0..3 {
                assert!(is_readable(&half, &wakers[1 - waits]).is_pending(), "{turn}");
                assert!(is_readable(&half, &wakers[waits]).is_pending(), "{turn}");
                assert!(read(&mut half, &wakers[waits], 16).is_pending(), "{turn}");
                assert!(is_readable(&half, &wakers[waits]).is_pending(), "{turn}");
            }
            client.write_all(b"ab").await.unwrap();
            woken[waits] += 1;
            assert!(
                until(&counts[waits], woken[waits]).await,
                "{turn}: no waker is called"
            );
            assert_eq!(counts[1 - waits].0.load(Ordering::Relaxed), woken[1 - waits]);
            assert!(is_readable(&half, &wakers[waits]).is_ready(), "{turn}");
            // A read that is full does not know whether there is more; one that is not full does.
            let room = 1 + turn % 2 * 15;
            assert_eq!(
                read(&mut half, &wakers[waits], room),
                Poll::Ready(b"ab"[..room.min(2)].to_vec())
            );
            if room == 1 {
                assert_eq!(read(&mut half, &wakers[waits], 16), Poll::Ready(b"b".to_vec()));
            }
        }
        assert!(is_readable(&half, &wakers[0]).is_pending());
        drop(client);
        assert!(until(&counts[0], woken[0] + 1).await, "the end wakes");
        assert_eq!(read(&mut half, &wakers[0], 16), Poll::Ready(Vec::new()));
    }

    #[tokio::test]
    async fn tcp_reads_are_woken_after_the_budget_of_a_task_was_spent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (half, _write) = stream.into_split();
        let mut half = TcpRead::new(half);
        let waiting = tokio::spawn(async move {
            let mut space = [0; 4];
            std::future::poll_fn(|context| {
                while has_budget_remaining() {
                    let spending = std::pin::pin!(tokio::task::coop::consume_budget());
                    assert!(spending.poll(context).is_ready());
                }
                half.poll_read(context, &mut ReadBuf::new(&mut space))
            })
            .await
        });
        tokio::task::yield_now().await;
        client.write_all(b"ab").await.unwrap();
        let read = tokio::time::timeout(std::time::Duration::from_secs(30), waiting).await;
        assert!(matches!(read, Ok(Ok(Ok(())))), "{read:?}");
    }
}
