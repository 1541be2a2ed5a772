//! `http-dubbo`: `dubbo` of the catalogue, spoken with the nodes of the route's upstream.

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::dubbo::{Config, MAX_ANSWER, MAX_BODY, MAX_TIMEOUT_MS};

/// The plugin `http-dubbo`.
pub struct HttpDubbo;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/http-dubbo.json"));

#[derive(Deserialize)]
struct Options {
    service_name: String,
    service_version: String,
    method: String,
    params_type_desc: String,
    serialized: bool,
    serialization_header_key: Option<String>,
    max_req_body_size: usize,
    connect_timeout: f64,
    send_timeout: f64,
    read_timeout: f64,
}

/// The original's default of `max_req_body_size`, which is more than Weir holds in memory: it is not warned of.
const DEFAULT_BODY: usize = 64 << 20;

/// Whole milliseconds, within what can be configured.
fn milliseconds(time: f64) -> u64 {
    (time as u64).clamp(1, MAX_TIMEOUT_MS)
}

impl PluginAdapter for HttpDubbo {
    fn name(&self) -> &'static str {
        "http-dubbo"
    }

    fn priority(&self) -> i64 {
        504
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            last: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn plugin(&self) -> &'static str {
        "dubbo"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        if options.max_req_body_size > MAX_BODY && options.max_req_body_size != DEFAULT_BODY {
            notes.warn(
                "max_req_body_size",
                format!("bodies have at most {MAX_BODY} bytes"),
            );
        }
        serde_json::to_value(Config {
            service: options.service_name,
            version: options.service_version,
            method: options.method,
            parameter_types: options.params_type_desc,
            serialized: options.serialized,
            serialized_header: options.serialization_header_key,
            max_body_bytes: options.max_req_body_size.min(MAX_BODY),
            max_answer_bytes: MAX_ANSWER,
            connect_timeout_ms: milliseconds(options.connect_timeout),
            write_timeout_ms: milliseconds(options.send_timeout),
            read_timeout_ms: milliseconds(options.read_timeout),
        })
    }
}
