//! `loggly`: sends entries to Loggly, as RFC 5424 over UDP or in bulk over HTTP.

use super::{BatchOptions, PHASES, base, check_conditions};
use crate::plugins::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::{Form, StructuredSyslog};
use weir_plugins::logger::target::{HttpTarget, Target, UdpTarget};

/// The plugin `loggly`.
pub struct Loggly;

const SCHEMAS: &str = include_str!("../schemas/loggly.json");

#[derive(Deserialize)]
struct Options {
    customer_token: String,
    severity: String,
    tags: Vec<String>,
    ssl_verify: bool,
    severity_map: Option<Map<String, Value>>,
}

/// The target of entries, by the metadata.
#[derive(Deserialize)]
#[serde(default)]
struct Server {
    host: String,
    port: u16,
    protocol: String,
    timeout: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            host: "logs-01.loggly.com".to_owned(),
            port: 514,
            protocol: "syslog".to_owned(),
            timeout: 5_000,
        }
    }
}

fn number_of(severity: &str) -> u8 {
    let names = [
        "EMEGR", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG",
    ];
    let place = names.iter().position(|name| name.eq_ignore_ascii_case(severity));
    place.map_or(6, |place| place as u8)
}

impl PluginAdapter for Loggly {
    fn name(&self) -> &'static str {
        "loggly"
    }

    fn priority(&self) -> i64 {
        411
    }

    fn phases(&self) -> Phases {
        PHASES
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            // A pattern that looks ahead is checked below.
            let text = SCHEMAS.replace("^(?!tag=)[ -~]*", "^[ -~]*");
            printed_shape(Box::leak(text.into_boxed_str()), "schema")
        });
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "metadata_schema"));
        Some(&SHAPE)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let tags = config.get("tags").and_then(Value::as_array);
        let mut tags = tags.into_iter().flatten().filter_map(Value::as_str).zip(1..);
        match tags.find(|(tag, _)| tag.starts_with("tag=")) {
            Some((tag, number)) => Err(format!(
                "property \"tags\" validation failed: failed to validate item {number}: failed to match pattern \
                 \"^(?!tag=)[ -~]*\" with \"{tag}\""
            )),
            None => check_conditions(config),
        }
    }

    fn plugin(&self) -> &'static str {
        "logger"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let server: Server = context
            .metadata
            .get(self.name())
            .map_or_else(|| Ok(Server::default()), read)?;
        if options.severity_map.is_some_and(|map| !map.is_empty()) {
            notes.warn("severity_map", "all entries have the severity of 'severity'");
        }
        let (target, form) = match server.protocol.as_str() {
            "syslog" => {
                let severity = number_of(&options.severity);
                let tags = options.tags.into_iter().map(|tag| ("tag".to_owned(), tag));
                let form = StructuredSyslog {
                    name: "apisix".to_owned(),
                    facility: 1,
                    success: severity,
                    client_error: severity,
                    server_error: severity,
                    data_id: format!("{}@41058", options.customer_token),
                    data: tags.collect(),
                    ..StructuredSyslog::default()
                };
                let target = Target::Udp(UdpTarget {
                    host: server.host,
                    port: server.port,
                    line_bytes: None,
                });
                (target, Form::StructuredSyslog(form))
            }
            protocol => {
                let start = match server.host.starts_with("http") {
                    true => String::new(),
                    false => format!("{protocol}://"),
                };
                let target = Target::Http(HttpTarget {
                    url: format!("{start}{}/bulk/{}/tag/bulk", server.host, options.customer_token),
                    headers: BTreeMap::from([("X-LOGGLY-TAG".to_owned(), options.tags.join(", "))]),
                    timeout_ms: server.timeout,
                    verify_tls: options.ssl_verify,
                    ..HttpTarget::default()
                });
                (target, Form::Separated)
            }
        };
        let is_syslog = matches!(form, Form::StructuredSyslog(_));
        let mut batch = read::<BatchOptions>(config)?.batch();
        if is_syslog {
            // A datagram for each entry.
            batch.max_entries = 1;
            batch.delay_ms = 0;
        }
        serde_json::to_value(Config {
            target,
            form,
            batch,
            ..base(self.name(), config, context, notes)?
        })
    }
}
