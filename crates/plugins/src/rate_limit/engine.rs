//! The rate limit at work: configuration made ready for many calls.

use super::compiled::{CompiledLimit, length_ms};
use super::{Amount, Config, OnFailure, Otherwise, Per, SummaryHeaders};
use crate::counting::Counted;
use crate::counting::settled::is_settled;
use std::sync::Arc;
use weir_flow::rate_limit::{Limiter, MAX_LIMITS, Verdict, Window, WindowLimit, WindowState};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{Exchange, Filter, Headers, Outcome, Phases, Refusal, RefusalKind};

/// An instance of `rate-limit`.
pub(super) struct Limits {
    limiter: Arc<Limiter>,
    /// Limits that are checked together, in the order of their checks.
    groups: Vec<Group>,
    on_failure: OnFailure,
    reject: bool,
    status: u16,
    message: Option<String>,
    summary: SummaryHeaders,
    fractional_reset: bool,
}

/// Limits with the same key.
struct Group {
    by: Counted,
    otherwise: Missing,
    limits: Vec<CompiledLimit>,
}

/// What happens where there is no key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Ip,
    Pass,
    Fail,
    /// The next group is asked; it is a failure if no group has a key.
    Skip,
}

/// How a group's limits stand after a decision.
#[derive(Clone, Copy, Default)]
struct Standing {
    state: WindowState,
    length_ms: u64,
}

/// What came of all groups.
struct Decision {
    allowed: bool,
    standings: [Standing; MAX_LIMITS],
    count: usize,
}

/// A call for which no limit can be found out.
struct Failure;

impl Limits {
    pub(super) fn build(
        config: Config,
        instance_id: &str,
        limiter: Arc<Limiter>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let faults = faults(&config);
        if !faults.is_empty() {
            return Err(faults);
        }
        let scope = config.scope.as_deref().unwrap_or(instance_id);
        let mut groups = Vec::new();
        let mut common = Vec::new();
        for (index, limit) in config.limits.into_iter().enumerate() {
            match limit.by.clone() {
                None => common.push(CompiledLimit::new(limit)),
                Some(by) => groups.push(Group {
                    by: Counted::new(scope, 1 + index as u8, by),
                    otherwise: Missing::Skip,
                    limits: vec![CompiledLimit::new(limit)],
                }),
            }
        }
        if !common.is_empty() {
            groups.push(Group {
                by: Counted::new(scope, 0, config.by),
                otherwise: match config.otherwise {
                    Otherwise::Ip => Missing::Ip,
                    Otherwise::Nothing => Missing::Pass,
                    Otherwise::Fail => Missing::Fail,
                },
                limits: common,
            });
        }
        Ok(Self {
            limiter,
            groups,
            on_failure: config.on_failure,
            reject: config.reject,
            status: config.status,
            message: config.message,
            summary: config.headers,
            fractional_reset: config.fractional_reset,
        })
    }

    fn decide(&self, exchange: &mut Exchange) -> Result<Decision, Failure> {
        let now_ms = exchange.unix_ms();
        let mut decision = Decision {
            allowed: true,
            standings: [Standing::default(); MAX_LIMITS],
            count: 0,
        };
        let mut passes_uncounted = false;
        for group in &self.groups {
            let key = match (group.by.key(exchange), group.otherwise) {
                (Some(key), _) => key,
                (None, Missing::Ip) => group.by.key_of_address(exchange.request.client),
                (None, Missing::Fail) => return Err(Failure),
                (None, Missing::Skip) => continue,
                (None, Missing::Pass) => {
                    passes_uncounted = true;
                    continue;
                }
            };
            let before = decision.count;
            decision.allowed = self.take(group, key, now_ms, exchange, &mut decision)?;
            self.tell(group, &decision.standings[before..decision.count], exchange);
            if !decision.allowed {
                break;
            }
        }
        match decision.count == 0 && !passes_uncounted {
            true => Err(Failure),
            false => Ok(decision),
        }
    }

    /// Checks and counts one group; says whether the call passes.
    fn take(
        &self,
        group: &Group,
        key: u128,
        now_ms: u64,
        exchange: &Exchange,
        decision: &mut Decision,
    ) -> Result<bool, Failure> {
        let unset = WindowLimit {
            window: Window::Second,
            limit: 0,
        };
        let mut limits = [unset; MAX_LIMITS];
        let count = group.limits.len().min(MAX_LIMITS - decision.count);
        for (limit, compiled) in limits.iter_mut().zip(&group.limits) {
            *limit = compiled.read(exchange).ok_or(Failure)?;
        }
        let mut states = [WindowState::default(); MAX_LIMITS];
        let verdict = self.limiter.take(key, &limits[..count], now_ms, &mut states);
        for (limit, state) in limits[..count].iter().zip(states) {
            decision.standings[decision.count] = Standing {
                state,
                length_ms: length_ms(limit.window),
            };
            decision.count += 1;
        }
        Ok(matches!(verdict, Verdict::Allowed))
    }

    /// Headers about each limit of a group.
    fn tell(&self, group: &Group, standings: &[Standing], exchange: &mut Exchange) {
        for (limit, standing) in group.limits.iter().zip(standings) {
            let names = &limit.headers;
            let out = &mut exchange.response_headers;
            append_number(out, names.limit.as_ref(), standing.state.limit);
            append_number(out, names.remaining.as_ref(), standing.state.remaining);
            self.append_reset(out, names.reset.as_ref(), standing.state.reset_ms);
        }
    }

    /// Headers about the tightest limit.
    fn sum_up(&self, decision: &Decision, exchange: &mut Exchange) {
        let standings = decision.standings[..decision.count].iter();
        let tightest = standings.min_by_key(|it| (it.state.remaining, std::cmp::Reverse(it.length_ms)));
        let Some(Standing { state, .. }) = tightest else {
            return;
        };
        let out = &mut exchange.response_headers;
        append_number(out, self.summary.limit.as_ref(), state.limit);
        append_number(out, self.summary.remaining.as_ref(), state.remaining);
        self.append_reset(out, self.summary.reset.as_ref(), state.reset_ms);
        if !decision.allowed && self.reject {
            let seconds = state.reset_ms.div_ceil(1_000).max(1);
            append_number(out, self.summary.retry_after.as_ref(), seconds);
        }
    }

    fn append_reset(&self, out: &mut Headers, name: Option<&String>, reset_ms: u64) {
        let Some(name) = name else { return };
        let milliseconds = reset_ms % 1_000;
        if !self.fractional_reset || milliseconds == 0 {
            append_number(out, Some(name), reset_ms.div_ceil(1_000));
            return;
        }
        let text = format!("{}.{milliseconds:03}", reset_ms / 1_000);
        out.append(name.as_bytes(), text.trim_end_matches('0').as_bytes());
    }
}

impl Filter for Limits {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.groups
            .iter()
            .any(|group| group.by.needs_body() || group.limits.iter().any(CompiledLimit::needs_body))
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_settled(exchange, "rate-limit") {
            return Outcome::Continue;
        }
        let decision = match (self.decide(exchange), self.on_failure) {
            (Ok(decision), _) => decision,
            (Err(Failure), OnFailure::Pass) => return Outcome::Continue,
            (Err(Failure), OnFailure::Refuse) => {
                return Outcome::refuse(RefusalKind::PluginFailed {
                    plugin: "rate-limit",
                    reason: "no limit can be found out for the call",
                });
            }
        };
        self.sum_up(&decision, exchange);
        if decision.allowed || !self.reject {
            return Outcome::Continue;
        }
        let mut refusal = Refusal::with_status(RefusalKind::RateLimited, self.status);
        refusal.message.clone_from(&self.message);
        Outcome::Refuse(Box::new(refusal))
    }
}

fn append_number(out: &mut Headers, name: Option<&String>, number: u64) {
    if let Some(name) = name {
        out.append(name.as_bytes(), itoa::Buffer::new().format(number).as_bytes());
    }
}

fn faults(config: &Config) -> Vec<Diagnostic> {
    let root = DocPath::root();
    let mut faults = Vec::new();
    let mut fault = |path: DocPath, message: String| faults.push(Diagnostic::error(path, message));
    if config.limits.is_empty() || config.limits.len() > MAX_LIMITS {
        fault(
            root.field("limits"),
            format!("expected 1 to {MAX_LIMITS} limits, found {}", config.limits.len()),
        );
    }
    if !(200..=599).contains(&config.status) {
        fault(
            root.field("status"),
            format!("expected a status from 200 to 599, found {}", config.status),
        );
    }
    let summary = &config.headers;
    let names = [
        &summary.limit,
        &summary.remaining,
        &summary.reset,
        &summary.retry_after,
    ];
    let mut headers: Vec<_> = names
        .into_iter()
        .flatten()
        .map(|name| (root.field("headers"), name))
        .collect();
    for (index, limit) in config.limits.iter().enumerate() {
        let path = root.field("limits").index(index);
        if let Per::Seconds(Amount::Number(0)) | Per::SlidingSeconds(Amount::Number(0)) = limit.per {
            fault(path.field("per"), "expected at least 1 second".to_owned());
        }
        let names = [
            &limit.headers.limit,
            &limit.headers.remaining,
            &limit.headers.reset,
        ];
        headers.extend(
            names
                .into_iter()
                .flatten()
                .map(|name| (path.field("headers"), name)),
        );
    }
    for (path, name) in headers {
        if !is_name(name.as_bytes()) {
            fault(path, format!("expected a header name, found {name:?}"));
        }
    }
    faults
}
