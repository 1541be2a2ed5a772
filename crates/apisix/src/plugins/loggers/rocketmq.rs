//! `rocketmq-logger`: gives entries to a topic of a RocketMQ cluster.

use super::{BatchOptions, base, common};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::Config;
use weir_plugins::logger::target::{Credentials, Nameserver, RocketmqTarget, Target, nameserver_port};

/// The plugin `rocketmq-logger`.
pub struct RocketmqLogger;

/// The group of producers that APISIX belongs to.
const GROUP: &str = "apisixLogProducer";

#[derive(Deserialize)]
struct Options {
    nameserver_list: Vec<String>,
    topic: String,
    key: Option<String>,
    tag: Option<String>,
    timeout: u64,
    use_tls: bool,
    access_key: String,
    secret_key: String,
    meta_format: String,
}

/// The server of `host:port`.
fn nameserver(text: &str) -> Nameserver {
    let known = text.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = port.parse().ok()?;
        Some(Nameserver { host, port })
    });
    known.unwrap_or_else(|| Nameserver {
        host: text.to_owned(),
        port: nameserver_port(),
    })
}

impl PluginAdapter for RocketmqLogger {
    common!("rocketmq-logger", 402, printed);

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        if options.meta_format == "origin" {
            notes.not_available("meta_format", "the request as it came");
        }
        let servers = options.nameserver_list.iter();
        let batch: BatchOptions = read(config)?;
        serde_json::to_value(Config {
            target: Target::Rocketmq(RocketmqTarget {
                nameservers: servers.map(|text| nameserver(text)).collect(),
                topic: options.topic,
                key: options.key,
                tag: options.tag,
                group: GROUP.to_owned(),
                tls: options.use_tls,
                verify_tls: false,
                credentials: (!options.access_key.is_empty()).then_some(Credentials {
                    access_key: options.access_key,
                    secret_key: options.secret_key,
                }),
                timeout_ms: options.timeout.saturating_mul(1000),
            }),
            form: batch.form(),
            batch: batch.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
