//! The common part of the plugins that log.

use super::UnsupportedOption;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::{Batch, Config};

/// The configuration that all of them begin with.
pub fn base(config: &Value) -> Result<Config, UnsupportedOption> {
    let is_used = |fields: &Value| fields.as_object().is_some_and(|it| !it.is_empty());
    if is_used(&config["custom_fields_by_lua"]) {
        return Err(UnsupportedOption {
            field: "custom_fields_by_lua",
            what: "code in Lua".to_owned(),
        });
    }
    Ok(Config {
        own_name: "kong".to_owned(),
        ..Config::default()
    })
}

/// How records wait for being sent, in the form of the field `queue`.
#[derive(Deserialize)]
pub struct Queue {
    max_batch_size: usize,
    max_coalescing_delay: f64,
    max_entries: usize,
    max_bytes: Option<usize>,
    max_retry_time: f64,
    initial_retry_delay: f64,
    max_retry_delay: f64,
}

impl Queue {
    /// The same in the catalogue's words.
    pub fn batch(&self) -> Batch {
        let millis = |seconds: f64| (seconds * 1000.0) as u64;
        let standard = Batch::default();
        Batch {
            max_entries: self.max_batch_size,
            delay_ms: match self.max_batch_size {
                1 => 0,
                _ => millis(self.max_coalescing_delay),
            },
            max_pending: self.max_entries,
            max_pending_bytes: self.max_bytes.unwrap_or(standard.max_pending_bytes),
            retries: u32::MAX,
            retry_for_ms: millis(self.max_retry_time),
            retry_delay_ms: millis(self.initial_retry_delay),
            max_retry_delay_ms: millis(self.max_retry_delay),
            metric_name: None,
        }
    }
}

/// The number that RFC 5424 gives a severity.
pub fn severity(name: &str) -> u8 {
    let names = [
        "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
    ];
    names
        .iter()
        .position(|it| *it == name)
        .map_or(6, |place| place as u8)
}

/// A part of a metric's name, without what means something to the server.
pub fn metric_part(text: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '/');
    text.chars()
        .map(|character| if is_plain(character) { character } else { '_' })
        .collect()
}

/// The fact of a call that a field like `consumer_identifier` names.
pub fn consumer_fact(identifier: &str) -> &'static str {
    match identifier {
        "custom_id" => "{custom_id}",
        "username" => "{username}",
        _ => "{consumer}",
    }
}
