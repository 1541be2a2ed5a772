//! The results of log entries that plugins have sent to other places, and how many wait to be sent.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of targets: the label `target` of `weir_log_entries_total` and `weir_log_retries_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSinkKind {
    /// A file.
    File,
    /// An HTTP server.
    Http,
    /// A gRPC server.
    Grpc,
    /// A topic of a Kafka cluster.
    Kafka,
    /// A topic of a RocketMQ cluster.
    Rocketmq,
    /// A TCP server.
    Tcp,
    /// A UDP server.
    Udp,
    /// A socket of this machine.
    Local,
}

impl LogSinkKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::File,
        Self::Http,
        Self::Grpc,
        Self::Kafka,
        Self::Rocketmq,
        Self::Tcp,
        Self::Udp,
        Self::Local,
    ];

    /// The label's value.
    pub const fn label(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Kafka => "kafka",
            Self::Rocketmq => "rocketmq",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Local => "local",
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
    retries: AtomicU64,
}

/// What entries are counted as while they wait: a name, the route of their calls, and the gateway's address.
pub type WaitingLabels = (Arc<str>, String, IpAddr);

/// The most combinations of labels that are counted.
const MAX_WAITING: usize = 10_000;

/// An entry that waits; it no longer does when this is dropped.
#[derive(Debug)]
pub struct WaitingEntry {
    count: Arc<AtomicU64>,
    /// Whether, since the last look at all labels, there are some of which no entry waits any more.
    has_idle: Arc<AtomicBool>,
}

impl Drop for WaitingEntry {
    fn drop(&mut self) {
        if self.count.fetch_sub(1, Relaxed) == 1 {
            self.has_idle.store(true, Relaxed);
        }
    }
}

/// Counts of entries by the kind of their target.
#[derive(Debug, Default)]
pub struct LogSinkStats {
    counts: [Counts; LogSinkKind::ALL.len()],
    waiting: Mutex<BTreeMap<WaitingLabels, Arc<AtomicU64>>>,
    has_idle: Arc<AtomicBool>,
}

impl LogSinkStats {
    /// Counts an entry that waits; `None`: too many labels are counted already.
    pub fn add_waiting(&self, labels: WaitingLabels) -> Option<WaitingEntry> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING && !waiting.contains_key(&labels) {
            // Not for each entry while a server takes none.
            if self.has_idle.swap(false, Relaxed) {
                waiting.retain(|_, count| count.load(Relaxed) > 0);
            }
            if waiting.len() >= MAX_WAITING {
                return None;
            }
        }
        let count = waiting.entry(labels).or_default();
        count.fetch_add(1, Relaxed);
        Some(WaitingEntry {
            count: Arc::clone(count),
            has_idle: Arc::clone(&self.has_idle),
        })
    }

    /// How many entries wait, by labels; those of which none waits any more are told too.
    pub fn waiting(&self) -> Vec<(WaitingLabels, u64)> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = waiting.iter();
        counts
            .map(|(labels, count)| (labels.clone(), count.load(Relaxed)))
            .collect()
    }

    /// Notes entries that a target has taken.
    pub fn add_sent(&self, kind: LogSinkKind, entries: usize) {
        self.counts[kind as usize].sent.fetch_add(entries as u64, Relaxed);
    }

    /// Notes entries that were lost: no room was left, or the target did not take them in time.
    pub fn add_dropped(&self, kind: LogSinkKind, entries: usize) {
        self.counts[kind as usize]
            .dropped
            .fetch_add(entries as u64, Relaxed);
    }

    /// Notes that a message is sent once more.
    pub fn add_retry(&self, kind: LogSinkKind) {
        self.counts[kind as usize].retries.fetch_add(1, Relaxed);
    }

    /// Entries taken by targets of this kind.
    pub fn sent(&self, kind: LogSinkKind) -> u64 {
        self.counts[kind as usize].sent.load(Relaxed)
    }

    /// Entries lost on their way to targets of this kind.
    pub fn dropped(&self, kind: LogSinkKind) -> u64 {
        self.counts[kind as usize].dropped.load(Relaxed)
    }

    /// Messages that were sent once more to targets of this kind.
    pub fn retries(&self, kind: LogSinkKind) -> u64 {
        self.counts[kind as usize].retries.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_while_they_wait() {
        let stats = LogSinkStats::default();
        let labels = |route: usize| {
            (
                Arc::from("http logger"),
                route.to_string(),
                IpAddr::from([127, 0, 0, 1]),
            )
        };
        let first = stats.add_waiting(labels(1));
        let second = stats.add_waiting(labels(1));
        assert_eq!(stats.waiting(), [(labels(1), 2)]);
        drop(first);
        drop(second);
        assert_eq!(stats.waiting(), [(labels(1), 0)]);
    }

    #[test]
    fn labels_of_entries_that_wait_are_bounded() {
        let stats = LogSinkStats::default();
        let labels = |route: usize| (Arc::from("x"), route.to_string(), IpAddr::from([127, 0, 0, 1]));
        let kept: Vec<_> = (0..MAX_WAITING)
            .map(|route| stats.add_waiting(labels(route)).expect("there is room"))
            .collect();
        assert!(stats.add_waiting(labels(MAX_WAITING)).is_none());
        drop(kept);
        // Those of which none waits make room.
        let entry = stats.add_waiting(labels(MAX_WAITING));
        assert!(entry.is_some());
        assert_eq!(stats.waiting(), [(labels(MAX_WAITING), 1)]);
    }
}
