//! `chaitin-waf`: `safeline-waf` of the catalogue. The detectors stand in the plugin's metadata.

use super::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape, read};
use crate::schema::Schema;
use crate::translate::vars;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_model::Predicate;
use weir_plugins::safeline_waf::{self, Config, Mode, Node};

/// The plugin `chaitin-waf`.
pub struct ChaitinWaf;

const NAME: &str = "chaitin-waf";
const SCHEMAS: &str = include_str!("schemas/chaitin-waf.json");

#[derive(Deserialize)]
struct Options {
    mode: Option<Mode>,
    r#match: Option<Vec<Match>>,
    append_waf_resp_header: bool,
    append_waf_debug_header: bool,
    config: Option<Connection>,
}

#[derive(Deserialize)]
struct Match {
    vars: Vec<Value>,
}

/// Where a field is left out, the client of the detector has a value of its own, whatever the metadata say.
#[derive(Default, Deserialize)]
struct Connection {
    connect_timeout: Option<i64>,
    send_timeout: Option<i64>,
    read_timeout: Option<i64>,
    req_body_size: Option<i64>,
    keepalive_size: Option<i64>,
    keepalive_timeout: Option<i64>,
    real_client_ip: Option<bool>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    nodes: Vec<MetadataNode>,
    mode: Option<Mode>,
    #[serde(default)]
    config: Connection,
}

#[derive(Deserialize)]
struct MetadataNode {
    host: String,
    port: u64,
}

/// Milliseconds that a step of the exchange may take.
fn milliseconds(of: Option<i64>) -> u64 {
    of.map_or(1_000, |time| u64::try_from(time).unwrap_or(0))
}

/// A detector that can be reached.
fn node(node: MetadataNode, notes: &mut Warnings) -> Option<Node> {
    let port = u16::try_from(node.port)
        .ok()
        .filter(|_| !node.host.starts_with("unix:"));
    if port.is_none() {
        let message = format!(
            "the metadata's node {}:{} is left out: it cannot be reached",
            node.host, node.port
        );
        notes.warn("config", message);
    }
    Some(Node {
        host: node.host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: port?,
    })
}

/// The conditions of which one must hold; none: all calls are checked.
fn conditions(matches: Vec<Match>, notes: &mut Warnings) -> Vec<Predicate> {
    let mut conditions = Vec::with_capacity(matches.len());
    for one in matches {
        match vars::compile(&one.vars) {
            Ok(Some(condition)) => conditions.push(condition),
            // It always holds.
            Ok(None) => return Vec::new(),
            Err(fault) => notes.error("match", fault.to_string()),
        }
    }
    conditions
}

impl PluginAdapter for ChaitinWaf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn priority(&self) -> i64 {
        2700
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "schema"));
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "metadata_schema"));
        Some(&SHAPE)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let matches = config.get("match").and_then(Value::as_array);
        for one in matches.into_iter().flatten() {
            let vars = one.get("vars").and_then(Value::as_array);
            let fault = match vars {
                Some(vars) => vars::check(vars).err(),
                None => Some("missing argument rule".to_owned()),
            };
            if let Some(fault) = fault {
                return Err(format!("failed to validate the 'vars' expression: {fault}"));
            }
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "safeline-waf"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let metadata: Metadata = match context.metadata.get(NAME) {
            Some(metadata) => read(metadata)?,
            None => {
                notes.warn("mode", "there are no metadata with detectors: calls are refused");
                Metadata::default()
            }
        };
        let of_metadata = metadata.config.real_client_ip;
        let connection = options.config.unwrap_or(metadata.config);
        let timeouts = [
            connection.connect_timeout,
            connection.send_timeout,
            connection.read_timeout,
        ];
        let timeout_ms: u64 = timeouts.map(milliseconds).iter().sum();
        let body_size = connection.req_body_size.unwrap_or(1024).max(0);
        let max_body_bytes = usize::try_from(body_size)
            .unwrap_or(usize::MAX)
            .saturating_mul(1024);
        if max_body_bytes > safeline_waf::MAX_BODY {
            notes.warn("config", "of a body, the detector sees at most 8 MiB");
        }
        let nodes = metadata.nodes.into_iter();
        let nodes: Vec<Node> = nodes.filter_map(|found| node(found, notes)).collect();
        if nodes.len() > safeline_waf::MAX_NODES {
            let message = format!(
                "the first {} nodes of the metadata are asked",
                safeline_waf::MAX_NODES
            );
            notes.warn("config", message);
        }
        serde_json::to_value(Config {
            nodes: nodes.into_iter().take(safeline_waf::MAX_NODES).collect(),
            mode: options.mode.or(metadata.mode).unwrap_or(Mode::Monitor),
            matches: conditions(options.r#match.unwrap_or_default(), notes),
            header: options
                .append_waf_resp_header
                .then(|| "X-APISIX-CHAITIN-WAF".to_owned()),
            debug_headers: options.append_waf_debug_header,
            max_body_bytes: max_body_bytes.min(safeline_waf::MAX_BODY),
            real_client_ip: connection.real_client_ip.or(of_metadata).unwrap_or(true),
            timeout_ms: timeout_ms.clamp(1, safeline_waf::MAX_TIMEOUT_MS),
            pool_size: connection.keepalive_size.unwrap_or(256).try_into().unwrap_or(0),
            pool_idle_timeout_ms: connection
                .keepalive_timeout
                .unwrap_or(60_000)
                .try_into()
                .unwrap_or(0),
        })
    }
}
