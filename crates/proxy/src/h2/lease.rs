//! A connection to an upstream that takes calls, and a call's place on it. Which call gets one is [`super::pool`]'s to say.

use super::connection;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;
use weir_model::KeepalivePool;

/// A connection that takes calls.
pub struct OpenConnection {
    pub(super) wire: Rc<connection::Connection>,
    /// Calls under way.
    pub(super) active: Cell<usize>,
    /// Calls so far.
    pub(super) calls: Cell<u64>,
    pub(super) idle_since: Cell<Instant>,
    /// Takes no more calls.
    pub(super) is_closed: Cell<bool>,
}

impl OpenConnection {
    /// Whether it takes one more call.
    pub fn has_room(&self, bounds: &KeepalivePool) -> bool {
        let is_worn = bounds.requests > 0 && self.calls.get() >= bounds.requests;
        let has_stream = |state: &mut connection::Http2State| state.has_room_beside(self.active.get());
        !self.is_closed.get() && !is_worn && self.wire.with(has_stream)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // It ends with its last call.
        self.wire.with(connection::Http2State::wake_driver);
    }
}

/// A call's place on a connection.
pub struct Lease(pub(super) Rc<OpenConnection>);

impl Lease {
    /// No further call goes on this connection.
    pub fn close(&self) {
        self.0.is_closed.set(true);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let active = self.0.active.get() - 1;
        self.0.active.set(active);
        if active == 0 {
            self.0.idle_since.set(Instant::now());
        }
    }
}
