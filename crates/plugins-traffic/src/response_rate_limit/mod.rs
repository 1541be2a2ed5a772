//! `response-rate-limit`: limits what calls use up, as the upstream reports it in a response header.
//!
//! ```yaml
//! header: X-Used
//! limits: {videos: [{count: 10, per: hour}], images: [{count: 100, per: day}]}
//! ```
//!
//! A response with `X-Used: videos=2, images=1` counts for the caller. A response that would use more of an exhausted
//! limit is not delivered: its caller gets status 429.

mod shared;

use crate::persistent_counters::PersistentLimiter;
use crate::rate_key::{RateKey, RateLimitKey};
use crate::rate_limit::CountScope;
use crate::redis::Store;
use crate::shared_limits::SharedLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::SharedUsage;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_flow::rate_limit::{Counters, Limiter, Window, WindowLimit};
use weir_model::Diagnostic;
use weir_plugin::headers::is_name;
use weir_plugin::{
    BuildContext, Exchange, Filter, Headers, Outcome, PersistentCounters, Phases, Plugin, Refusal,
    RefusalKind, SharedCounts, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Counters that are held at most, for all instances together.
const MAX_COUNTERS: usize = 1 << 20;

/// Configuration of `response-rate-limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What can be used up, by name, and how much of it in which windows of the clock and calendar (UTC).
    pub limits: BTreeMap<String, Vec<Limit>>,
    /// Whose use is counted together; callers who have no value for it are counted by their address.
    #[serde(default)]
    pub by: RateLimitKey,
    /// Which counters are used. Instances with equal scopes share them. Default: the instance's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The response header in which the upstream reports the usage: `name=number`, several separated by commas. Callers
    /// do not get it.
    #[serde(default = "standard_header")]
    pub header: String,
    /// Whether calls are refused at once, with status 429, as soon as anything is used up.
    #[serde(default)]
    pub refuse_when_used_up: bool,
    /// Whether response headers report each limit and its remaining amount (`X-RateLimit-Limit-videos-hour`). The
    /// amount before the call (`X-RateLimit-Remaining-videos`) is always reported.
    #[serde(default = "weir_plugins_shared::yes")]
    pub limit_headers: bool,
    /// The store for counts that several gateways share. Left out: in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// Whose calls are counted together: those of this gateway, or, without a `store`, of all gateways that follow the
    /// same control plane. The gateways synchronize their counts several times a second.
    #[serde(default, skip_serializing_if = "CountScope::is_gateway")]
    pub across: CountScope,
}

impl Default for Config {
    /// The defaults of all options, with no limit yet.
    fn default() -> Self {
        Self {
            limits: BTreeMap::new(),
            by: RateLimitKey::default(),
            scope: None,
            header: standard_header(),
            refuse_when_used_up: false,
            limit_headers: true,
            store: None,
            across: CountScope::default(),
        }
    }
}

fn standard_header() -> String {
    "X-Used".into()
}

/// How much may be used in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// How much.
    pub count: u64,
    /// The window.
    pub per: Period,
}

/// A window of the clock or the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Period {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

impl Period {
    fn window(self) -> (Window, &'static str) {
        match self {
            Self::Second => (Window::Second, "second"),
            Self::Minute => (Window::Minute, "minute"),
            Self::Hour => (Window::Hour, "hour"),
            Self::Day => (Window::Day, "day"),
            Self::Month => (Window::Month, "month"),
            Self::Year => (Window::Year, "year"),
        }
    }
}

/// The plugin; it owns the counters.
pub struct ResponseRateLimit {
    limiter: Arc<Limiter>,
    shared: Arc<SharedLimits>,
}

impl Default for ResponseRateLimit {
    fn default() -> Self {
        Self {
            limiter: Arc::new(Limiter::new(MAX_COUNTERS)),
            shared: Arc::new(SharedLimits::of("response-rate-limit")),
        }
    }
}

impl Plugin for ResponseRateLimit {
    fn name(&self) -> &'static str {
        "response-rate-limit"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn evictions(&self) -> Option<Arc<AtomicU64>> {
        Some(self.limiter.evictions())
    }

    fn persistent_counters(&self) -> Option<Arc<dyn PersistentCounters>> {
        Some(PersistentLimiter::over(&self.limiter))
    }

    fn shared_counts(&self) -> Option<Arc<dyn SharedCounts>> {
        Some(Arc::clone(&self.shared) as Arc<dyn SharedCounts>)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_name("header", &config.header);
        if config.limits.is_empty() || config.limits.len() > MOST {
            faults.add("limits", format!("expected 1 to {MOST} limits"));
        }
        for (name, windows) in &config.limits {
            if !is_name(name.as_bytes()) {
                faults.add(
                    "limits",
                    format!("expected names that a header can hold, found {name:?}"),
                );
            }
            if windows.is_empty() || windows.len() > 6 {
                faults.add("limits", format!("expected 1 to 6 windows for {name:?}"));
            }
        }
        let is_across = config.across == CountScope::Gateways;
        if is_across && config.store.is_some() {
            faults.add(
                "across",
                "expected no `across` together with a `store`: gateways share what is in the store",
            );
        }
        let shared = config.store.and_then(|store| store.compile(&mut faults));
        faults.done()?;
        let scope = config.scope.as_deref().unwrap_or(context.instance_id);
        let limits = config.limits.into_iter().zip(0..);
        let filter = UseFilter {
            counters: self.limiter.counters(scope),
            across: is_across.then(|| Arc::clone(&self.shared)),
            limits: limits
                .map(|((name, windows), number)| Compiled::new(name, &windows, scope, number, &config.by))
                .collect(),
            header: config.header,
            refuse_when_used_up: config.refuse_when_used_up,
            limit_headers: config.limit_headers,
        };
        Ok(match shared {
            None => Arc::new(filter),
            Some(shared) => Arc::new(SharedUsage { filter, shared }),
        })
    }
}

/// Limits that one configuration can have.
const MOST: usize = 64;

/// A limit made ready for many calls.
struct Compiled {
    name: String,
    by: RateKey,
    /// The header about what is left before the call.
    remaining: String,
    windows: Vec<LimitWindow>,
}

struct LimitWindow {
    window: Window,
    count: u64,
    limit_header: String,
    remaining_header: String,
}

impl Compiled {
    fn new(name: String, windows: &[Limit], scope: &str, number: u8, by: &RateLimitKey) -> Self {
        let spans = windows.iter().map(|limit| {
            let (window, word) = limit.per.window();
            LimitWindow {
                window,
                count: limit.count,
                limit_header: format!("X-RateLimit-Limit-{name}-{word}"),
                remaining_header: format!("X-RateLimit-Remaining-{name}-{word}"),
            }
        });
        Self {
            windows: spans.collect(),
            by: RateKey::new(scope, number, by.clone()),
            remaining: format!("X-RateLimit-Remaining-{name}"),
            name,
        }
    }

    fn key(&self, exchange: &Exchange) -> u128 {
        let own = self.by.key(exchange);
        own.unwrap_or_else(|| self.by.key_of_address(exchange.request.client))
    }

    fn name(&self, exchange: &Exchange) -> Vec<u8> {
        let own = self.by.name(exchange);
        own.unwrap_or_else(|| self.by.name_of_address(exchange.request.client))
    }
}

impl LimitWindow {
    /// The amount that is left in the window after this usage; negative if more was used than there is.
    fn left(&self, used: u64) -> i64 {
        clamped(self.count).saturating_sub(clamped(used))
    }
}

fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// An instance of `response-rate-limit`.
struct UseFilter {
    counters: Counters,
    /// Records the counts, if gateways synchronize them.
    across: Option<Arc<SharedLimits>>,
    limits: Vec<Compiled>,
    header: String,
    refuse_when_used_up: bool,
    limit_headers: bool,
}

impl UseFilter {
    /// How much of a limit was used, as the upstream reports it.
    fn used(&self, limit: &Compiled, headers: &Headers) -> u64 {
        let values = headers.get_all(self.header.as_bytes());
        let mut parts = values.flat_map(|value| value.split(|byte| *byte == b','));
        let found = parts.find_map(|part| {
            let mut sides = part.split(|byte| *byte == b'=');
            let (name, number, more) = (sides.next()?, sides.next()?, sides.next());
            (more.is_none() && name.trim_ascii() == limit.name.as_bytes()).then_some(number.trim_ascii())
        });
        found
            .and_then(|number| std::str::from_utf8(number).ok()?.parse().ok())
            .unwrap_or(0)
    }
}

/// Finds out what has been used: of which limit, by its place, and in which of its windows.
trait UsageSource {
    fn used(&self, exchange: &Exchange, limit: usize, span: &LimitWindow, place: usize) -> u64;
}

/// What this process has counted.
struct LocalUsage<'f> {
    filter: &'f UseFilter,
    now_ms: u64,
}

impl UsageSource for LocalUsage<'_> {
    fn used(&self, exchange: &Exchange, limit: usize, span: &LimitWindow, _: usize) -> u64 {
        let key = self.filter.limits[limit].key(exchange);
        self.filter.counters.used(key, span.window, self.now_ms)
    }
}

impl UseFilter {
    fn here(&self, exchange: &mut Exchange) -> LocalUsage<'_> {
        LocalUsage {
            filter: self,
            now_ms: exchange.unix_ms(),
        }
    }

    /// Tells what is left before the call, or refuses it.
    fn before(&self, exchange: &mut Exchange, known: &impl UsageSource) -> Outcome {
        for (index, limit) in self.limits.iter().enumerate() {
            let left = limit.windows.iter().enumerate();
            let left = left
                .map(|(place, span)| span.left(known.used(exchange, index, span, place)))
                .min();
            let left = left.unwrap_or_default();
            if self.refuse_when_used_up && left <= 0 {
                exchange.response_headers.retain(|header| {
                    !self
                        .limits
                        .iter()
                        .any(|limit| limit.remaining.as_bytes() == header.name)
                });
                let mut refusal = Refusal::new(RefusalKind::RateLimited);
                refusal.message = Some(format!("API rate limit exceeded for '{}'", limit.name));
                return Outcome::Refuse(Box::new(refusal));
            }
            set_number(&mut exchange.response_headers, &limit.remaining, left);
        }
        Outcome::Continue
    }

    /// Reports what is left after the call, and withholds the response if nothing was left. Passes the usage of each
    /// limit to `count`.
    fn after(
        &self,
        exchange: &mut Exchange,
        known: &impl UsageSource,
        mut count: impl FnMut(&Compiled, u64, &Exchange),
    ) {
        let mut is_over = false;
        for (index, limit) in self.limits.iter().enumerate() {
            let used = self.used(limit, &exchange.response.headers);
            for (place, span) in limit.windows.iter().enumerate() {
                let left = span.left(known.used(exchange, index, span, place));
                is_over |= used > 0 && left <= 0;
                if self.limit_headers {
                    let headers = &mut exchange.response.headers;
                    set_number(headers, &span.limit_header, clamped(span.count));
                    let then = left.saturating_sub(clamped(used)).max(0);
                    set_number(headers, &span.remaining_header, then);
                }
            }
        }
        if is_over {
            exchange.response.status = 429;
            exchange.response.reason.clear();
            exchange.response.replaced_body = Some(Vec::new());
        } else {
            for limit in &self.limits {
                let used = self.used(limit, &exchange.response.headers);
                if used > 0 {
                    count(limit, used, exchange);
                }
            }
        }
        exchange.response.headers.remove(self.header.as_bytes());
    }

    /// Counts what was used of a limit in this process.
    fn count_here(&self, limit: &Compiled, used: u64, exchange: &Exchange, now_ms: u64) {
        let unset = WindowLimit {
            window: Window::Second,
            limit: 0,
        };
        let mut limits = [unset; 6];
        for (limit, span) in limits.iter_mut().zip(&limit.windows) {
            (limit.window, limit.limit) = (span.window, span.count);
        }
        let limits = &limits[..limit.windows.len().min(6)];
        let key = limit.key(exchange);
        self.counters.add(key, limits, used, now_ms);
        if let Some(across) = &self.across {
            across.note(&self.counters, (&limit.by, key), limits, used, now_ms, exchange);
        }
    }

    fn respond_here(&self, exchange: &mut Exchange) {
        let here = self.here(exchange);
        self.after(exchange, &here, |limit, used, exchange| {
            self.count_here(limit, used, exchange, here.now_ms);
        });
    }
}

impl Filter for UseFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let here = self.here(exchange);
        self.before(exchange, &here)
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if !exchange.response.is_gateway {
            self.respond_here(exchange);
        }
    }
}

fn set_number(headers: &mut Headers, name: &str, number: i64) {
    headers.set(name.as_bytes(), itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests;
