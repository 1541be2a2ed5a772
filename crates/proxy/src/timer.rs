//! One timer for a whole connection.
//!
//! A deadline is a value; the runtime's timer is set only when a wait really begins, and only moved when the
//! new deadline is earlier than what it is set to. A busy connection touches the timer wheel once in many
//! calls instead of once a read.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Further ahead than anything lives. A longer wait means "for ever".
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// `after` from `now`; whatever was configured, there is such a moment.
#[inline]
pub fn later(now: Instant, after: Duration) -> Instant {
    now + after.min(FOR_EVER)
}

/// A deadline that can be moved cheaply.
#[derive(Debug)]
pub struct Timer {
    deadline: Instant,
    armed: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whom the runtime's timer wakes.
    waker: Option<Waker>,
}

impl Timer {
    /// A timer whose deadline is `after` from `now`.
    pub fn new(now: Instant, after: Duration) -> Self {
        Self {
            deadline: later(now, after),
            armed: None,
            sleep: None,
            waker: None,
        }
    }

    /// Moves the deadline to `after` from `now`.
    #[inline]
    pub fn set(&mut self, now: Instant, after: Duration) {
        self.deadline = later(now, after);
    }

    /// Moves the deadline to this moment.
    #[inline]
    pub fn set_to(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Moves the deadline to `after` from now, and no further than to `latest`.
    #[inline]
    pub fn set_within(&mut self, after: Duration, latest: Option<Instant>) {
        self.set(Instant::now(), after);
        if let Some(latest) = latest {
            self.deadline = self.deadline.min(latest);
        }
    }

    /// Whether the runtime's timer is set, early enough, and will wake this task: asked for every wait, as it costs
    /// less than setting the timer again.
    #[inline]
    fn is_set_for(&self, context: &Context<'_>) -> bool {
        let is_early = self.armed.is_some_and(|armed| armed <= self.deadline);
        is_early
            && self.sleep.as_ref().is_some_and(|sleep| !sleep.is_elapsed())
            && self
                .waker
                .as_ref()
                .is_some_and(|waker| waker.will_wake(context.waker()))
    }

    /// Ready once the deadline has passed.
    pub fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_set_for(context) {
            return Poll::Pending;
        }
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
        loop {
            let sleep = match (&mut self.sleep, self.armed) {
                (Some(sleep), Some(armed)) if armed <= self.deadline => sleep,
                (Some(sleep), _) => {
                    sleep.as_mut().reset(self.deadline.into());
                    self.armed = Some(self.deadline);
                    sleep
                }
                (None, _) => {
                    self.armed = Some(self.deadline);
                    self.sleep
                        .insert(Box::pin(tokio::time::sleep_until(self.deadline.into())))
                }
            };
            match sleep.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) if Instant::now() >= self.deadline => {
                    self.armed = None;
                    return Poll::Ready(());
                }
                // It was set to an earlier deadline that has moved on since.
                Poll::Ready(()) => self.armed = None,
            }
        }
    }
}
