//! `json-threat-protection`: refuses JSON bodies that are too deep, too wide or too long, in one pass without making values
//! of them.
//!
//! ```yaml
//! max_depth: 20
//! max_members: 100
//! max_name_length: 100
//! max_items: 1000
//! max_text_length: 10000
//! ```
//!
//! Security: a limit that is absent does not hold. Only bodies whose `Content-Type` is JSON, or absent, are looked at.

mod scan;

use crate::media_types::MediaType;
use crate::openapi_validation::Action;
use crate::refuse::refuse;
use scan::{Limits, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

const PLUGIN: &str = "json-threat-protection";
/// The most bytes of a body that is read if the configuration has no limit.
const MOST_BYTES: usize = 64 << 20;

/// Configuration of `json-threat-protection`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The most bytes of a body; absent: 67108864.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<usize>,
    /// How deep objects and lists may be in each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<usize>,
    /// The most members of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_members: Option<usize>,
    /// The most characters of a member's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_name_length: Option<usize>,
    /// The most items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<usize>,
    /// The most characters of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_text_length: Option<usize>,
    /// What happens to calls that exceed a limit.
    pub action: Action,
    /// Status of a refusal, 400 to 599.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// The message of a refusal.
    pub message: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_body_bytes: Some(8192),
            max_depth: None,
            max_members: None,
            max_name_length: None,
            max_items: None,
            max_text_length: None,
            action: Action::Refuse,
            status: 400,
            message: "Bad Request".into(),
        }
    }
}

/// The plugin `json-threat-protection`.
pub struct JsonThreatProtection;

impl Plugin for JsonThreatProtection {
    fn name(&self) -> &'static str {
        "json-threat-protection"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if !(400..=599).contains(&config.status) {
            faults.add(
                "status",
                format!("expected a status from 400 to 599, found {}", config.status),
            );
        }
        if config.max_body_bytes.is_some_and(|most| most > MOST_BYTES) {
            faults.add("max_body_bytes", format!("expected at most {MOST_BYTES} bytes"));
        }
        faults.done()?;
        let most = |limit: Option<usize>| limit.unwrap_or(usize::MAX);
        Ok(Arc::new(ThreatFilter {
            limits: Limits {
                depth: most(config.max_depth),
                members: most(config.max_members),
                name_length: most(config.max_name_length),
                items: most(config.max_items),
                text_length: most(config.max_text_length),
            },
            config,
        }))
    }
}

/// An instance of `json-threat-protection`.
struct ThreatFilter {
    config: Config,
    limits: Limits,
}

impl ThreatFilter {
    fn evaluate(&self, fault: &str) -> Outcome {
        match self.config.action {
            Action::Refuse => refuse(PLUGIN, self.config.status, self.config.message.as_str(), fault),
            Action::Log => {
                tracing::warn!(plugin = PLUGIN, "a call beyond a limit passes: {fault}");
                Outcome::Continue
            }
        }
    }
}

impl Filter for ThreatFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let request = &exchange.request;
        if !request.has_body {
            return Outcome::Continue;
        }
        let mut types = request.headers.get_all(b"content-type");
        let is_json = |given: &[u8]| MediaType::parse(given).is_some_and(|given| given.is_json());
        // Of several types, the upstream may take any.
        let has_type = types.next().map(|first| is_json(first) || types.any(is_json));
        if has_type == Some(false) {
            return Outcome::Continue;
        }
        let Some(body) = request.body.as_deref() else {
            let max_bytes = self.config.max_body_bytes.unwrap_or(MOST_BYTES);
            let is_too_long = request
                .content_length
                .is_some_and(|length| length > max_bytes as u64);
            if is_too_long || !exchange.filter_state.mark_body_requested(self) {
                return self.evaluate("the body is too large");
            }
            return Outcome::NeedBody { max_bytes };
        };
        if self.config.max_body_bytes.is_some_and(|most| body.len() > most) {
            return self.evaluate("the body is too large");
        }
        match scan(body, &self.limits) {
            Ok(()) => Outcome::Continue,
            Err(fault) => self.evaluate(fault),
        }
    }
}

#[cfg(test)]
mod tests;
