//! What the queues and senders of log entries have in common: names, buffers and the snapshot.

use crate::buffer::Buffers;
use crate::dns::Resolver;
use crate::shared::Shared;
use std::rc::Rc;
use std::sync::Arc;

/// What queues have in common.
pub struct SinkContext {
    pub shared: Arc<Shared>,
    pub resolver: Rc<Resolver>,
    pub buffers: Buffers,
}
