//! The access log: one JSON object per line, written by a thread of its own.
//!
//! The log is off unless an [`AccessLog`] is created. Each worker then formats its lines into a buffer of its own and
//! sends full buffers through a bounded queue. A worker never waits: if the queue is full because the disk or pipe is
//! slow, the buffer's lines are dropped and counted.
//!
//! Not an error log, and not a place for secrets: query strings, credentials and bodies never get here.

mod entry;
mod json;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

pub use entry::AccessEntry;

/// A buffer is handed over when it holds this much.
const BATCH_BYTES: usize = 32 * 1024;
/// Buffers that may wait for the writer; all further ones are dropped.
const QUEUE_BATCHES: usize = 64;
/// Written buffers that a worker gets back for reuse. One that has grown beyond twice its size does not
/// come back, so one giant line costs no memory for good.
const SPARE_BATCHES: usize = 2;

/// Why an access log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum AccessLogError {
    /// The file cannot be created or appended to.
    #[error("cannot open access log {path}")]
    Open {
        /// The file as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The writer's thread cannot be started.
    #[error("cannot start the access log's writer")]
    Thread(#[source] io::Error),
}

/// The results of the lines of an access log.
#[derive(Debug, Default)]
pub struct AccessLogStats {
    written: AtomicU64,
    dropped: AtomicU64,
}

impl AccessLogStats {
    /// Lines written.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Lines lost, because the queue was full or writing failed.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

/// Whole lines on their way to the writer.
struct Batch {
    bytes: Vec<u8>,
    lines: u64,
    /// Takes the emptied buffer back to its worker.
    spare: SyncSender<Vec<u8>>,
}

/// A running access log.
#[derive(Debug)]
pub struct AccessLog {
    queue: SyncSender<Batch>,
    stats: Arc<AccessLogStats>,
    /// Hangs up when the writer has ended.
    ended: Receiver<()>,
}

impl AccessLog {
    /// Appends to a file, which is created if need be. Rotate it by copy and truncate.
    ///
    /// # Errors
    /// If the file cannot be opened for appending, or the thread not be started.
    pub fn to_file(path: impl AsRef<Path>) -> Result<Self, AccessLogError> {
        let path = path.as_ref();
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|source| AccessLogError::Open {
                path: path.to_owned(),
                source,
            })?;
        Self::to_writer(file)
    }

    /// Writes to standard output.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn to_stdout() -> Result<Self, AccessLogError> {
        Self::to_writer(io::stdout())
    }

    /// Writes to any sink, which may block: it does so on the log's own thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn to_writer(sink: impl Write + Send + 'static) -> Result<Self, AccessLogError> {
        let (queue, batches) = mpsc::sync_channel(QUEUE_BATCHES);
        let (alive, ended) = mpsc::sync_channel(0);
        let stats = Arc::new(AccessLogStats::default());
        let counts = stats.clone();
        thread::Builder::new()
            .name("weir-access-log".to_owned())
            .spawn(move || {
                write_batches(&batches, sink, &counts);
                drop(alive);
            })
            .map_err(AccessLogError::Thread)?;
        Ok(Self { queue, stats, ended })
    }

    /// A handle for one worker.
    pub fn handle(&self) -> AccessLogHandle {
        let (spare_sender, used_buffers) = mpsc::sync_channel(SPARE_BATCHES);
        AccessLogHandle {
            queue: self.queue.clone(),
            spare_sender,
            used_buffers,
            stats: self.stats.clone(),
            buffer: Vec::new(),
            lines: 0,
            oldest_ms: 0,
        }
    }

    /// Counts of written and dropped lines, for the metrics.
    pub fn stats(&self) -> Arc<AccessLogStats> {
        self.stats.clone()
    }

    /// Waits until every line handed over is written: drop all handles first. Returns `false` when that took
    /// longer than `timeout`.
    pub fn close(self, timeout: Duration) -> bool {
        drop(self.queue);
        self.ended.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }
}

fn write_batches(batches: &Receiver<Batch>, mut sink: impl Write, stats: &AccessLogStats) {
    for Batch {
        mut bytes,
        lines,
        spare,
    } in batches
    {
        let outcome = sink.write_all(&bytes).and_then(|()| sink.flush());
        let count = if outcome.is_ok() {
            &stats.written
        } else {
            &stats.dropped
        };
        count.fetch_add(lines, Relaxed);
        if bytes.capacity() <= 2 * BATCH_BYTES {
            bytes.clear();
            // A worker that has used_buffers enough, or has ended, does not want it.
            let _unwanted = spare.try_send(bytes);
        }
    }
}

/// One worker's end of the access log. Dropping it hands over what it still holds.
#[derive(Debug)]
pub struct AccessLogHandle {
    queue: SyncSender<Batch>,
    spare_sender: SyncSender<Vec<u8>>,
    used_buffers: Receiver<Vec<u8>>,
    stats: Arc<AccessLogStats>,
    buffer: Vec<u8>,
    /// Lines in the buffer.
    lines: u64,
    /// Time of the buffer's first line, in Unix milliseconds.
    oldest_ms: u64,
}

impl AccessLogHandle {
    /// Logs one request. Never waits.
    pub fn log(&mut self, entry: &AccessEntry<'_>) {
        if self.lines == 0 {
            self.oldest_ms = entry.time_ms;
        }
        json::push_line(&mut self.buffer, entry);
        self.lines += 1;
        if self.buffer.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// Hands over the buffered lines if the first of them is at least `max_age_ms` old at `now_ms` (Unix
    /// milliseconds), or lies in the future because the clock was set back. For a worker's timer tick.
    pub fn flush_if_older_than(&mut self, now_ms: u64, max_age_ms: u64) {
        if now_ms
            .checked_sub(self.oldest_ms)
            .is_none_or(|age| age >= max_age_ms)
        {
            self.flush();
        }
    }

    /// Hands over the buffered lines, or drops and counts them when the writer is too far behind.
    pub fn flush(&mut self) {
        if self.lines == 0 {
            return;
        }
        let lines = std::mem::take(&mut self.lines);
        let bytes = std::mem::take(&mut self.buffer);
        let batch = Batch {
            bytes,
            lines,
            spare: self.spare_sender.clone(),
        };
        match self.queue.try_send(batch) {
            Ok(()) => self.buffer = self.used_buffers.try_recv().unwrap_or_default(),
            Err(mpsc::TrySendError::Full(batch) | mpsc::TrySendError::Disconnected(batch)) => {
                self.stats.dropped.fetch_add(lines, Relaxed);
                self.buffer = batch.bytes;
                self.buffer.clear();
                self.buffer.shrink_to(2 * BATCH_BYTES);
            }
        }
    }
}

impl Drop for AccessLogHandle {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests;
