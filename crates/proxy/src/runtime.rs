//! The resources of all connections of a worker, whatever they carry: buffers, parts of streams that others have used,
//! counters and limits. Below calls: it knows no pool of connections, no resolver and no route.

use crate::buffer::Buffers;
use crate::object_pool::ObjectPool;
use crate::shared::Shared;
use std::sync::Arc;
use weir_http2::{FieldList, StreamBuffers};
use weir_telemetry::metrics::WorkerMetrics;

/// Most parts of streams that wait for their next use.
const MAX_IDLE_OBJECTS: usize = 1024;

/// The resources that the connections of one worker share.
pub struct Runtime {
    pub shared: Arc<Shared>,
    pub metrics: Arc<WorkerMetrics>,
    pub buffers: Buffers,
    /// For the heads of streams.
    pub lists: SpareLists,
    /// Of streams of HTTP/2 that are over.
    pub stream_buffers: ObjectPool<Box<StreamBuffers>>,
}

impl Runtime {
    /// One without anything spare.
    pub fn new(shared: &Arc<Shared>, metrics: &Arc<WorkerMetrics>) -> Self {
        Self {
            shared: Arc::clone(shared),
            metrics: Arc::clone(metrics),
            buffers: Buffers::default(),
            lists: SpareLists::default(),
            stream_buffers: ObjectPool::new(MAX_IDLE_OBJECTS),
        }
    }

    /// Frees some that were not needed for a while.
    pub fn trim(&self) {
        self.buffers.trim();
        drop(self.lists.0.trim());
        drop(self.stream_buffers.trim());
    }
}

/// Field lists of a worker that wait for their next use.
pub struct SpareLists(ObjectPool<Box<FieldList>>);

impl Default for SpareLists {
    fn default() -> Self {
        Self(ObjectPool::new(MAX_IDLE_OBJECTS))
    }
}

impl SpareLists {
    /// An empty list.
    #[inline]
    pub fn take(&self) -> Box<FieldList> {
        self.0
            .take()
            .unwrap_or_else(|| Box::new(FieldList::with_usual_room()))
    }

    /// Takes a list back.
    #[inline]
    pub fn give(&self, mut list: Box<FieldList>) {
        if list.is_worth_keeping() {
            list.clear();
            self.0.give(list);
        }
    }
}
