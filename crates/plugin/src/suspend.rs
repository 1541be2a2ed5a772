//! Suspension: the event or time that a call waits for before its filter runs again.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// Something to wait for: an event, a time, or whichever comes first. The engine lets go of it when the client goes
/// meanwhile.
pub struct Suspend {
    /// The event; `None`: only the time counts.
    pub event: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// The longest time to wait.
    pub at_most: Duration,
}

impl Suspend {
    /// Waits for an event, but not longer than this.
    pub fn event(event: impl Future<Output = ()> + 'static, at_most: Duration) -> Self {
        Self {
            event: Some(Box::pin(event)),
            at_most,
        }
    }

    /// Waits for so long.
    pub fn time(time: Duration) -> Self {
        Self {
            event: None,
            at_most: time,
        }
    }
}

impl fmt::Debug for Suspend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.event.is_some() { "an event" } else { "time" };
        write!(formatter, "Wait({what}, {:?})", self.at_most)
    }
}
