//! `request-id`: gives every call an id that connects its traces in several systems.
//!
//! ```yaml
//! header: X-Request-Id
//! generator: uuid-v7
//! ```
//!
//! Security: a client can send any id; keep it only if the route's callers are trusted to send good ones. Never use an
//! id as a secret: ids are unique, but made to be fast, not to be hard to guess.

mod generator;

use generator::Ids;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use uuid::Uuid;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};

/// Configuration of `request-id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The request header with the id, also on the response.
    pub header: String,
    /// How ids are made.
    pub generator: Generator,
    /// Whether an id that the client sends is kept.
    pub keep_client_id: bool,
    /// Whether the response carries the id.
    pub echo: Echo,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            header: "X-Request-Id".into(),
            generator: Generator::Uuid,
            keep_client_id: true,
            echo: Echo::Replace,
        }
    }
}

/// How ids are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// A random UUID (RFC 9562, version 4).
    Uuid,
    /// A UUID that begins with the time (RFC 9562, version 7).
    UuidV7,
    /// The gateway's UUID, `#`, and a number that counts up.
    #[serde(rename = "uuid#counter")]
    UuidCounter,
    /// `address-port-process-connection-number-seconds`: the place and time of the call's arrival.
    Tracker,
    /// 21 random characters of `A-Za-z0-9_-`.
    Nanoid,
    /// Random characters of a set.
    Random {
        /// The characters to choose from, 1 to 256 ASCII characters that are allowed in a header.
        characters: String,
        /// How many, 1 to 256.
        length: u16,
    },
    /// 27 characters in base 62 that sort by time, to the second.
    Ksuid,
}

/// Whether the response carries the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// No.
    No,
    /// Yes, instead of an upstream's header of the same name.
    #[default]
    Replace,
    /// Unless the upstream sends a header of the same name.
    IfAbsent,
}

/// The plugin; it owns the counter.
pub struct RequestId(Arc<Process>);

/// What ids know of the process that made them.
struct Process {
    uuid: String,
    id: u32,
    counter: AtomicU64,
}

impl Default for RequestId {
    fn default() -> Self {
        Self(Arc::new(Process {
            uuid: Uuid::new_v4().to_string(),
            id: std::process::id(),
            counter: AtomicU64::new(0),
        }))
    }
}

impl Plugin for RequestId {
    fn name(&self) -> &'static str {
        "request-id"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        if !is_name(config.header.as_bytes()) {
            let path = DocPath::root().field("header");
            return Err(vec![Diagnostic::error(path, "expected a header name")]);
        }
        let ids = Ids::new(config.generator, Arc::clone(&self.0)).map_err(|message| {
            let path = DocPath::root().field("generator");
            vec![Diagnostic::error(path, message)]
        })?;
        Ok(Arc::new(IdFilter {
            header: config.header.into_bytes(),
            ids,
            keep_client_id: config.keep_client_id,
            echo: config.echo,
        }))
    }
}

/// An instance of `request-id`.
struct IdFilter {
    header: Vec<u8>,
    ids: Ids,
    keep_client_id: bool,
    echo: Echo,
}

impl IdFilter {
    fn give(&self, exchange: &mut Exchange) {
        let id = self.ids.next(exchange);
        exchange.request.headers.set(&self.header, id.as_bytes());
    }
}

impl Filter for IdFilter {
    fn phases(&self) -> Phases {
        match self.echo {
            Echo::No => Phases::REQUEST,
            Echo::Replace | Echo::IfAbsent => Phases::BOTH,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let clients = exchange.request.headers.get(&self.header);
        if !self.keep_client_id || clients.is_none_or(<[u8]>::is_empty) {
            self.give(exchange);
        }
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if self.echo == Echo::IfAbsent && exchange.response.headers.contains(&self.header) {
            return;
        }
        // A filter in front of this one may have answered, so that the call has no id yet.
        if !exchange.request.headers.contains(&self.header) {
            self.give(exchange);
        }
        if let Some(id) = exchange.request.headers.get(&self.header) {
            exchange.response.headers.set(&self.header, id);
        }
    }
}

#[cfg(test)]
mod tests;
