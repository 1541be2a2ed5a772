//! `data-mask`: changes what loggers report about a call: arguments, headers and fields of the request's body.
//!
//! ```yaml
//! rules:
//!   - {part: query, name: token, action: remove}
//!   - {part: header, name: X-Card, action: {replace: "****"}}
//!   - {part: body_json, name: "$.card.number", action: {regex: {pattern: "^\\d{12}", replacement: "****"}}}
//! ```
//!
//! The upstream gets the call unchanged. Loggers that come after this plugin in the chain report the masked values,
//! also if one of their fields names a variable (`$arg_token`, `$request_uri`).
//!
//! Loggers also hide the values of names that often carry secrets, except for names that a rule here has changed: then
//! the rule decides what is logged.
//!
//! Security: a body that cannot be parsed in the form that a rule names (no JSON, or too large) is not logged at all. Nor
//! is one for which the paths of the rules take more than 100,000 steps. A body that begins as JSON is read as JSON,
//! whatever type the caller gives it.

mod rules;

use rules::Rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, CallRecord, Exchange, Filter, LogEntry, Outcome, Phases, Plugin, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `data-mask`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The changes, in this order.
    pub rules: Vec<Rule>,
    /// The most bytes of a body in JSON that is changed; a larger one is not logged.
    pub max_body_bytes: usize,
    /// The most fields of a form that are logged; those after them are left out.
    pub max_form_fields: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            max_body_bytes: 1 << 20,
            max_form_fields: 100,
        }
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The part of the call: `query`, `header`, `body_json` or `body_form`.
    pub part: MaskTarget,
    /// The name of an argument, a header or a field; of JSON, a path (`$.user.card`, `$..password`).
    pub name: String,
    /// How the value is changed: `remove`, `{replace: TEXT}` or `{regex: {pattern, replacement}}`.
    pub action: Masking,
}

/// A part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskTarget {
    /// An argument of the query.
    Query,
    /// A header.
    Header,
    /// A part of a body in JSON.
    BodyJson,
    /// A field of an urlencoded body.
    BodyForm,
}

/// How a value is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Masking {
    /// It is removed.
    Remove,
    /// It is replaced by this text.
    Replace(String),
    /// The first place that a regular expression finds is replaced.
    Regex {
        /// The expression.
        pattern: String,
        /// The replacement for the match, with `$1` for its groups.
        replacement: String,
    },
}

/// The plugin `data-mask`.
pub struct DataMask;

impl Plugin for DataMask {
    fn name(&self) -> &'static str {
        "data-mask"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let rules = Rules::compile(&config).unwrap_or_else(|message| {
            faults.add("rules", message);
            Rules::default()
        });
        faults.done()?;
        Ok(Arc::new(MaskFilter(Arc::new(rules))))
    }
}

/// An instance of `data-mask`.
struct MaskFilter(Arc<Rules>);

/// All instances keep their rules for loggers under this address.
static SHARED: u8 = 0;

/// The rules on bodies of a call.
struct BodyRules(Vec<Arc<Rules>>);

/// The names of headers and of arguments whose values rules have changed in a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedNames {
    /// Of headers.
    pub headers: Vec<String>,
    /// Of arguments.
    pub arguments: Vec<String>,
}

/// Those of a call; `None`: none has been changed.
pub fn masked_names(exchange: &mut Exchange) -> Option<MaskedNames> {
    exchange.filter_state.get_mut::<_, MaskedNames>(&SHARED).cloned()
}

/// The request's body in the form that loggers may report; `None` if they may not report it.
pub fn masked_body(exchange: &mut Exchange) -> Option<Vec<u8>> {
    let rules = match exchange.filter_state.get_mut::<_, BodyRules>(&SHARED) {
        Some(BodyRules(rules)) => rules.clone(),
        None => return exchange.request.body.clone(),
    };
    let content_type = exchange.request.headers.get(b"content-type").map(<[u8]>::to_vec);
    let mut body = exchange.request.body.clone()?;
    for rules in rules {
        body = rules.mask_body(body, content_type.as_deref())?;
    }
    Some(body)
}

impl Filter for MaskFilter {
    fn is_observer(&self) -> bool {
        true
    }

    fn phases(&self) -> Phases {
        Phases {
            request: self.0.has_body_rules(),
            response: false,
            log: true,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let rules = Arc::clone(&self.0);
        match exchange.filter_state.get_mut::<_, BodyRules>(&SHARED) {
            Some(BodyRules(all)) => all.push(rules),
            None => exchange.filter_state.put(&SHARED, BodyRules(vec![rules])),
        }
        Outcome::Continue
    }

    fn on_log(&self, exchange: &mut Exchange, _: &CallRecord<'_>, _: &mut Vec<LogEntry>) {
        let masked = self.0.mask_head(&mut exchange.request);
        match exchange.filter_state.get_mut::<_, MaskedNames>(&SHARED) {
            Some(all) => {
                all.headers.extend(masked.headers);
                all.arguments.extend(masked.arguments);
            }
            None if masked == MaskedNames::default() => {}
            None => exchange.filter_state.put(&SHARED, masked),
        }
    }
}

#[cfg(test)]
mod tests;
