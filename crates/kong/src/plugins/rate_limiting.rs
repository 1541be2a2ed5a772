//! `rate-limiting`: limits per second to year, counted in this process or in a Redis. `cluster` counts over
//! all gateways, which synchronise their counts through the control plane.

use super::redis::{REDIS, SHORTHANDS, Settings, on_unavailable};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Fields, Kind, Record, Requirement, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::rate_limit::{
    Config, CountScope, Limit, LimitHeaders, LimitValue, MissingKey, OnFailure, Per, RateLimitKey,
    SummaryHeaders,
};
use weir_plugins::redis::WindowStore;

/// The definition of `rate-limiting`.
pub const DEFINITION: Definition = Definition {
    name: "rate-limiting",
    priority: 910,
    config: Record::of(FIELDS),
    checks: &[
        EntityCheck::AtLeastOneOf(&[
            "config.second",
            "config.minute",
            "config.hour",
            "config.day",
            "config.month",
            "config.year",
        ]),
        needs("config.policy", "redis", "config.redis.host"),
        needs("config.policy", "redis", "config.redis.port"),
        needs("config.policy", "redis", "config.redis.timeout"),
        needs("config.limit_by", "header", "config.header_name"),
        needs("config.limit_by", "path", "config.path"),
        EntityCheck::Fields(check_windows),
    ],
    shorthands: SHORTHANDS,
    on_consumers: true,
    catalogue_name: "rate-limit",
    translate,
};

const FIELDS: &[Field] = &[
    limit("second"),
    limit("minute"),
    limit("hour"),
    limit("day"),
    limit("month"),
    limit("year"),
    Field::new("limit_by", Kind::String)
        .or(Default::Text("consumer"))
        .check(&[Check::OneOf(&[
            "consumer",
            "credential",
            "ip",
            "service",
            "header",
            "path",
        ])]),
    Field::new("header_name", Kind::String).check(&[Check::Text(text::header_name)]),
    Field::new("path", Kind::String).check(&[Check::Text(text::path)]),
    Field::new("policy", Kind::Text)
        .or(Default::Text("local"))
        .check(&[Check::OneOf(&["local", "cluster", "redis"])]),
    Field::new("fault_tolerant", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("redis", Kind::Record(&REDIS)).required(),
    Field::new("hide_client_headers", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("error_code", Kind::Number)
        .or(Default::Integer(429))
        .check(&[Check::Above(0)]),
    Field::new("error_message", Kind::String).or(Default::Text("API rate limit exceeded")),
    Field::new("sync_rate", Kind::Number)
        .required()
        .or(Default::Integer(-1)),
];

const fn limit(name: &'static str) -> Field {
    Field::new(name, Kind::Number).check(&[Check::Above(0)])
}

const fn needs(field: &'static str, value: &'static str, then: &'static str) -> EntityCheck {
    EntityCheck::When {
        field,
        is: FieldTest::Equal(value),
        then,
        must: Requirement::BeGiven,
    }
}

/// A longer window may not allow less than a shorter one; only counts in a Redis are synchronised later.
fn check_windows(plugin: &Fields) -> Vec<(&'static str, String)> {
    let config = plugin.get("config");
    let number = |name: &str| config.and_then(|config| config.get(name)?.as_f64());
    let windows = ["second", "minute", "hour", "day", "month", "year"];
    let given: Vec<(&str, f64)> = windows
        .into_iter()
        .filter_map(|name| Some((name, number(name)?)))
        .collect();
    for (index, (lower, count)) in given.iter().enumerate() {
        let wrong = given[index + 1..].iter().find(|(_, other)| other < count);
        if let Some((upper, other)) = wrong {
            let message = format!(
                "The limit for {upper}({other:.1}) cannot be lower than the limit for {lower}({count:.1})"
            );
            return vec![("config", message)];
        }
    }
    let is_redis = config.and_then(|config| config.get("policy")?.as_str()) == Some("redis");
    let message = match number("sync_rate") {
        Some(rate) if rate != -1.0 && !is_redis => "sync_rate can only be used with the redis policy",
        Some(rate) if rate != -1.0 && rate < 0.02 => "sync_rate must be greater than 0.02, or -1 to disable",
        _ => return Vec::new(),
    };
    vec![("config", message.to_owned())]
}

#[derive(Deserialize)]
struct RateLimiting {
    second: Option<f64>,
    minute: Option<f64>,
    hour: Option<f64>,
    day: Option<f64>,
    month: Option<f64>,
    year: Option<f64>,
    limit_by: String,
    header_name: Option<String>,
    path: Option<String>,
    policy: String,
    fault_tolerant: bool,
    redis: Settings,
    sync_rate: f64,
    hide_client_headers: bool,
    error_code: f64,
    error_message: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: RateLimiting = typed(config)?;
    // The original takes any number, and fails when it is to answer with one that is no status.
    let status = match config.error_code as u16 {
        status @ 200..=599 => status,
        _ => 500,
    };
    let windows = [
        (config.second, Per::Second, "Second"),
        (config.minute, Per::Minute, "Minute"),
        (config.hour, Per::Hour, "Hour"),
        (config.day, Per::Day, "Day"),
        (config.month, Per::Month, "Month"),
        (config.year, Per::Year, "Year"),
    ];
    let limits = windows
        .into_iter()
        .filter_map(|(count, per, word)| {
            Some(Limit {
                count: LimitValue::Number(count? as u64),
                per,
                by: None,
                headers: limit_headers(word, config.hide_client_headers),
            })
        })
        .collect();
    let by = count_by(&config);
    let redis = (config.policy == "redis")
        .then(|| config.redis.redis())
        .transpose()?;
    let store = redis.map(|redis| WindowStore {
        on_unavailable: on_unavailable(config.fault_tolerant),
        // Below 0 each call asks.
        sync_interval_seconds: (config.sync_rate >= 0.0).then(|| config.sync_rate.clamp(0.02, 3600.0)),
        ..WindowStore::new(redis)
    });
    Ok(untyped(Config {
        limits,
        by,
        store,
        across: match config.policy.as_str() {
            "cluster" => CountScope::Gateways,
            _ => CountScope::Gateway,
        },
        when_key_missing: MissingKey::Ip,
        status,
        message: Some(config.error_message),
        headers: if config.hide_client_headers {
            SummaryHeaders::NONE
        } else {
            SummaryHeaders::default()
        },
        on_failure: if config.fault_tolerant {
            OnFailure::Pass
        } else {
            OnFailure::Refuse
        },
        ..Config::default()
    }))
}

fn limit_headers(word: &str, hidden: bool) -> LimitHeaders {
    if hidden {
        return LimitHeaders::default();
    }
    LimitHeaders {
        limit: Some(format!("X-RateLimit-Limit-{word}")),
        remaining: Some(format!("X-RateLimit-Remaining-{word}")),
        reset: None,
    }
}

fn count_by(config: &RateLimiting) -> RateLimitKey {
    match config.limit_by.as_str() {
        "credential" => RateLimitKey::Credential,
        "service" => RateLimitKey::Service,
        "header" => RateLimitKey::Header(config.header_name.clone().unwrap_or_default()),
        "path" => RateLimitKey::Path(config.path.clone().unwrap_or_default()),
        "ip" => RateLimitKey::Ip,
        _ => RateLimitKey::Consumer,
    }
}
