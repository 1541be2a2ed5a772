//! The rings of finished calls, if analytics are on: each worker has its own, and writes a record of numbers at the
//! end of a call. Names stand in the snapshots, which the reader of the rings is given.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_telemetry::calls::{CallRings, RingReader, Sampling};

/// The rings of all workers, and the snapshots that give their numbers a meaning.
pub struct Calls<S> {
    /// Times in records count from here.
    started: Instant,
    /// The names of plugins, in order.
    plugins: Box<[&'static str]>,
    /// Names of request headers that records of sampled calls include, in small letters.
    headers: Box<[String]>,
    sampling: Arc<Sampling>,
    reader: Arc<RingReader>,
    state: Mutex<SnapshotQueue<S>>,
}

struct SnapshotQueue<S> {
    rings: Vec<Arc<CallRings>>,
    /// Snapshots that were published and not handed over yet.
    published: Vec<Arc<S>>,
}

impl<S> Calls<S> {
    /// Rings for a gateway whose plugins have these names.
    pub fn new(plugins: impl IntoIterator<Item = &'static str>) -> Self {
        let mut plugins: Vec<&'static str> = plugins.into_iter().collect();
        plugins.sort_unstable();
        Self {
            started: Instant::now(),
            plugins: plugins.into(),
            headers: Box::default(),
            sampling: Arc::default(),
            reader: Arc::default(),
            state: Mutex::new(SnapshotQueue {
                rings: Vec::new(),
                published: Vec::new(),
            }),
        }
    }

    /// The same, with the values of these request headers in the records of sampled calls. Their names are in small
    /// letters.
    #[must_use]
    pub fn with_headers(self, headers: Vec<String>) -> Self {
        Self {
            headers: headers.into(),
            ..self
        }
    }

    fn state(&self) -> MutexGuard<'_, SnapshotQueue<S>> {
        // Every change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rings for one more worker.
    pub(crate) fn worker(&self) -> Arc<CallRings> {
        let (sampling, reader) = (Arc::clone(&self.sampling), Arc::clone(&self.reader));
        let rings = Arc::new(CallRings::new(sampling, reader));
        self.state().rings.push(Arc::clone(&rings));
        rings
    }

    /// Notes a snapshot before any call is served by it.
    pub fn note_published(&self, published: &Arc<S>) {
        self.state().published.push(Arc::clone(published));
    }

    /// The present thread is the one that reads the rings: it is unparked when there is much to read.
    pub fn are_read_here(&self) {
        self.reader.is_here();
    }

    /// The rings of all workers. One thread may read them.
    pub fn rings(&self) -> Vec<Arc<CallRings>> {
        self.state().rings.clone()
    }

    /// Snapshots that were published since the last time.
    pub fn take_published(&self) -> Vec<Arc<S>> {
        std::mem::take(&mut self.state().published)
    }

    /// How many calls the request log takes.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// For how long there have been rings: the time that records are of.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The name of a plugin.
    pub fn plugin(&self, number: u16) -> &'static str {
        self.plugins.get(usize::from(number)).map_or("", |name| name)
    }
}

/// The rings of a worker, and what it shares with the others.
pub struct WorkerCalls<S> {
    rings: Arc<CallRings>,
    shared: Arc<Calls<S>>,
}

impl<S> WorkerCalls<S> {
    /// Rings for one more worker.
    pub fn new(shared: &Arc<Calls<S>>) -> Self {
        Self {
            rings: shared.worker(),
            shared: Arc::clone(shared),
        }
    }

    /// The rings.
    #[inline]
    pub fn rings(&self) -> &CallRings {
        &self.rings
    }

    /// A time in the form of records, in microseconds.
    #[inline]
    pub fn time(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.shared.started).as_micros() as u64
    }

    /// Names of request headers that records of sampled calls include.
    pub fn headers(&self) -> &[String] {
        &self.shared.headers
    }

    /// The number of a plugin.
    #[inline]
    pub fn plugin(&self, name: &str) -> Option<u16> {
        let place = self.shared.plugins.binary_search(&name).ok()?;
        u16::try_from(place).ok()
    }
}
