//! `kafka-logger`: gives entries to a topic of a Kafka cluster.

use super::{BatchOptions, base, common, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, array, boolean, having, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::target::{Broker, KafkaTarget, Mechanism, Sasl, Target};

/// The plugin `kafka-logger`.
pub struct KafkaLogger;

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    broker_list: BTreeMap<String, u16>,
    #[serde(default)]
    brokers: Vec<BrokerOptions>,
    kafka_topic: String,
    key: Option<String>,
    required_acks: i16,
    timeout: u64,
    tls: Option<Tls>,
    meta_format: String,
}

#[derive(Deserialize)]
struct BrokerOptions {
    host: String,
    port: u16,
    sasl_config: Option<SaslOptions>,
}

#[derive(Deserialize)]
struct SaslOptions {
    #[serde(default)]
    mechanism: Mechanism,
    user: String,
    password: String,
}

#[derive(Deserialize)]
struct Tls {
    #[serde(default)]
    verify: bool,
}

fn broker() -> Schema {
    let sasl = object([
        (
            "mechanism",
            text()
                .options(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
                .or("PLAIN"),
        ),
        ("user", text()),
        ("password", text()),
    ]);
    object([
        ("host", text()),
        ("port", integer().at_least(1).at_most(65_535)),
        ("sasl_config", sasl.required(["user", "password"])),
    ])
    .required(["host", "port"])
}

impl PluginAdapter for KafkaLogger {
    common!("kafka-logger", 403);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let count = |default: u32| integer().at_least(1).or(default);
            let ports = object([])
                .min_fields(1)
                .each_field(".*", integer().at_least(1).at_most(65_535));
            let shape = object([
                ("meta_format", text().options(["default", "origin"]).or("default")),
                ("broker_list", ports),
                ("brokers", array(broker()).min_items(1).unique()),
                ("kafka_topic", text()),
                ("producer_type", text().options(["async", "sync"]).or("async")),
                ("required_acks", integer().numbers([1, -1]).or(1)),
                ("key", text()),
                ("timeout", count(3)),
                ("tls", object([("verify", boolean().or(false))])),
                ("producer_batch_num", count(200)),
                ("producer_batch_size", integer().at_least(0).or(1_048_576)),
                ("producer_max_buffering", count(50_000)),
                ("producer_time_linger", count(1)),
                ("meta_refresh_interval", count(30)),
                ("cluster_name", count(1)),
                ("api_version", integer().numbers([0, 1, 2]).or(1)),
            ])
            .one_of([
                having(["broker_list", "kafka_topic"]),
                having(["brokers", "kafka_topic"]),
            ]);
            with_batches(with_entry(shape), "kafka logger")
        });
        &SHAPE
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let mut options: Options = read(config)?;
        if options.meta_format == "origin" {
            notes.not_available("meta_format", "the request as it came");
        }
        let sasl = options
            .brokers
            .iter_mut()
            .find_map(|broker| broker.sasl_config.take());
        let listed = options
            .broker_list
            .into_iter()
            .map(|(host, port)| Broker { host, port });
        let brokers = options.brokers.into_iter().map(|broker| Broker {
            host: broker.host,
            port: broker.port,
        });
        let batch: BatchOptions = read(config)?;
        serde_json::to_value(Config {
            target: Target::Kafka(KafkaTarget {
                brokers: brokers.chain(listed).collect(),
                topic: options.kafka_topic,
                key: options.key,
                acks: options.required_acks,
                tls: options.tls.is_some(),
                verify_tls: options.tls.is_some_and(|tls| tls.verify),
                sasl: sasl.map(|sasl| Sasl {
                    mechanism: sasl.mechanism,
                    user: sasl.user,
                    password: sasl.password,
                }),
                // As in the original, a batch is one record.
                record_per_entry: false,
                timeout_ms: options.timeout.saturating_mul(1000),
            }),
            form: batch.form(),
            batch: batch.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
