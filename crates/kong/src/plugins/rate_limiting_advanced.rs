//! `rate-limiting-advanced` of the paid edition: several limits, with windows of any length, for consumers, addresses,
//! groups and what else calls can be counted by.

use super::advanced_limits::{self, Limits};
use super::redis::{ADVANCED_REDIS, SHORTHANDS};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Kind, Record, Requirement, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::rate_limit::{Config, RateLimitKey};

/// The definition of `rate-limiting-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "rate-limiting-advanced",
    priority: 910,
    config: Record::of(FIELDS),
    checks: &[
        needs("header", "config.header_name"),
        needs("path", "config.path"),
        EntityCheck::Fields(advanced_limits::check),
    ],
    shorthands: SHORTHANDS,
    on_consumers: true,
    catalogue_name: "rate-limit",
    translate,
};

const KEYS: &[Check] = &[Check::OneOf(&[
    "ip",
    "credential",
    "consumer",
    "service",
    "header",
    "path",
    "consumer-group",
])];

const FIELDS: &[Field] = &[
    Field::new("identifier", Kind::String)
        .required()
        .or(Default::Text("consumer"))
        .check(KEYS),
    Field::new(
        "compound_identifier",
        Kind::Array(&Field::element(Kind::String).check(KEYS)),
    ),
    advanced_limits::WINDOW_SIZE,
    advanced_limits::WINDOW_TYPE,
    advanced_limits::LIMIT,
    advanced_limits::SYNC_RATE,
    advanced_limits::NAMESPACE,
    advanced_limits::STRATEGY,
    Field::new("dictionary_name", Kind::String)
        .required()
        .or(Default::Text("kong_rate_limiting_counters")),
    advanced_limits::LOCKS,
    advanced_limits::HIDDEN,
    advanced_limits::JITTER,
    Field::new("header_name", Kind::String).check(&[Check::Text(text::header_name)]),
    Field::new("path", Kind::String).check(&[Check::Text(text::path)]),
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
    Field::new("enforce_consumer_groups", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("consumer_groups", Kind::Array(&Field::element(Kind::String))),
    advanced_limits::NO_PENALTY,
    advanced_limits::ERROR_CODE,
    advanced_limits::ERROR_MESSAGE,
];

const fn needs(identifier: &'static str, then: &'static str) -> EntityCheck {
    EntityCheck::When {
        field: "config.identifier",
        is: FieldTest::Equal(identifier),
        then,
        must: Requirement::BeGiven,
    }
}

#[derive(Deserialize)]
struct Identifiers {
    identifier: String,
    compound_identifier: Option<Vec<String>>,
    header_name: Option<String>,
    path: Option<String>,
    enforce_consumer_groups: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let limits: Limits = typed(config)?;
    let keys: Identifiers = typed(config)?;
    if keys.enforce_consumer_groups {
        return Err(UnsupportedOption {
            field: "enforce_consumer_groups",
            what: "limits for consumer groups in the plugin of a route".to_owned(),
        });
    }
    let by = match keys.compound_identifier.as_deref() {
        None | Some([]) => count_by(&keys.identifier, &keys),
        Some([only]) => count_by(only, &keys),
        Some(several) => RateLimitKey::All(several.iter().map(|it| count_by(it, &keys)).collect()),
    };
    Ok(untyped(Config {
        by,
        ..advanced_limits::config(limits)?
    }))
}

fn count_by(identifier: &str, keys: &Identifiers) -> RateLimitKey {
    match identifier {
        "ip" => RateLimitKey::Ip,
        "credential" => RateLimitKey::Credential,
        "service" => RateLimitKey::Service,
        "header" => RateLimitKey::Header(keys.header_name.clone().unwrap_or_default()),
        "path" => RateLimitKey::Path(keys.path.clone().unwrap_or_default()),
        "consumer-group" => RateLimitKey::ConsumerGroup,
        _ => RateLimitKey::Consumer,
    }
}
