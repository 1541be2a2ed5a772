//! `limit-count`: `rate-limit` of the catalogue.

use super::redis::{Settings, with_policies};
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, having, integer, number, object, one_of, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;
use weir_plugins::rate_limit::{
    Config, Limit, LimitHeaders, LimitValue, MissingKey, OnFailure, Per, RateLimitKey, SummaryHeaders,
};
use weir_plugins::redis::{OnUnavailable, WindowStore};

const BOTH: &str = "count/time_window and rules cannot be specified at the same time";
/// The most rules that the catalogue's plugin takes.
const MOST_RULES: usize = 8;

/// The plugin `limit-count`.
pub struct LimitCount;

#[derive(Deserialize)]
struct Options {
    count: Option<LimitValue>,
    time_window: Option<LimitValue>,
    #[serde(default)]
    rules: Vec<Rule>,
    key: String,
    key_type: String,
    window_type: String,
    group: Option<String>,
    sync_interval: f64,
    #[serde(flatten)]
    redis: Settings,
    rejected_code: u16,
    rejected_msg: Option<String>,
    show_limit_quota_header: bool,
}

#[derive(Deserialize)]
struct Rule {
    count: LimitValue,
    time_window: LimitValue,
    key: String,
    header_prefix: Option<String>,
}

/// Names of the headers about a limit.
#[derive(Clone, Deserialize)]
pub struct Headers {
    /// How much may pass.
    pub limit_header: String,
    /// How much still may.
    pub remaining_header: String,
    /// Seconds until all of it may again.
    pub reset_header: String,
}

impl PluginAdapter for LimitCount {
    fn name(&self) -> &'static str {
        "limit-count"
    }

    fn priority(&self) -> i64 {
        1002
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(shape);
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("limit_header", text().or("X-RateLimit-Limit")),
                ("remaining_header", text().or("X-RateLimit-Remaining")),
                ("reset_header", text().or("X-RateLimit-Reset")),
            ])
        });
        Some(&SHAPE)
    }

    fn explain(&self, config: &Value, error: String) -> String {
        if error.contains("value should match only one schema") && has_rules_and_count(config) {
            BOTH.to_owned()
        } else {
            error
        }
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let rules = config.get("rules").and_then(Value::as_array);
        // The shape allows `rules` together with one of the two.
        if rules.is_some() && (config.contains_key("count") || config.contains_key("time_window")) {
            return Err(BOTH.to_owned());
        }
        if rules.is_some() && config.contains_key("group") {
            return Err("group and rules cannot be specified at the same time".to_owned());
        }
        check_interval(config)?;
        let mut keys = Vec::new();
        for key in rules
            .into_iter()
            .flatten()
            .filter_map(|rule| rule.get("key")?.as_str())
        {
            if keys.contains(&key) {
                return Err(format!("duplicate key '{key}' in rules"));
            }
            keys.push(key);
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "rate-limit"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        options.report(notes);
        let headers = Headers::of(context.metadata, self.name())?;
        let sends_headers = options.show_limit_quota_header;
        let by_rule = !options.rules.is_empty();
        serde_json::to_value(Config {
            by: count_by(&options.key_type, &options.key),
            when_key_missing: MissingKey::Ip,
            scope: Some(options.scope(config, context.instance)),
            status: options.rejected_code,
            message: options.rejected_msg.clone(),
            headers: if sends_headers && !by_rule {
                headers.summary()
            } else {
                SummaryHeaders::NONE
            },
            fractional_reset: true,
            on_failure: match options.redis.on_unavailable() {
                OnUnavailable::Pass => OnFailure::Pass,
                _ => OnFailure::Refuse,
            },
            store: options.store(notes),
            limits: options.limits(sends_headers.then_some(&headers)),
            ..Config::default()
        })
    }
}

/// The shape of a configuration; other plugins that limit have it too.
pub fn shape() -> Schema {
    let rule = object([
        ("count", amount()),
        ("time_window", amount()),
        ("key", text()),
        ("header_prefix", text()),
    ])
    .required(["count", "time_window", "key"]);
    let shape = object([
        ("count", amount()),
        ("time_window", amount()),
        ("window_type", text().options(["fixed", "sliding"]).or("fixed")),
        ("rules", array(rule)),
        ("group", text()),
        ("key", text().or("remote_addr")),
        (
            "key_type",
            text().options(["var", "var_combination", "constant"]).or("var"),
        ),
        ("rejected_code", integer().at_least(200).at_most(599).or(503)),
        ("rejected_msg", text().longer(1)),
        (
            "policy",
            text()
                .options(["local", "redis", "redis-cluster", "redis-sentinel"])
                .or("local"),
        ),
        ("allow_degradation", boolean().or(false)),
        ("show_limit_quota_header", boolean().or(true)),
        ("sync_interval", number().or(-1)),
        ("_meta", meta::shape()),
    ])
    .one_of([having(["count", "time_window"]), having(["rules"])]);
    with_policies(shape, true, false)
}

impl Headers {
    /// The names that the metadata of a plugin gives, or the usual ones.
    pub fn of(metadata: &Map<String, Value>, plugin: &str) -> Result<Cow<'static, Self>, serde_json::Error> {
        static USUAL: LazyLock<Option<Headers>> = LazyLock::new(|| {
            let none = Value::Object(Map::new());
            Headers::filled(none).ok()
        });
        match (metadata.get(plugin), &*USUAL) {
            (None, Some(usual)) => Ok(Cow::Borrowed(usual)),
            (names, _) => Self::filled(names.cloned().unwrap_or_default()).map(Cow::Owned),
        }
    }

    /// Metadata has been checked; this fills in what it leaves out.
    fn filled(mut names: Value) -> Result<Self, serde_json::Error> {
        if let Some(shape) = LimitCount.metadata_shape() {
            let _ = shape.check(&mut names);
        }
        read(&names)
    }
}

impl Options {
    fn report(&self, notes: &mut Warnings) {
        if self.rules.len() > MOST_RULES {
            notes.not_available("rules", &format!("a list of more than {MOST_RULES} rules"));
        }
    }

    /// The store of counts that several gateways share.
    fn store(&self, notes: &mut Warnings) -> Option<WindowStore> {
        Some(WindowStore {
            on_unavailable: self.redis.on_unavailable(),
            unavailable_message: Some("failed to limit count".to_owned()),
            sync_interval_seconds: (self.sync_interval > 0.0).then(|| self.sync_interval.min(3600.0)),
            ..WindowStore::new(self.redis.redis(notes)?)
        })
    }

    fn limits(self, names: Option<&Headers>) -> Vec<Limit> {
        let per = match self.window_type.as_str() {
            "sliding" => Per::SlidingSeconds,
            _ => Per::Seconds,
        };
        if let (Some(count), Some(window)) = (self.count, self.time_window) {
            return vec![Limit {
                count,
                per: per(window),
                by: None,
                headers: LimitHeaders::default(),
            }];
        }
        let rules = self.rules.into_iter().zip(1..);
        rules
            .map(|(rule, number)| {
                let prefix = rule.header_prefix.unwrap_or_else(|| number.to_string());
                Limit {
                    count: rule.count,
                    per: per(rule.time_window),
                    by: Some(RateLimitKey::Template(rule.key)),
                    headers: names
                        .map(|headers| headers.with_prefix(&prefix))
                        .unwrap_or_default(),
                }
            })
            .collect()
    }

    /// Counters belong to the resource together with its configuration, or to a group.
    fn scope(&self, config: &Value, instance: &str) -> String {
        match &self.group {
            Some(group) => format!("limit-count/group/{group}"),
            None => scope(config, instance),
        }
    }
}

/// The counted value for a key of this type.
pub fn count_by(key_type: &str, key: &str) -> RateLimitKey {
    match (key_type, key) {
        ("constant", _) => RateLimitKey::Everybody,
        ("var_combination", template) => RateLimitKey::Template(template.to_owned()),
        (_, "remote_addr") => RateLimitKey::Ip,
        (_, variable) => RateLimitKey::Template(format!("${{{variable}}}")),
    }
}

/// Counters that belong to a resource together with its configuration.
pub fn scope(config: &Value, instance: &str) -> String {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(config)
        .unwrap_or_default()
        .hash(&mut hasher);
    format!("{instance}#{:016x}", hasher.finish())
}

impl Headers {
    fn summary(&self) -> SummaryHeaders {
        SummaryHeaders {
            limit: Some(self.limit_header.clone()),
            remaining: Some(self.remaining_header.clone()),
            reset: Some(self.reset_header.clone()),
            retry_after: None,
        }
    }

    fn with_prefix(&self, prefix: &str) -> LimitHeaders {
        let name = |base: &str| Some(base.replacen("RateLimit-", &format!("{prefix}-RateLimit-"), 1));
        LimitHeaders {
            limit: name(&self.limit_header),
            remaining: name(&self.remaining_header),
            reset: name(&self.reset_header),
        }
    }
}

fn has_rules_and_count(config: &Value) -> bool {
    let has = |field: &str| config.get(field).is_some();
    has("rules") && (has("count") || has("time_window"))
}

/// Counts are synchronised at intervals, which must be shorter than the windows.
fn check_interval(config: &Map<String, Value>) -> Result<(), String> {
    let number = |field: &str| config.get(field).and_then(Value::as_f64);
    let policy = config.get("policy").and_then(Value::as_str);
    let Some(interval) = number("sync_interval").filter(|interval| *interval != -1.0) else {
        return Ok(());
    };
    if !policy.is_some_and(|policy| policy.starts_with("redis")) {
        return Ok(());
    }
    if interval < 0.1 {
        return Err("sync_interval should not be smaller than 0.1".to_owned());
    }
    match number("time_window") {
        Some(window) if interval >= window => {
            Err("sync_interval should be smaller than time_window".to_owned())
        }
        _ => Ok(()),
    }
}

/// A positive number, or a text with variables that gives one.
pub fn amount() -> Schema {
    one_of([integer().above(0), text()])
}
