//! `service-protection` of the paid edition: how many calls reach a service from all callers.

use super::advanced_limits::{self, Limits};
use super::redis::{ADVANCED_REDIS, SHORTHANDS};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, EntityCheck, Field, Kind, Record};
use serde_json::Value;
use weir_plugins::rate_limit::{Config, RateLimitKey};

/// The definition of `service-protection`.
pub const DEFINITION: Definition = Definition {
    name: "service-protection",
    priority: 901,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Fields(advanced_limits::check)],
    shorthands: SHORTHANDS,
    on_consumers: false,
    catalogue_name: "rate-limit",
    translate,
};

const FIELDS: &[Field] = &[
    advanced_limits::WINDOW_SIZE,
    advanced_limits::WINDOW_TYPE,
    advanced_limits::LIMIT,
    advanced_limits::SYNC_RATE,
    advanced_limits::NAMESPACE,
    advanced_limits::STRATEGY,
    Field::new("dictionary_name", Kind::String)
        .required()
        .or(Default::Text("kong_service_protection_counters")),
    advanced_limits::LOCKS,
    advanced_limits::HIDDEN,
    advanced_limits::JITTER,
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
    advanced_limits::NO_PENALTY,
    advanced_limits::ERROR_CODE,
    advanced_limits::ERROR_MESSAGE,
];

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let limits: Limits = typed(config)?;
    Ok(untyped(Config {
        by: RateLimitKey::Service,
        ..advanced_limits::config(limits)?
    }))
}
