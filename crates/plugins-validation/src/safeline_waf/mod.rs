//! `safeline-waf`: asks a detector of Chaitin's SafeLine whether a call is an attack.
//!
//! ```yaml
//! nodes: [{host: 10.0.0.5, port: 8000}]
//! mode: block
//! header: X-Waf
//! ```
//!
//! The detector is sent the call's head, and its body or the start of it. A call that it takes for an attack gets its
//! status, mostly 403, and the event's id; in the mode `monitor`, the call goes on, and the log says so.
//!
//! Security: while the detector does not answer, `block` refuses calls with 500 and `monitor` lets them go on. Of a body,
//! the detector sees no more than `max_body_bytes`. The connection to it is not encrypted.

mod filter;
mod t1k;

pub use t1k::{DetectorResponse, InvalidAnswer, Verdict, fuzz_answer, read_answer};

use filter::DetectorFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, Condition, Filter, Plugin, parse_config};

const NAME: &str = "safeline-waf";
/// Detectors of an instance at most.
pub const MAX_NODES: usize = 64;
/// The most bytes of a body that a configuration lets a detector see.
pub const MAX_BODY: usize = 8 << 20;
/// The most milliseconds that a configuration lets a call wait.
pub const MAX_TIMEOUT_MS: u64 = 60_000;

/// Configuration of `safeline-waf`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The detectors, asked in turn, at most 64. Without any, calls are refused with 500.
    #[schemars(length(max = 64))]
    pub nodes: Vec<Node>,
    /// What happens to calls that the detector takes for attacks.
    pub mode: Mode,
    /// The calls that are checked are those for which one of these conditions holds; without any, all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Predicate>,
    /// The response header that says whether a call was checked. Those whose names begin with it say more: `-TIME`,
    /// `-STATUS` and `-ACTION`. Left out: there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Whether headers also say which detector was asked, and what went wrong: `-SERVER` and `-ERROR`.
    pub debug_headers: bool,
    /// The most bytes of a body that the detector sees, at most 8 MiB. Of a longer one it sees the start.
    #[schemars(range(max = 8_388_608))]
    pub max_body_bytes: usize,
    /// The address that the detector takes for the caller's: that which is recognised behind trusted proxies, or else the
    /// one of the connection.
    pub real_client_ip: bool,
    /// The longest that a detector may take, in milliseconds.
    #[schemars(range(min = 1, max = 60_000))]
    pub timeout_ms: u64,
    /// Idle connections to a detector that a worker keeps at most; 0: none.
    pub pool_size: u32,
    /// How long they are kept, in milliseconds.
    pub pool_idle_timeout_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            mode: Mode::Block,
            matches: Vec::new(),
            header: None,
            debug_headers: false,
            max_body_bytes: 1 << 20,
            real_client_ip: true,
            timeout_ms: 3_000,
            pool_size: 256,
            pool_idle_timeout_ms: 60_000,
        }
    }
}

/// A detector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name or address.
    pub host: String,
    /// Its port.
    #[serde(default = "standard_port")]
    pub port: u16,
}

fn standard_port() -> u16 {
    8000
}

/// What happens to attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The detector is not asked.
    Off,
    /// They go on, and the log says so.
    Monitor,
    /// They are refused.
    Block,
}

/// The plugin `safeline-waf`.
#[derive(Debug)]
pub struct SafelineWaf;

impl Plugin for SafelineWaf {
    fn name(&self) -> &'static str {
        "safeline-waf"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut faults = Vec::new();
        let mut fault = |path: DocPath, message: String| faults.push(Diagnostic::error(path, message));
        let nodes = root.field("nodes");
        if config.nodes.len() > MAX_NODES {
            let message = format!("expected at most {MAX_NODES}, found {}", config.nodes.len());
            fault(nodes.clone(), message);
        }
        for (index, node) in config.nodes.iter().enumerate() {
            if node.host.is_empty()
                || node
                    .host
                    .contains(|character: char| character.is_ascii_whitespace())
            {
                let message = "expected a name or an address".to_owned();
                fault(nodes.index(index).field("host"), message);
            }
            if node.port == 0 {
                let message = "expected a port from 1 to 65535".to_owned();
                fault(nodes.index(index).field("port"), message);
            }
        }
        let mut conditions = Vec::with_capacity(config.matches.len());
        for (index, condition) in config.matches.iter().enumerate() {
            match Condition::compile(condition) {
                Ok(condition) => conditions.push(condition),
                Err(message) => fault(root.field("matches").index(index), message),
            }
        }
        if config
            .header
            .as_ref()
            .is_some_and(|name| !is_name(name.as_bytes()))
        {
            fault(root.field("header"), "expected a header name".to_owned());
        }
        if config.max_body_bytes > MAX_BODY {
            let message = format!("expected at most {MAX_BODY} bytes");
            fault(root.field("max_body_bytes"), message);
        }
        if !(1..=MAX_TIMEOUT_MS).contains(&config.timeout_ms) {
            let message = format!("expected 1 to {MAX_TIMEOUT_MS} milliseconds");
            fault(root.field("timeout_ms"), message);
        }
        match faults.is_empty() {
            true => Ok(Arc::new(DetectorFilter::new(config, conditions))),
            false => Err(faults),
        }
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let has_none = parse_config::<Config>(config).is_ok_and(|config| config.nodes.is_empty());
        let message = "there is no detector: calls are refused";
        match has_none {
            true => vec![Diagnostic::warning(DocPath::root().field("nodes"), message)],
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
