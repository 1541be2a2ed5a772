//! `bot-detection`: keeps out programs that go through sites by themselves.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::user_agent_restriction::Config;

/// The definition of `bot-detection`.
pub const DEFINITION: Definition = Definition {
    name: "bot-detection",
    priority: 2500,
    config: Record::of(&[
        Field::new("allow", PATTERNS).or(Default::Texts(&[])),
        Field::new("deny", PATTERNS).or(Default::Texts(&[])),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "user-agent-restriction",
    translate,
};

const PATTERNS: Kind = Kind::Array(&Field::element(Kind::String).check(&[Check::Text(check_pattern)]));

fn check_pattern(text: &str) -> Result<(), String> {
    match Regex::new(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("not a valid regex: {text}")),
    }
}

#[derive(Deserialize)]
struct BotDetection {
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: BotDetection = typed(config)?;
    Ok(untyped(Config {
        except: config.allow.unwrap_or_default(),
        deny: config.deny.unwrap_or_default(),
        known_bots: true,
        multiple_message: Some("Only one User-Agent header allowed".to_owned()),
        ..Config::default()
    }))
}
