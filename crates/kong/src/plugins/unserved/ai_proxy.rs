//! `ai-proxy`: has a language model answer calls.

use super::llm;
use super::shared::{LLM_FORMAT, MAX_REQUEST_BODY_SIZE};
use super::{Definition, blocking};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};

/// The definition of `ai-proxy`.
pub const DEFINITION: Definition =
    blocking("ai-proxy", 770, CONFIG).with_checks(&[EntityCheck::Test(check_format)]);

const CONFIG: Record = Record {
    fields: &[
        llm::FIELDS[0],
        llm::FIELDS[1],
        llm::FIELDS[2],
        llm::FIELDS[3],
        Field::new("response_streaming", Kind::String)
            .or(Default::Text("allow"))
            .check(&[Check::OneOf(&["allow", "deny", "always"])]),
        MAX_REQUEST_BODY_SIZE,
        Field::new("model_name_header", Kind::Boolean).or(Default::Boolean(true)),
        LLM_FORMAT,
    ],
    checks: llm::CHECKS,
};

fn check_format(instance: &Fields) -> Result<(), String> {
    let Some(config) = instance.get("config") else {
        return Ok(());
    };
    let format = config["llm_format"].as_str().unwrap_or_default();
    if !["bedrock", "gemini"].contains(&format) {
        return Ok(());
    }
    if config["route_type"] != "llm/v1/chat" {
        return Err(
            "native provider options in llm_format can only be used with the 'llm/v1/chat' route_type"
                .to_owned(),
        );
    }
    match config["model"]["provider"] == format {
        true => Ok(()),
        false => Err(format!(
            "native llm_format '{format}' can only be used with the '{format}' model.provider"
        )),
    }
}
