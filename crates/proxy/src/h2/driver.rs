//! The task of a connection to an upstream, from the first bytes until it ends. Which calls go on it is
//! [`super::pool`]'s to say.

use super::connection::{Connection, Http2State};
use crate::limits::LINGER;
use crate::timer::Timer;
use std::io;
use std::task::Poll;
use std::time::Instant;

/// Waits until the server has said how many calls it takes at once.
///
/// # Errors
/// `ConnectionReset` when it says something else, or goes.
pub async fn greet(wire: &Connection) -> io::Result<()> {
    std::future::poll_fn(|context| {
        let is_over = wire.poll_in(context).is_ready();
        if let Poll::Ready(Err(error)) = wire.poll_out(context) {
            return Poll::Ready(Err(error));
        }
        match is_over {
            true => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            false if wire.with(|state| state.is_open_for_calls()) => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await
}

/// Lets the connection work until it ends, which it does once the pool has dropped it and no call is left.
pub async fn drive(wire: &Connection, is_kept: impl Fn() -> bool) {
    let mut farewell: Option<Timer> = None;
    let ended = std::future::poll_fn(|context| {
        let is_over = wire.poll_in(context).is_ready();
        let is_done = is_over || !is_kept();
        if !is_over && is_done {
            wire.with(Http2State::go_away);
        }
        match wire.poll_out(context) {
            Poll::Ready(written) if is_done || written.is_err() => Poll::Ready(written),
            Poll::Pending if is_over => Poll::Ready(Ok(())),
            Poll::Pending if is_done => {
                // It may never read what is left.
                let timer = farewell.get_or_insert_with(|| Timer::new(Instant::now(), LINGER));
                timer.poll_expired(context).map(Ok)
            }
            _ => Poll::Pending,
        }
    })
    .await;
    wire.lose();
    if let Err(error) = ended {
        tracing::debug!(%error, "an upstream's HTTP/2 connection has ended");
        return;
    }
    // A server that does not read the GOAWAY will not miss it.
    std::future::poll_fn(|context| {
        let _is_told = wire.poll_end(context);
        Poll::Ready(())
    })
    .await;
}
