//! The common part of the plugins that answer calls with records of Kafka: `kafka-consume` and `confluent-consume`.

use super::enterprise_fields::flag;
use super::kafka_fields::{Server, brokers};
use super::{UnsupportedOption, typed};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::kafka_consume::{Config, Mode, Start, Values};

/// The topics, and how calls are answered with their records.
pub const READING: &[Field] = &[
    // The topics.
    Field::new("topics", Kind::Array(&TOPIC)).required(),
    // How calls are answered.
    Field::new("mode", Kind::String)
        .or(Default::Text("http-get"))
        .check(&[Check::OneOf(&["http-get", "server-sent-events", "websocket"])]),
    // Whether offsets are stored.
    Field::new("commit_strategy", Kind::String)
        .or(Default::Text("auto"))
        .check(&[Check::OneOf(&["auto", "off"])]),
    // Whether `latest` means what it says.
    flag("enforce_latest_offset_reset", false),
    // What values are.
    Field::new("message_deserializer", Kind::String)
        .or(Default::Text("noop"))
        .check(&[Check::OneOf(&["json", "noop"])]),
    // The name of the group.
    Field::new("consumer_group", Kind::Record(&GROUP)).required(),
    // Code that changes records.
    Field::new("message_by_lua_functions", Kind::Array(&FUNCTION)),
    // Where records go that cannot be read.
    Field::new("enable_dlq", Kind::Boolean),
    // The topic for them.
    Field::new("dlq_topic", Kind::String),
    // A name for the brokers.
    Field::new("cluster_name", Kind::String),
    // A registry of forms of values.
    Field::new("schema_registry", Kind::Any),
];

/// Where a group begins; the plugins have different defaults.
pub const fn start(default: &'static str) -> Field {
    Field::new("auto_offset_reset", Kind::String)
        .or(Default::Text(default))
        .check(&[Check::OneOf(&["earliest", "latest"])])
}

const FUNCTION: Field = Field::element(Kind::String);
const TOPIC: Field = Field::element(Kind::Record(&TOPIC_FIELDS));
static TOPIC_FIELDS: Record = Record::of(&[
    Field::new("name", Kind::String).required(),
    Field::new("schema_registry", Kind::Any),
]);
static GROUP: Record = Record::of(&[
    Field::new("mode", Kind::String)
        .or(Default::Text("random"))
        .check(&[Check::OneOf(&["kong_consumer", "manual", "random"])]),
    Field::new("consumer_group_id", Kind::String),
]);

/// What is read.
#[derive(Deserialize)]
pub struct Reading {
    #[serde(default)]
    bootstrap_servers: Vec<Server>,
    topics: Vec<Topic>,
    mode: String,
    commit_strategy: String,
    enforce_latest_offset_reset: bool,
    message_deserializer: String,
    auto_offset_reset: String,
    consumer_group: Group,
    message_by_lua_functions: Option<Vec<String>>,
    enable_dlq: Option<bool>,
    #[serde(default)]
    schema_registry: Value,
}

#[derive(Deserialize)]
struct Topic {
    name: String,
    #[serde(default)]
    schema_registry: Value,
}

#[derive(Deserialize)]
struct Group {
    mode: String,
    consumer_group_id: Option<String>,
}

impl Reading {
    /// Reads it from a configuration.
    pub fn read(config: &Value) -> Result<Self, UnsupportedOption> {
        typed(config)
    }

    /// The plugin that reads it, without who the gateway is to the brokers.
    pub fn plugin(self) -> Result<Config, UnsupportedOption> {
        let unfit = |field: &'static str, what: &str| UnsupportedOption {
            field,
            what: what.to_owned(),
        };
        let names_registry = |registry: &Value| registry["confluent"]["url"].is_string();
        if names_registry(&self.schema_registry) {
            return Err(unfit("schema_registry", "a registry of schemas"));
        }
        if self
            .topics
            .iter()
            .any(|topic| names_registry(&topic.schema_registry))
        {
            return Err(unfit("topics", "a registry of schemas"));
        }
        if self.message_by_lua_functions.is_some_and(|code| !code.is_empty()) {
            return Err(unfit("message_by_lua_functions", "code in Lua"));
        }
        if self.enable_dlq == Some(true) {
            return Err(unfit("enable_dlq", "a topic for records that cannot be read"));
        }
        let group = match self.consumer_group.mode.as_str() {
            "manual" => match self.consumer_group.consumer_group_id {
                Some(group) => Some(group),
                None => return Err(unfit("consumer_group", "a group without a name")),
            },
            "kong_consumer" => return Err(unfit("consumer_group", "a group for each consumer")),
            _ => None,
        };
        Ok(Config {
            brokers: brokers(&self.bootstrap_servers)?,
            topics: self.topics.into_iter().map(|topic| topic.name).collect(),
            mode: match self.mode.as_str() {
                "websocket" => return Err(unfit("mode", "records over WebSockets")),
                "server-sent-events" => Mode::Events,
                _ => Mode::Once,
            },
            values: match self.message_deserializer.as_str() {
                "json" => Values::Json,
                _ => Values::Text,
            },
            // Without the other option, `latest` begins with the oldest record too.
            start: match (self.auto_offset_reset.as_str(), self.enforce_latest_offset_reset) {
                ("latest", true) => Start::Latest,
                _ => Start::Earliest,
            },
            store_offsets: self.commit_strategy != "off",
            group,
            ..Config::default()
        })
    }
}
