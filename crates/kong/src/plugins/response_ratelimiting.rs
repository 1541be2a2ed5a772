//! `response-ratelimiting`: limits what calls use up, by the upstream's answers.

use super::redis::{REDIS, SHORTHANDS, Settings, on_unavailable};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Fields, Kind, Record, Requirement};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::rate_key::RateLimitKey;
use weir_plugins::rate_limit::CountScope;
use weir_plugins::redis::Store;
use weir_plugins::response_rate_limit::{Config, Limit, Period};

/// The definition of `response-ratelimiting`.
pub const DEFINITION: Definition = Definition {
    name: "response-ratelimiting",
    priority: 900,
    config: Record::of(FIELDS),
    checks: &[
        needs("config.redis.host"),
        needs("config.redis.port"),
        needs("config.redis.timeout"),
    ],
    shorthands: SHORTHANDS,
    on_consumers: true,
    catalogue_name: "response-rate-limit",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("header_name", Kind::String).or(Default::Text("x-kong-limit")),
    Field::new("limit_by", Kind::String)
        .or(Default::Text("consumer"))
        .check(&[Check::OneOf(&["consumer", "credential", "ip"])]),
    Field::new("policy", Kind::String)
        .or(Default::Text("local"))
        .check(&[Check::OneOf(&["local", "cluster", "redis"])]),
    Field::new("fault_tolerant", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("redis", Kind::Record(&REDIS)).required(),
    Field::new("block_on_first_violation", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("hide_client_headers", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new(
        "limits",
        Kind::Map {
            keys: &NAME,
            values: &WINDOWS,
        },
    )
    .required()
    .check(&[Check::Value(check_count)]),
];

const NAME: Field = Field::element(Kind::String);
const WINDOWS: Field = Field::element(Kind::Record(&LIMIT)).required();

const PERIODS: [&str; 6] = ["second", "minute", "hour", "day", "month", "year"];

static LIMIT: Record = Record {
    fields: &[
        period("second"),
        period("minute"),
        period("hour"),
        period("day"),
        period("month"),
        period("year"),
    ],
    checks: &[
        EntityCheck::Test(check_order),
        EntityCheck::AtLeastOneOf(&PERIODS),
    ],
};

const fn period(name: &'static str) -> Field {
    Field::new(name, Kind::Number).check(&[Check::Above(0)])
}

const fn needs(then: &'static str) -> EntityCheck {
    EntityCheck::When {
        field: "config.policy",
        is: FieldTest::Equal("redis"),
        then,
        must: Requirement::BeGiven,
    }
}

fn check_count(limits: &Value) -> Result<(), String> {
    match limits.as_object().is_some_and(|limits| limits.is_empty()) {
        true => Err("length must be at least 1".to_owned()),
        false => Ok(()),
    }
}

/// Of a longer time more must be allowed than of a shorter one.
fn check_order(limit: &Fields) -> Result<(), String> {
    let given = PERIODS
        .iter()
        .filter_map(|name| Some((*name, limit.get(name)?.as_f64()?)));
    let given: Vec<(&str, f64)> = given.collect();
    for (index, (shorter, low)) in given.iter().enumerate() {
        if let Some((longer, high)) = given[index + 1..].iter().find(|(_, high)| high < low) {
            return Err(format!(
                "the limit for {longer}({high:.1}) cannot be lower than the limit for {shorter}({low:.1})"
            ));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct ResponseRatelimiting {
    header_name: String,
    limit_by: String,
    policy: String,
    fault_tolerant: bool,
    redis: Settings,
    block_on_first_violation: bool,
    hide_client_headers: bool,
    limits: BTreeMap<String, Windows>,
}

#[derive(Deserialize)]
struct Windows {
    second: Option<f64>,
    minute: Option<f64>,
    hour: Option<f64>,
    day: Option<f64>,
    month: Option<f64>,
    year: Option<f64>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: ResponseRatelimiting = typed(config)?;
    let limits = config.limits.into_iter().map(|(name, windows)| {
        let given = [
            (windows.second, Period::Second),
            (windows.minute, Period::Minute),
            (windows.hour, Period::Hour),
            (windows.day, Period::Day),
            (windows.month, Period::Month),
            (windows.year, Period::Year),
        ];
        let limits = given.into_iter().filter_map(|(count, per)| {
            let count = count? as u64;
            Some(Limit { count, per })
        });
        (name, limits.collect())
    });
    let limits = limits.collect();
    let redis = (config.policy == "redis")
        .then(|| config.redis.redis())
        .transpose()?;
    Ok(untyped(Config {
        limits,
        by: match config.limit_by.as_str() {
            "consumer" => RateLimitKey::Consumer,
            "credential" => RateLimitKey::Credential,
            _ => RateLimitKey::Ip,
        },
        scope: None,
        header: config.header_name,
        refuse_when_used_up: config.block_on_first_violation,
        limit_headers: !config.hide_client_headers,
        store: redis.map(|redis| Store {
            on_unavailable: on_unavailable(config.fault_tolerant),
            ..Store::new(redis)
        }),
        across: match config.policy.as_str() {
            "cluster" => CountScope::Gateways,
            _ => CountScope::Gateway,
        },
    }))
}
