//! The common part of `rate-limiting-advanced` and `service-protection` of the paid edition: several limits with
//! windows of any length, translated to `rate-limit` of the catalogue. Whom they count by differs.

use super::UnsupportedOption;
use super::redis::Settings;
use crate::schema::{Check, Default, Field, Fields, Kind};
use serde::Deserialize;
use weir_plugins::rate_limit::{
    Config, CountScope, Limit, LimitHeaders, LimitValue, MissingKey, OnFailure, Per, SummaryHeaders,
};
use weir_plugins::redis::{OnUnavailable, WindowStore};

/// The lengths of windows in seconds.
pub const WINDOW_SIZE: Field =
    Field::new("window_size", Kind::Array(&Field::element(Kind::Number))).required();
/// How many calls pass in each.
pub const LIMIT: Field = Field::new("limit", Kind::Array(&Field::element(Kind::Number))).required();
/// Of which kind windows are.
pub const WINDOW_TYPE: Field = Field::new("window_type", Kind::String)
    .or(Default::Text("sliding"))
    .check(&[Check::OneOf(&["fixed", "sliding"])]);
/// How often counts are synchronised.
pub const SYNC_RATE: Field = Field::new("sync_rate", Kind::Number);
/// Instances with the same one count together.
pub const NAMESPACE: Field = Field::new("namespace", Kind::String);
/// The place of counts.
pub const STRATEGY: Field = Field::new("strategy", Kind::String)
    .required()
    .or(Default::Text("local"))
    .check(&[Check::OneOf(&["cluster", "redis", "local"])]);
/// Shared memory of the original; there is nothing to choose here.
pub const LOCKS: Field = Field::new("lock_dictionary_name", Kind::String)
    .required()
    .or(Default::Text("kong_locks"));
/// Clients get no headers about their limits.
pub const HIDDEN: Field = Field::new("hide_client_headers", Kind::Boolean).or(Default::Boolean(false));
/// Seconds that are added to `Retry-After` by chance.
pub const JITTER: Field = Field::new("retry_after_jitter_max", Kind::Number).or(Default::Integer(0));
/// Calls over the limit are not counted.
pub const NO_PENALTY: Field = Field::new("disable_penalty", Kind::Boolean).or(Default::Boolean(false));
/// The status of refusals.
pub const ERROR_CODE: Field = Field::new("error_code", Kind::Number)
    .or(Default::Integer(429))
    .check(&[Check::Above(0)]);
/// The message for refused calls.
pub const ERROR_MESSAGE: Field = Field::new("error_message", Kind::String).or(Default::Text(EXCEEDED));
const EXCEEDED: &str = "API rate limit exceeded";

/// The common fields.
#[derive(Deserialize)]
pub struct Limits {
    window_size: Vec<f64>,
    limit: Vec<f64>,
    window_type: String,
    sync_rate: Option<f64>,
    namespace: Option<String>,
    strategy: String,
    hide_client_headers: bool,
    #[serde(default)]
    retry_after_jitter_max: f64,
    error_code: Option<f64>,
    error_message: Option<String>,
    redis: Settings,
}

/// As many limits as windows, and no rate that is too fast.
pub fn check_windows(plugin: &Fields) -> Vec<(&'static str, String)> {
    let Some(config) = plugin.get("config") else {
        return Vec::new();
    };
    let count = |name: &str| config.get(name).and_then(|it| it.as_array()).map_or(0, Vec::len);
    let mut faults = Vec::new();
    if count("window_size") != count("limit") {
        faults.push(("config", SAME_NUMBER.to_owned()));
    }
    let rate = config.get("sync_rate").and_then(|it| it.as_f64());
    if rate.is_some_and(|rate| rate > 0.0 && rate < 0.02) {
        faults.push(("config", TOO_FAST.to_owned()));
    }
    faults
}

const SAME_NUMBER: &str = "You must provide the same number of windows and limits";
const TOO_FAST: &str = "Config option 'sync_rate' must not be a decimal between 0 and 0.02";

/// As many limits as windows, and a rate at which counts are synchronised if they are shared.
pub fn check(plugin: &Fields) -> Vec<(&'static str, String)> {
    let Some(config) = plugin.get("config") else {
        return Vec::new();
    };
    let mut faults = check_windows(plugin);
    let rate = config.get("sync_rate").and_then(|it| it.as_f64());
    let strategy = config
        .get("strategy")
        .and_then(|it| it.as_str())
        .unwrap_or("local");
    let fault = match (strategy, rate) {
        ("local", Some(rate)) if rate > -1.0 => "sync_rate cannot be configured when using a local strategy",
        (strategy, None) if strategy != "local" => "sync_rate is required if not using a local strategy",
        ("cluster", Some(rate)) if rate < 0.0 => {
            "Strategy 'cluster' cannot be configured with a sync_rate of -1"
        }
        _ => return faults,
    };
    faults.push(("config", fault.to_owned()));
    faults
}

/// The catalogue's configuration; what calls are counted by is for the plugins.
pub fn config(config: Limits) -> Result<Config, UnsupportedOption> {
    // The original takes any number, and fails when it is to answer with one that is no status.
    let status = match config.error_code.unwrap_or(429.0) as u16 {
        status @ 200..=599 => status,
        _ => 500,
    };
    if config.limit.len() > MOST {
        return Err(UnsupportedOption {
            field: "limit",
            what: format!("more than {MOST} limits"),
        });
    }
    let is_sliding = config.window_type == "sliding";
    let limits = config
        .window_size
        .iter()
        .zip(&config.limit)
        .map(|(seconds, count)| Limit {
            count: LimitValue::Number(*count as u64),
            per: window(*seconds as u64, is_sliding),
            by: None,
            headers: headers(*seconds as u64, config.hide_client_headers),
        });
    let limits = limits.collect();
    // Below 0 counts are never synchronised.
    let is_shared = config.strategy == "redis" && config.sync_rate.is_some_and(|rate| rate >= 0.0);
    let rate = config.sync_rate.filter(|rate| *rate > 0.0);
    let redis = is_shared.then(|| config.redis.redis()).transpose()?;
    Ok(Config {
        limits,
        // A `/` stands between a workspace and its own scopes.
        scope: (config.namespace).map(|it| it.replace('%', "%25").replace('/', "%2F")),
        across: match config.strategy.as_str() {
            "cluster" if config.sync_rate.is_none_or(|rate| rate >= 0.0) => CountScope::Gateways,
            _ => CountScope::Gateway,
        },
        store: redis.map(|redis| WindowStore {
            on_unavailable: OnUnavailable::Pass,
            sync_interval_seconds: rate.map(|rate| rate.clamp(0.02, 3600.0)),
            ..WindowStore::new(redis)
        }),
        when_key_missing: MissingKey::Ip,
        status,
        message: Some(config.error_message.unwrap_or_else(|| EXCEEDED.to_owned())),
        headers: match config.hide_client_headers {
            true => SummaryHeaders::NONE,
            false => SummaryHeaders::default(),
        },
        retry_after_jitter_seconds: config.retry_after_jitter_max.max(0.0) as u64,
        on_failure: OnFailure::Pass,
        ..Config::default()
    })
}

/// Most limits of one instance.
const MOST: usize = 8;

fn window(seconds: u64, is_sliding: bool) -> Per {
    // The original's windows have at least a second.
    let seconds = LimitValue::Number(seconds.max(1));
    match is_sliding {
        true => Per::SlidingSeconds(seconds),
        false => Per::ClockSeconds(seconds),
    }
}

fn headers(seconds: u64, are_hidden: bool) -> LimitHeaders {
    if are_hidden {
        return LimitHeaders::default();
    }
    let word = match seconds {
        1 => "Second".to_owned(),
        60 => "Minute".to_owned(),
        3_600 => "Hour".to_owned(),
        86_400 => "Day".to_owned(),
        2_592_000 => "Month".to_owned(),
        31_536_000 => "Year".to_owned(),
        other => other.to_string(),
    };
    LimitHeaders {
        limit: Some(format!("X-RateLimit-Limit-{word}")),
        remaining: Some(format!("X-RateLimit-Remaining-{word}")),
        reset: None,
    }
}
