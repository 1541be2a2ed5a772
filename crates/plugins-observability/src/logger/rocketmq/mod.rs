//! A topic of a RocketMQ cluster, as configurations describe it. The exchange with its servers is in `producer`, the
//! wire format in `wire`.

mod producer;
mod wire;

use producer::Producer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::{LogBroker, LogProducer, LogProtocol, LogSink};

/// A topic of a RocketMQ cluster (4 or newer, by its remoting protocol). A batch is one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RocketmqTarget {
    /// Name servers that know where the topic is.
    #[schemars(length(min = 1))]
    pub nameservers: Vec<Nameserver>,
    /// The topic.
    #[schemars(length(min = 1))]
    pub topic: String,
    /// The key of the messages, by which they can be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Their tag, by which consumers can select them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The group of producers that the gateway belongs to.
    pub group: String,
    /// Whether servers are reached over TLS.
    pub tls: bool,
    /// Whether their certificates are verified.
    pub verify_tls: bool,
    /// Who the gateway is to the servers; absent: it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// The longest that sending a batch may take, in milliseconds.
    pub timeout_ms: u64,
}

/// A name server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nameserver {
    /// Name or address.
    pub host: String,
    /// Port.
    #[serde(default = "usual_port")]
    pub port: u16,
}

/// The port of name servers, if the configuration names none.
pub fn usual_port() -> u16 {
    9876
}

/// A user of a RocketMQ cluster. `Debug` does not show the secret key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The user's access key.
    pub access_key: String,
    /// The key that requests are signed with.
    pub secret_key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Default for RocketmqTarget {
    fn default() -> Self {
        Self {
            nameservers: Vec::new(),
            topic: String::new(),
            key: None,
            tag: None,
            group: "weir".into(),
            tls: false,
            verify_tls: true,
            credentials: None,
            timeout_ms: 10_000,
        }
    }
}

impl RocketmqTarget {
    /// The description for the engine.
    ///
    /// # Errors
    /// Says which field is wrong, and what was expected.
    pub fn sink(&self) -> Result<LogSink, (&'static str, &'static str)> {
        if self.nameservers.is_empty() {
            return Err(("nameservers", "expected at least one"));
        }
        if self.topic.is_empty() {
            return Err(("topic", "expected a topic"));
        }
        for text in [&self.key, &self.tag].into_iter().flatten() {
            // These two separate properties of a message.
            if text.contains(['\u{1}', '\u{2}']) {
                return Err(("key", "expected a key and a tag without control characters"));
            }
        }
        let id = serde_json::to_string(self).map_err(|_| ("topic", "expected text"))?;
        Ok(LogSink::Rocketmq(LogBroker {
            id,
            name: format!("the topic {}", self.topic),
            tls: self.tls.then_some(self.verify_tls),
            timeout: Duration::from_millis(self.timeout_ms.max(1)),
            protocol: Arc::new(Protocol(Arc::new(self.clone()))),
        }))
    }
}

struct Protocol(Arc<RocketmqTarget>);

impl LogProtocol for Protocol {
    fn producer(&self) -> Box<dyn LogProducer> {
        Box::new(Producer::new(Arc::clone(&self.0)))
    }
}
