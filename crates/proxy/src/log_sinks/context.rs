//! The common part of the queues and senders of log entries: names, buffers and the snapshot.

use crate::buffer::Buffers;
use crate::dialer::Dialer;
use crate::dns::Resolver;
use crate::shared::Shared;
use std::rc::Rc;
use std::sync::Arc;

/// The common part of queues.
pub struct SinkContext {
    pub shared: Arc<Shared>,
    pub resolver: Rc<Resolver>,
    pub buffers: Buffers,
}

impl SinkContext {
    /// Connects.
    pub fn dialer(&self) -> Dialer<'_> {
        Dialer {
            shared: &self.shared,
            resolver: &self.resolver,
        }
    }
}
