//! Message brokers that take entries. Plugins speak their protocols, without I/O of their own: the engine connects,
//! sends the bytes that it is given, and reads answers. Every answer begins with its length in four bytes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// A message broker that takes entries. Brokers with the same id are alike.
#[derive(Clone)]
pub struct LogBroker {
    /// Tells it from others: all that matters of its configuration.
    pub id: String,
    /// What the gateway's own log calls it.
    pub name: String,
    /// Whether its servers are met over TLS, and then whether their certificates must be good.
    pub tls: Option<bool>,
    /// The longest that sending a message may take.
    pub timeout: Duration,
    /// What speaks its protocol.
    pub protocol: Arc<dyn LogProtocol>,
}

/// The id may hold a password.
impl fmt::Debug for LogBroker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogBroker")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PartialEq for LogBroker {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.tls == other.tls && self.timeout == other.timeout
    }
}

impl Eq for LogBroker {}

impl Hash for LogBroker {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// A protocol by which a broker takes messages.
pub trait LogProtocol: Send + Sync {
    /// What gives messages to the broker, one after another.
    fn producer(&self) -> Box<dyn LogProducer>;
}

/// Gives messages to a broker, one after another.
pub trait LogProducer {
    /// Begins with a message. `unique` are random bytes that can name it.
    fn begin(&mut self, message: &[u8], now_ms: u64, unique: [u8; 16]);

    /// What is to be done next.
    fn next(&mut self) -> LogStep;

    /// Takes what the server has sent after a request, without its length. `false`: it is not the answer, which is still
    /// to come.
    fn take(&mut self, answer: &[u8]) -> bool;

    /// The server could not be asked, or has not answered.
    fn fail(&mut self, error: &std::io::Error);
}

/// What is to be done next with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogStep {
    /// These bytes are to be sent to this server, and its answer is to be read.
    Ask {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
        /// The bytes.
        request: Vec<u8>,
    },
    /// Nothing: the broker has taken the message.
    Done,
    /// Nothing: the broker has not taken it, and why.
    Failed(String),
}
