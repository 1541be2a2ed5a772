//! Log records of finished calls: the facts that a filter gets besides the exchange, and the targets of its entries.
//!
//! A filter renders an entry and names the target; it sends nothing. The engine collects the entries of a target in
//! batches and sends them off the request path. If a target is slow or unavailable, entries are lost, never calls.

use crate::exchange::RouteInfo;
use crate::kafka::KafkaCluster;
use crate::log_broker::LogBroker;
use crate::log_receipt::LogReceipt;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What only the engine knows of a finished call.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'c> {
    /// When the call began, in Unix milliseconds.
    pub started_ms: u64,
    /// The same in Unix microseconds.
    pub started_us: u64,
    /// The status that counts: 499 if the client left before it had the whole response.
    pub status: u16,
    /// Bytes received from the client.
    pub bytes_in: u64,
    /// Bytes sent to the client.
    pub bytes_out: u64,
    /// From when the request's head is read to the response's last byte, in microseconds.
    pub total_us: u64,
    /// From the first try to the response's head, in microseconds; `None`: no upstream was asked.
    pub upstream_us: Option<u64>,
    /// The status of the upstream's answer.
    pub upstream_status: Option<u16>,
    /// From the call's beginning to the first try, in microseconds; `None`: none was made, or the call is not traced.
    pub forwarded_us: Option<u64>,
    /// What each failed try stands for, as a status.
    pub failed_tries: &'c [u16],
    /// The failed tries, in order.
    pub failures: &'c [FailedAttempt],
    /// The target that was asked last.
    pub upstream: Option<SocketAddr>,
    /// That target's host as it is configured: an address, or a name before it is resolved.
    pub upstream_host: Option<&'c str>,
    /// The gateway's host name.
    pub hostname: &'c str,
    /// The protocol of a session of a stream route (`tcp`, `udp`, …), of which there is no request and no response;
    /// `None`: a call.
    pub session: Option<&'static str>,
}

/// A try without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The address that was asked; `None`: the target's name has none.
    pub address: Option<SocketAddr>,
    /// When it was given up, in microseconds since the call began.
    pub ended_us: u64,
    /// What the failure stands for, as a status.
    pub status: u16,
}

/// An entry on its way to a target.
#[derive(Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it goes.
    pub target: Arc<LogTarget>,
    /// Its bytes, without what stands between entries.
    pub bytes: Vec<u8>,
    /// What it is counted as while it waits to be sent; `None`: it is not.
    pub origin: Option<LogOrigin>,
    /// Confirmed when the target has taken it; `None`: no call waits for that.
    pub receipt: Option<LogReceipt>,
}

/// What entries are counted as while they wait to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOrigin {
    /// The name that the configuration gives them.
    pub name: Arc<str>,
    /// The call's route.
    pub route: Arc<RouteInfo>,
    /// The gateway's address at which the call came.
    pub address: IpAddr,
}

/// Where entries go, and how. Instances with equal targets share one queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogTarget {
    /// Who takes them.
    pub sink: LogSink,
    /// What a message is made of.
    pub joint: LogFraming,
    /// How entries wait.
    pub batching: LogBatching,
}

/// A file that entries are appended to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogFile {
    /// The process's standard output.
    StandardOutput,
    /// The process's standard error.
    StandardError,
    /// A file in the operator's folder for logs, or below it.
    In {
        /// The folder.
        folder: PathBuf,
        /// The file's name in it, of normal parts only.
        name: String,
    },
    /// One that may not be written: its path, and why. Entries are dropped.
    Forbidden(String, &'static str),
}

/// Who takes entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogSink {
    /// Appended to a file, which is created if need be.
    File {
        /// Which file.
        file: LogFile,
        /// It is opened again for each batch, so that it can be moved away.
        reopen: bool,
    },
    /// A request of HTTP/1.1 for each batch; a status of 300 or more is a failure.
    Http(LogHttp),
    /// A unary gRPC call for each batch, over an HTTP/2 connection that is kept; a status but 0 is a failure.
    Grpc(LogGrpc),
    /// A TCP connection that is kept.
    Tcp {
        /// Name or address of the server.
        host: String,
        /// Its port.
        port: u16,
        /// The server's name for TLS, and whether its certificate must be good; `None`: no TLS.
        tls: Option<(String, bool)>,
        /// The longest that connecting and sending may take.
        timeout: Duration,
    },
    /// A datagram for each message.
    Udp {
        /// Name or address of the server.
        host: String,
        /// Its port.
        port: u16,
        /// Messages are sent line by line, as many to a datagram as do not take more bytes than this; `None`: whole.
        line_bytes: Option<usize>,
    },
    /// A topic of a Kafka cluster.
    Kafka(LogKafka),
    /// A topic of a RocketMQ cluster, whose protocol a plugin speaks.
    Rocketmq(LogBroker),
    /// A datagram for each entry, to a socket of this machine.
    Local {
        /// The socket's path.
        path: String,
    },
}

/// An HTTP server that takes entries.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LogHttp {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is asked over TLS, and then whether its certificate must be good.
    pub tls: Option<bool>,
    /// The request line and the header lines, without `Content-Length` and without the empty line at the end.
    pub head: Vec<u8>,
    /// The longest that a request and its answer may take.
    pub timeout: Duration,
    /// What makes the header that shows who each request is from; `None`: the head has it, if there is any.
    pub signer: Option<LogSigner>,
}

/// What makes `Authorization` of a sink's requests. Those of the same id are alike.
#[derive(Clone)]
pub struct LogSigner {
    id: String,
    authorizer: Arc<dyn LogAuthorizer>,
}

impl LogSigner {
    /// `id` distinguishes it from signers that sign in another way.
    pub fn new(id: String, authorizer: Arc<dyn LogAuthorizer>) -> Self {
        Self { id, authorizer }
    }

    /// What signs.
    pub fn authorizer(&self) -> &dyn LogAuthorizer {
        &*self.authorizer
    }
}

impl PartialEq for LogSigner {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for LogSigner {}

impl Hash for LogSigner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// Shows who requests of a sink are from, without I/O of its own.
pub trait LogAuthorizer: Send + Sync {
    /// What the next request shows, at this time.
    fn authorize(&self, now_ms: u64) -> LogAuthorization;

    /// Takes the response to its request.
    fn take(&self, status: u16, body: &[u8], now_ms: u64);
}

/// What a request shows.
pub enum LogAuthorization {
    /// The value of `Authorization`.
    Header(String),
    /// It is known once this body has been sent to this server and the answer was taken.
    Ask(Box<LogHttp>, Vec<u8>),
    /// It cannot be sent; why.
    Fail(&'static str),
}

/// The header lines may hold a password.
impl fmt::Debug for LogHttp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogHttp")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// A gRPC server that takes entries.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LogGrpc {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is asked over TLS, and then whether its certificate must be good.
    pub tls: Option<bool>,
    /// The path of the method: `/package.Service/Method`.
    pub method: String,
    /// Metadata of the calls, names in lower case.
    pub metadata: Vec<(String, String)>,
    /// The longest that a call may take, connecting included.
    pub timeout: Duration,
}

/// The metadata may hold a token.
impl fmt::Debug for LogGrpc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogGrpc")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// A topic of a Kafka cluster.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LogKafka {
    /// The cluster.
    pub cluster: KafkaCluster,
    /// The topic.
    pub topic: String,
    /// The key of the records, which all go to one partition then.
    pub key: Option<Vec<u8>>,
    /// Who must have stored records: 1 the leader, -1 all replicas in step; 0: none is waited for.
    pub acks: i16,
    /// Each line of a message is a record; else all of it is one.
    pub each_line: bool,
    /// The longest that sending a message may take.
    pub timeout: Duration,
}

/// The keys of records are what callers have sent, at worst.
impl fmt::Debug for LogKafka {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogKafka")
            .field("cluster", &self.cluster)
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

/// A user of a Kafka cluster. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LogSasl {
    /// How the password is shown.
    pub mechanism: SaslMechanism,
    /// The user's name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for LogSasl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LogSasl").finish_non_exhaustive()
    }
}

/// How a password is shown to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SaslMechanism {
    /// As it is.
    Plain,
    /// By a proof that one has it, with SHA-256.
    ScramSha256,
    /// The same with SHA-512.
    ScramSha512,
}

/// What stands around and between the entries of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LogFraming {
    /// Before the first.
    pub before: Cow<'static, str>,
    /// Between two.
    pub between: &'static str,
    /// Behind the last.
    pub after: &'static str,
    /// A message of one entry has nothing before and behind it.
    pub bare_single: bool,
    /// Protocol Buffers around all of it, the innermost first.
    pub nesting: Vec<ProtobufWrapper>,
}

/// A message of Protocol Buffers around another: other fields, and then the inner message as a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProtobufWrapper {
    /// Fields that stand before what is inside, as they are on the wire.
    pub before: Vec<u8>,
    /// The key of the field that holds the whole in the next message: its number times 8, plus 2.
    pub key: u8,
}

/// How entries wait to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogBatching {
    /// Entries of a message at most.
    pub max_entries: usize,
    /// How long the first entry of a message waits for further ones.
    pub delay: Duration,
    /// Entries that wait at most, those that are being sent included; what comes then is dropped.
    pub max_pending: usize,
    /// Bytes that wait at most.
    pub max_pending_bytes: usize,
    /// How often a message is sent again at most; then its entries are dropped.
    pub retries: u32,
    /// How long it is tried at most.
    pub retry_for: Duration,
    /// The wait before the first retry; each further one waits twice as long, up to `max_retry_delay`.
    pub retry_delay: Duration,
    /// The longest wait before a retry.
    pub max_retry_delay: Duration,
}
