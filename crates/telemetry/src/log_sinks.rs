//! The results of log entries that plugins have sent to other places.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// Counts of entries by the kind of their target.
#[derive(Debug, Default)]
pub struct LogSinkStats([Counts; LogSinkKind::ALL.len()]);

impl LogSinkStats {
    /// Notes entries that a target has taken.
    pub fn add_sent(&self, kind: LogSinkKind, entries: usize) {
        self.0[kind as usize].sent.fetch_add(entries as u64, Relaxed);
    }

    /// Notes entries that were lost: no room was left, or the target did not take them in time.
    pub fn add_dropped(&self, kind: LogSinkKind, entries: usize) {
        self.0[kind as usize].dropped.fetch_add(entries as u64, Relaxed);
    }

    /// Notes that a message is sent once more.
    pub fn add_retry(&self, kind: LogSinkKind) {
        self.0[kind as usize].retries.fetch_add(1, Relaxed);
    }

    /// Entries taken by targets of this kind.
    pub fn sent(&self, kind: LogSinkKind) -> u64 {
        self.0[kind as usize].sent.load(Relaxed)
    }

    /// Entries lost on their way to targets of this kind.
    pub fn dropped(&self, kind: LogSinkKind) -> u64 {
        self.0[kind as usize].dropped.load(Relaxed)
    }

    /// Messages that were sent once more to targets of this kind.
    pub fn retries(&self, kind: LogSinkKind) -> u64 {
        self.0[kind as usize].retries.load(Relaxed)
    }
}
