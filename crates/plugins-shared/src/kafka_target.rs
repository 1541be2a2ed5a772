//! A topic of a Kafka cluster, as configurations describe it. It opens no connection: the engine does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_plugin::{KafkaCluster, LogKafka, LogSasl, LogSink, SaslMechanism};

/// A topic of a Kafka cluster (0.11 or newer).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KafkaTarget {
    /// Brokers that know where the topic is.
    #[schemars(length(min = 1))]
    pub brokers: Vec<Broker>,
    /// The topic.
    #[schemars(length(min = 1, max = 249))]
    pub topic: String,
    /// The key of the records, which all go to one partition then; absent: they go to one partition after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who must have stored records: 1 the leader, -1 all replicas in step; 0: none is waited for.
    #[schemars(range(min = -1, max = 1))]
    pub acks: i16,
    /// Whether brokers are reached over TLS.
    pub tls: bool,
    /// Whether their certificates are verified.
    pub verify_tls: bool,
    /// Who the gateway is to the brokers; absent: it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sasl: Option<Sasl>,
    /// An entry is a record; else a batch is one.
    pub record_per_entry: bool,
    /// The longest that sending a batch may take, in milliseconds.
    pub timeout_ms: u64,
}

/// A broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Broker {
    /// Name or address.
    pub host: String,
    /// Port.
    #[serde(default = "usual_port")]
    pub port: u16,
}

fn usual_port() -> u16 {
    9092
}

/// A user of a Kafka cluster. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sasl {
    /// How the password is shown.
    #[serde(default)]
    pub mechanism: Mechanism,
    /// The user's name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl std::fmt::Debug for Sasl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sasl").finish_non_exhaustive()
    }
}

/// How a password is shown to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Mechanism {
    /// As it is.
    #[default]
    #[serde(rename = "PLAIN")]
    Plain,
    /// By a proof that one has it, with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// The same with SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl Default for KafkaTarget {
    fn default() -> Self {
        Self {
            brokers: Vec::new(),
            topic: String::new(),
            key: None,
            acks: 1,
            tls: false,
            verify_tls: true,
            sasl: None,
            record_per_entry: true,
            timeout_ms: 10_000,
        }
    }
}

impl KafkaTarget {
    /// The description for the engine.
    ///
    /// # Errors
    /// Says which field is wrong, and what was expected.
    pub fn sink(&self) -> Result<LogSink, (&'static str, &'static str)> {
        let tls = self.tls.then_some(self.verify_tls);
        let cluster = cluster(&self.brokers, tls, self.sasl.as_ref())?;
        if !is_topic(&self.topic) {
            return Err(("topic", TOPIC_EXPECTED));
        }
        if !(-1..=1).contains(&self.acks) {
            return Err(("acks", "expected -1, 0 or 1"));
        }
        Ok(LogSink::Kafka(LogKafka {
            cluster,
            topic: self.topic.clone(),
            key: self.key.clone().map(String::into_bytes),
            acks: self.acks,
            each_line: self.record_per_entry,
            timeout: Duration::from_millis(self.timeout_ms.max(1)),
        }))
    }
}

/// What a topic's name is.
pub const TOPIC_EXPECTED: &str = "expected 1 to 249 letters, digits and '._-'";

/// Whether this can be the name of a topic.
pub fn is_topic(name: &str) -> bool {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    (1..=249).contains(&name.len()) && name.chars().all(is_plain)
}

/// The description of a cluster for the engine; `tls`: whether certificates are verified, if there is TLS.
///
/// # Errors
/// Says which field is wrong, and what was expected.
pub fn cluster(
    brokers: &[Broker],
    tls: Option<bool>,
    sasl: Option<&Sasl>,
) -> Result<KafkaCluster, (&'static str, &'static str)> {
    if brokers.is_empty() {
        return Err(("brokers", "expected at least one"));
    }
    let is_good = |host: &str| !host.is_empty() && !host.contains(['/', '@', ' ']);
    if !brokers.iter().all(|broker| is_good(&broker.host)) {
        return Err(("brokers", "expected names or addresses"));
    }
    let is_without_nul = |sasl: &Sasl| !sasl.user.contains('\0') && !sasl.password.contains('\0');
    if !sasl.is_none_or(is_without_nul) {
        return Err(("sasl", "expected a user and a password"));
    }
    Ok(KafkaCluster {
        brokers: brokers
            .iter()
            .map(|broker| (broker.host.clone(), broker.port))
            .collect(),
        tls,
        sasl: sasl.map(|sasl| LogSasl {
            mechanism: match sasl.mechanism {
                Mechanism::Plain => SaslMechanism::Plain,
                Mechanism::ScramSha256 => SaslMechanism::ScramSha256,
                Mechanism::ScramSha512 => SaslMechanism::ScramSha512,
            },
            user: sasl.user.clone(),
            password: sasl.password.clone(),
        }),
    })
}
