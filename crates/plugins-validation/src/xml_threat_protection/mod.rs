//! `xml-threat-protection`: refuses XML bodies that are too deep, too wide or too long, in one pass without making a tree
//! of them.
//!
//! ```yaml
//! max_depth: 20
//! max_children: 50
//! checked_types: [application/xml, text/xml]
//! allowed_types: [application/json]
//! ```
//!
//! Entities are measured and never expanded, and nothing is fetched. One that stands for elements cannot be used, and
//! attributes have no default values: what they add to a document is not counted. For the same reason a document type
//! has no part in another document (`SYSTEM`, `PUBLIC`). Security: bodies of types that are in neither list are refused;
//! those in `allowed_types` are not looked at.

mod scan;

use crate::media_types::MediaType;
use crate::refuse::refuse;
use scan::{Limits, is_utf8, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

const PLUGIN: &str = "xml-threat-protection";
/// The most bytes of a body that a configuration can allow.
const MOST_BYTES: usize = 64 << 20;

/// Configuration of `xml-threat-protection`. Lengths are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Types of bodies that are checked.
    pub checked_types: Vec<String>,
    /// Types of bodies that pass without a look.
    pub allowed_types: Vec<String>,
    /// Whether a document may have a type (`<!DOCTYPE …>`).
    pub allow_dtd: bool,
    /// Whether names have prefixes.
    pub namespaces: bool,
    /// The most bytes of a body.
    pub max_body_bytes: usize,
    /// The most bytes of a tag or a declaration.
    pub max_token: usize,
    /// How deep elements may be in each other.
    pub max_depth: usize,
    /// The most elements directly in an element.
    pub max_children: usize,
    /// The most attributes of an element.
    pub max_attributes: usize,
    /// The most namespaces that an element declares.
    pub max_namespaces: usize,
    /// The longest name, without its prefix.
    pub max_local_name: usize,
    /// The longest prefix of a name.
    pub max_prefix: usize,
    /// The longest name of a namespace.
    pub max_namespace_uri: usize,
    /// The longest value of an attribute.
    pub max_attribute: usize,
    /// The longest text.
    pub max_text: usize,
    /// The longest comment.
    pub max_comment: usize,
    /// The longest target of a processing instruction.
    pub max_instruction_target: usize,
    /// The longest text of a processing instruction.
    pub max_instruction_data: usize,
    /// The longest name of an entity.
    pub max_entity_name: usize,
    /// The longest text of an entity.
    pub max_entity: usize,
    /// The longest name by which another document is meant.
    pub max_entity_property: usize,
    /// How many times as long as the document it may be with all entities expanded.
    #[schemars(range(min = 1))]
    pub max_amplification: f64,
    /// From which length on, with all entities expanded, `max_amplification` holds.
    pub amplification_from: usize,
    /// Status of the response to calls that exceed a limit, 400 to 599.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// The message of a refusal.
    pub message: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            checked_types: vec!["application/xml".into()],
            allowed_types: Vec::new(),
            allow_dtd: false,
            namespaces: true,
            max_body_bytes: 10 << 20,
            max_token: 1 << 20,
            max_depth: 50,
            max_children: 100,
            max_attributes: 100,
            max_namespaces: 20,
            max_local_name: 1024,
            max_prefix: 1024,
            max_namespace_uri: 1024,
            max_attribute: 1 << 20,
            max_text: 1 << 20,
            max_comment: 1024,
            max_instruction_target: 1024,
            max_instruction_data: 1024,
            max_entity_name: 1024,
            max_entity: 1024,
            max_entity_property: 1024,
            max_amplification: 100.0,
            amplification_from: 8 << 20,
            status: 400,
            message: "Bad Request".into(),
        }
    }
}

/// The plugin `xml-threat-protection`.
pub struct XmlThreatProtection;

impl Plugin for XmlThreatProtection {
    fn name(&self) -> &'static str {
        "xml-threat-protection"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if !(400..=599).contains(&config.status) {
            let message = format!("expected a status from 400 to 599, found {}", config.status);
            faults.add("status", message);
        }
        if config.max_body_bytes > MOST_BYTES {
            faults.add("max_body_bytes", format!("expected at most {MOST_BYTES} bytes"));
        }
        if config.max_amplification.is_nan() || config.max_amplification < 1.0 {
            faults.add("max_amplification", "expected a number from 1 on");
        }
        let mut types = |field: &str, types: &[String]| {
            let mut read = Vec::with_capacity(types.len());
            for (index, text) in types.iter().enumerate() {
                match MediaType::parse(text.as_bytes()) {
                    Some(media) => read.push(media),
                    None => {
                        let place = DocPath::root().field(field).index(index);
                        faults.extend(vec![Diagnostic::error(place, "expected a media type")]);
                    }
                }
            }
            read
        };
        let checked = types("checked_types", &config.checked_types);
        let allowed = types("allowed_types", &config.allowed_types);
        faults.done()?;
        Ok(Arc::new(XmlFilter {
            limits: limits(&config),
            checked,
            allowed,
            config,
        }))
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        dtd: config.allow_dtd,
        namespaces_known: config.namespaces,
        depth: config.max_depth,
        children: config.max_children,
        attributes: config.max_attributes,
        namespaces: config.max_namespaces,
        token: config.max_token,
        comment: config.max_comment,
        local_name: config.max_local_name,
        prefix: config.max_prefix,
        namespace_uri: config.max_namespace_uri,
        attribute: config.max_attribute,
        text: config.max_text,
        instruction_target: config.max_instruction_target,
        instruction_data: config.max_instruction_data,
        entity_name: config.max_entity_name,
        entity: config.max_entity,
        entity_property: config.max_entity_property,
        amplification: config.max_amplification,
        amplification_from: config.amplification_from,
    }
}

/// An instance of `xml-threat-protection`.
struct XmlFilter {
    config: Config,
    limits: Limits,
    checked: Vec<MediaType>,
    allowed: Vec<MediaType>,
}

impl XmlFilter {
    fn refuse(&self, fault: &str) -> Outcome {
        refuse(PLUGIN, self.config.status, self.config.message.as_str(), fault)
    }

    /// Whether the body is looked at; `None`: it is of a type that is in no list.
    fn is_checked(&self, exchange: &Exchange) -> Option<bool> {
        let types: Vec<_> = exchange.request.headers.get_all(b"content-type").collect();
        let is_in = |given: &[u8], list: &[MediaType]| {
            let given = MediaType::parse(given);
            given.is_some_and(|given| list.iter().any(|media| media.takes(&given, false)))
        };
        // Of several types, the upstream may take any.
        if types.iter().any(|given| is_in(given, &self.checked)) {
            return Some(true);
        }
        let is_allowed = !types.is_empty() && types.iter().all(|given| is_in(given, &self.allowed));
        is_allowed.then_some(false)
    }
}

impl Filter for XmlFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if !exchange.request.has_body {
            return Outcome::Continue;
        }
        match self.is_checked(exchange) {
            Some(true) => {}
            Some(false) => return Outcome::Continue,
            None => return self.refuse("the body is of a type that is not allowed"),
        }
        let request = &exchange.request;
        let max_bytes = self.config.max_body_bytes;
        let Some(body) = request.body.as_deref() else {
            let is_too_long = request
                .content_length
                .is_some_and(|length| length > max_bytes as u64);
            if is_too_long || !exchange.filter_state.mark_body_requested(self) {
                return self.refuse("the body is too large");
            }
            return Outcome::NeedBody { max_bytes };
        };
        if body.len() > max_bytes {
            return self.refuse("the body is too large");
        }
        // What is said here goes before what the document says (RFC 7303, 3.2).
        let codings = request
            .headers
            .get_all(b"content-type")
            .filter_map(MediaType::parse);
        if codings
            .filter_map(|media| media.parameter("charset").map(str::to_owned))
            .any(|coding| !is_utf8(coding.as_bytes()))
        {
            return self.refuse("the body is not in UTF-8");
        }
        match scan(body, &self.limits) {
            Ok(()) => Outcome::Continue,
            Err(fault) => self.refuse(fault),
        }
    }
}

#[cfg(test)]
mod tests;
