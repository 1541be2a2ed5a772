//! Records of Kafka for filters: a filter says which topics are read, and how; the engine reads them.
//!
//! Offsets are kept at the brokers under the name of a group, as a consumer does that is the only one of its group: it
//! joins no group, so that no partitions are shared out.

use crate::log::LogSasl;
use crate::response::Reply;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A cluster, and who the gateway is to it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KafkaCluster {
    /// Brokers that know where topics are: names or addresses, and ports. They are asked in order.
    pub brokers: Vec<(String, u16)>,
    /// Whether brokers are met over TLS, and then whether their certificates must be good.
    pub tls: Option<bool>,
    /// Who the gateway is to the brokers.
    pub sasl: Option<LogSasl>,
}

impl fmt::Debug for KafkaCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KafkaCluster")
            .field("brokers", &self.brokers)
            .finish_non_exhaustive()
    }
}

/// Where a group begins in a partition that it has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaStart {
    /// With the oldest record.
    Earliest,
    /// With the records that come from now on.
    Latest,
}

/// Topics to read.
#[derive(Debug, Clone)]
pub struct KafkaSource {
    /// Where they are.
    pub cluster: KafkaCluster,
    /// Their names.
    pub topics: Vec<String>,
    /// Where a group begins.
    pub start: KafkaStart,
    /// Whether the brokers keep how far a group has come; else each reader begins at `start`.
    pub keeps_offsets: bool,
    /// Bytes that are asked for at once. A single batch may be larger.
    pub max_bytes: usize,
    /// Records that are given at once at most.
    pub max_records: usize,
    /// How long brokers wait for a record if there is none.
    pub wait: Duration,
    /// The longest that brokers may take beyond that.
    pub timeout: Duration,
}

/// The next records for a group.
#[derive(Debug, Clone)]
pub struct KafkaRead {
    /// The topics.
    pub source: Arc<KafkaSource>,
    /// The name of the group.
    pub group: String,
}

/// The records of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaPartition {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// The offset behind the last record that all replicas have.
    pub high_watermark: i64,
    /// The offset of the first record of an open transaction, or the same as above.
    pub last_stable_offset: i64,
    /// The records.
    pub records: Vec<KafkaRecord>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaRecord {
    /// Its place in the partition.
    pub offset: i64,
    /// Its time, in Unix milliseconds.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value; `None`: it says that there is nothing of this key any more.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Why there are no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaFailure {
    /// The brokers have not answered in time.
    Timeout,
    /// They cannot be reached, or they refuse.
    Unavailable,
    /// Records stand there in a form that the gateway cannot read: compressed, or that of brokers before 0.11.
    Unreadable,
}

/// The result of [`KafkaWork::Read`], which the filter takes by
/// [`FilterState::take_answer`](crate::FilterState::take_answer). Partitions without records are left out.
pub type KafkaAnswer = Result<Vec<KafkaPartition>, KafkaFailure>;

/// How records stand in a stream.
pub trait KafkaForm: Send + Sync {
    /// Appends the records of a partition.
    fn write(&self, partition: &KafkaPartition, out: &mut Vec<u8>);
}

/// A stream of records.
pub struct KafkaEvents {
    /// What is read.
    pub read: KafkaRead,
    /// The head of the response, and what is sent at once.
    pub reply: Reply,
    /// How records are written.
    pub form: Arc<dyn KafkaForm>,
    /// What is sent when no record has come for so long, so that a client that has gone is noticed.
    pub idle: (Duration, &'static [u8]),
}

impl fmt::Debug for KafkaEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KafkaEvents")
            .field("read", &self.read)
            .finish_non_exhaustive()
    }
}

/// What the engine does with Kafka.
#[derive(Debug)]
pub enum KafkaWork {
    /// Reads once and calls the filter again, which finds a [`KafkaAnswer`]. Offsets are stored before it does: what is
    /// read is not read again. Readers of the same group take turns.
    Read(KafkaRead),
    /// Answers the call with a stream that ends with the client. Offsets are stored when records have been sent. If
    /// brokers cannot be reached, the filter is called again and finds a failure.
    Events(Box<KafkaEvents>),
}
