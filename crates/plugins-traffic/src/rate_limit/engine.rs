//! The rate limit at work: configuration made ready for many calls.

use super::compiled::{CompiledLimit, DAY_MS, Names, length_ms};
use super::{Config, MissingKey, OnFailure};
use crate::graphql_cost::{CompiledCost, Costs, SchemaCache};
use crate::rate_key::RateKey;
use crate::rate_key::handled::is_handled;
use std::borrow::Cow;
use std::cmp::Reverse;
use weir_flow::rate_limit::{Counters, Limiter, MAX_LIMITS, Verdict, WindowLimit, WindowState};
use weir_plugin::headers::FieldName;
use weir_plugin::{Exchange, Filter, Headers, Indeterminate, Outcome, Phases, Refusal, RefusalKind};

/// An instance of `rate-limit` whose counters are those of this process.
pub(super) struct Limits {
    pub(super) counters: Counters,
    /// Limits that are checked together, in the order of their checks.
    pub(super) groups: Vec<Group>,
    on_failure: OnFailure,
    reject: bool,
    status: u16,
    message: Option<String>,
    /// Windows of a day and longer are quotas.
    has_quotas: bool,
    summary: Names,
    /// Seconds that are added to `Retry-After` by chance, at most.
    jitter_s: u64,
    fractional_reset: bool,
    /// What calls count as; `None`: as one.
    cost: Option<CompiledCost>,
}

/// Limits with the same key.
pub(super) struct Group {
    pub(super) by: RateKey,
    pub(super) when_key_missing: KeyFallback,
    limits: Vec<CompiledLimit>,
    /// The limits, if they are the same for all calls.
    fixed: Option<Vec<WindowLimit>>,
}

/// What happens if a call has no key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyFallback {
    Ip,
    Pass,
    Fail,
    /// The next group is asked; it is a failure if no group has a key.
    Skip,
}

/// How a call without a key goes on.
pub(super) enum NoKey {
    ByAddress,
    WithTheNext,
}

impl Group {
    fn new(by: RateKey, when_key_missing: KeyFallback, limits: Vec<CompiledLimit>) -> Self {
        Self {
            by,
            when_key_missing,
            fixed: limits.iter().map(CompiledLimit::fixed).collect(),
            limits,
        }
    }

    /// The limits for this call, as many as there is room for after `taken` others. Nearly always they are the same for all
    /// calls.
    pub(super) fn read(&self, exchange: &Exchange, taken: usize) -> Result<Cow<'_, [WindowLimit]>, Failure> {
        let room = MAX_LIMITS - taken;
        if let Some(fixed) = &self.fixed {
            return Ok(Cow::Borrowed(&fixed[..fixed.len().min(room)]));
        }
        let limits = self.limits.iter().take(room);
        let limits: Option<Vec<WindowLimit>> = limits.map(|limit| limit.read(exchange)).collect();
        limits.map(Cow::Owned).ok_or(Failure)
    }
}

/// How the limit stands that leaves the fewest calls, after a decision.
#[derive(Clone, Copy)]
struct WindowStatus {
    state: WindowState,
    length_ms: u64,
}

impl WindowStatus {
    /// Fewer calls are tighter, and of as many those of a longer window.
    fn is_tighter_than(&self, other: &Self) -> bool {
        let rank = |it: &Self| (it.state.remaining, Reverse(it.length_ms));
        rank(self) < rank(other)
    }
}

/// The result of all groups so far.
pub(super) struct Decision {
    pub(super) allowed: bool,
    /// Of all limits so far.
    tightest: Option<WindowStatus>,
    /// How many limits there were.
    pub(super) count: usize,
    passes_uncounted: bool,
    /// As how many the call counts.
    pub(super) cost: u64,
}

/// A call for which no limit can be found out.
pub(super) struct Failure;

impl Decision {
    /// Nothing is decided yet of a call that counts as so many.
    pub(super) fn of(cost: u64) -> Self {
        Self {
            allowed: true,
            tightest: None,
            count: 0,
            passes_uncounted: false,
            cost,
        }
    }

    /// How a call goes on that has nothing to count by.
    pub(super) fn go_on_without(&mut self, when_key_missing: KeyFallback) -> Result<NoKey, Failure> {
        match when_key_missing {
            KeyFallback::Ip => Ok(NoKey::ByAddress),
            KeyFallback::Fail => Err(Failure),
            KeyFallback::Skip => Ok(NoKey::WithTheNext),
            KeyFallback::Pass => {
                self.passes_uncounted = true;
                Ok(NoKey::WithTheNext)
            }
        }
    }

    /// The decision, unless no group had anything to count by.
    pub(super) fn conclude(self) -> Result<Self, Failure> {
        match self.count == 0 && !self.passes_uncounted {
            true => Err(Failure),
            false => Ok(self),
        }
    }
}

impl Limits {
    pub(super) fn build(config: Config, instance_id: &str, limiter: &Limiter, schemas: &SchemaCache) -> Self {
        let cost = config.graphql.as_ref();
        let cost = cost.map(|cost| CompiledCost::new(cost, "rate-limit", instance_id, schemas));
        let scope = config.scope.as_deref().unwrap_or(instance_id);
        let mut groups = Vec::new();
        let mut common = Vec::new();
        for (index, limit) in config.limits.into_iter().enumerate() {
            match limit.by.clone() {
                None => common.push(CompiledLimit::new(limit)),
                Some(by) => groups.push(Group::new(
                    RateKey::new(scope, 1 + index as u8, by),
                    KeyFallback::Skip,
                    vec![CompiledLimit::new(limit)],
                )),
            }
        }
        if !common.is_empty() {
            let when_key_missing = match config.when_key_missing {
                MissingKey::Ip => KeyFallback::Ip,
                MissingKey::Nothing => KeyFallback::Pass,
                MissingKey::Fail => KeyFallback::Fail,
            };
            let by = RateKey::new(scope, 0, config.by);
            groups.push(Group::new(by, when_key_missing, common));
        }
        Self {
            counters: limiter.counters(scope),
            groups,
            on_failure: config.on_failure,
            reject: config.reject,
            status: config.status,
            message: config.message,
            has_quotas: config.quota,
            summary: config.headers.into(),
            jitter_s: config.retry_after_jitter_seconds,
            fractional_reset: config.fractional_reset,
            cost,
        }
    }

    /// As how many a call counts, or what the engine has to do first.
    #[inline]
    pub(super) fn cost(&self, exchange: &mut Exchange) -> Result<u64, Outcome> {
        let Some(cost) = &self.cost else { return Ok(1) };
        match cost.of(exchange) {
            Costs::This(cost) => Ok(cost),
            Costs::Otherwise(outcome) => Err(outcome),
        }
    }

    /// Asks all groups for their counters here. `note` learns what was counted.
    pub(super) fn decide(
        &self,
        exchange: &mut Exchange,
        cost: u64,
        mut note: impl FnMut(&Group, u128, &[WindowLimit], u64, &Exchange),
    ) -> Result<Decision, Failure> {
        let now_ms = exchange.unix_ms();
        let mut decision = Decision::of(cost);
        for group in &self.groups {
            let key = match (group.by.key(exchange), group.when_key_missing) {
                (Some(key), _) => key,
                (None, when_key_missing) => match decision.go_on_without(when_key_missing)? {
                    NoKey::ByAddress => group.by.key_of_address(exchange.request.client),
                    NoKey::WithTheNext => continue,
                },
            };
            let limits = group.read(exchange, decision.count)?;
            self.take_local(group, key, &limits, now_ms, exchange, &mut decision);
            if !decision.allowed {
                break;
            }
            note(group, key, &limits, now_ms, exchange);
        }
        decision.conclude()
    }

    /// Checks and counts one group with this process's counters.
    pub(super) fn take_local(
        &self,
        group: &Group,
        key: u128,
        limits: &[WindowLimit],
        now_ms: u64,
        exchange: &mut Exchange,
        decision: &mut Decision,
    ) {
        // Nearly always there is one, which needs no room for eight.
        let mut one = [WindowState::default()];
        let mut several;
        let states: &mut [WindowState] = match limits {
            [_] => &mut one,
            _ => {
                several = [WindowState::default(); MAX_LIMITS];
                &mut several
            }
        };
        let verdict = self
            .counters
            .take_many(key, limits, decision.cost, now_ms, states);
        self.note_status(group, limits, states, verdict, exchange, decision);
    }

    /// Records the decision of a group, and sets its headers.
    pub(super) fn note_status(
        &self,
        group: &Group,
        limits: &[WindowLimit],
        states: &[WindowState],
        verdict: Verdict,
        exchange: &mut Exchange,
        decision: &mut Decision,
    ) {
        decision.allowed = matches!(verdict, Verdict::Allowed);
        for (limit, state) in limits.iter().zip(states) {
            let status = WindowStatus {
                state: *state,
                length_ms: length_ms(limit.window),
            };
            if decision
                .tightest
                .is_none_or(|known| status.is_tighter_than(&known))
            {
                decision.tightest = Some(status);
            }
            decision.count += 1;
        }
        self.write_headers(group, &states[..limits.len().min(states.len())], exchange);
    }

    /// What happens to the call.
    pub(super) fn conclude(
        &self,
        decision: Result<Decision, Failure>,
        exchange: &mut Exchange,
    ) -> Option<Box<Refusal>> {
        let decision = match (decision, self.on_failure) {
            (Ok(decision), _) => decision,
            (Err(Failure), OnFailure::Pass) => return None,
            (Err(Failure), OnFailure::Refuse) => {
                return Some(Box::new(Refusal::new(RefusalKind::PluginFailed {
                    plugin: "rate-limit",
                    reason: "no limit can be found out for the call",
                })));
            }
        };
        self.write_summary_headers(&decision, exchange);
        if decision.allowed || !self.reject {
            return None;
        }
        let is_quota = |tightest: &WindowStatus| tightest.length_ms >= DAY_MS;
        let kind = match self.has_quotas && decision.tightest.as_ref().is_some_and(is_quota) {
            true => RefusalKind::QuotaSpent,
            false => RefusalKind::RateLimited,
        };
        let mut refusal = Refusal::with_status(kind, self.status);
        refusal.message.clone_from(&self.message);
        Some(Box::new(refusal))
    }

    /// Headers about each limit of a group.
    fn write_headers(&self, group: &Group, states: &[WindowState], exchange: &mut Exchange) {
        for (limit, state) in group.limits.iter().zip(states) {
            let names = &limit.headers;
            let out = &mut exchange.response_headers;
            set_number(out, names.limit.as_ref(), state.limit);
            set_number(out, names.remaining.as_ref(), state.remaining);
            self.set_reset(out, names.reset.as_ref(), state.reset_ms);
        }
    }

    /// Headers about the tightest limit.
    fn write_summary_headers(&self, decision: &Decision, exchange: &mut Exchange) {
        let Some(WindowStatus { state, .. }) = &decision.tightest else {
            return;
        };
        let jitter = match self.jitter_s {
            0 => 0,
            most => exchange.random_u64() % most.saturating_add(1),
        };
        let out = &mut exchange.response_headers;
        set_number(out, self.summary.limit.as_ref(), state.limit);
        set_number(out, self.summary.remaining.as_ref(), state.remaining);
        self.set_reset(out, self.summary.reset.as_ref(), state.reset_ms);
        if !decision.allowed && self.reject {
            let seconds = state.reset_ms.div_ceil(1_000).max(1).saturating_add(jitter);
            set_number(out, self.summary.retry_after.as_ref(), seconds);
        }
    }

    fn set_reset(&self, out: &mut Headers, name: Option<&FieldName>, reset_ms: u64) {
        let Some(name) = name else { return };
        let hundredths = reset_ms / 10 % 100;
        if !self.fractional_reset {
            set_number(out, Some(name), reset_ms.div_ceil(1_000));
            return;
        }
        if hundredths == 0 {
            set_number(out, Some(name), reset_ms / 1_000);
            return;
        }
        let text = format!("{}.{hundredths:02}", reset_ms / 1_000);
        out.set_named(name, text.trim_end_matches('0').as_bytes());
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

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.groups.iter().find_map(|group| {
            let mut limits = group.limits.iter();
            let by = group.by.indeterminate(exchange);
            by.or_else(|| limits.find_map(|limit| limit.indeterminate(exchange)))
        })
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "rate-limit") {
            return Outcome::Continue;
        }
        let cost = match self.cost(exchange) {
            Ok(cost) => cost,
            Err(outcome) => return outcome,
        };
        let decision = self.decide(exchange, cost, |_, _, _, _, _| {});
        match self.conclude(decision, exchange) {
            None => Outcome::Continue,
            Some(refusal) => Outcome::Refuse(refusal),
        }
    }
}

/// Sets a header with a number. If a call passes several instances, the last one wins: clients read one value.
fn set_number(out: &mut Headers, name: Option<&FieldName>, number: u64) {
    if let Some(name) = name {
        out.set_named(name, itoa::Buffer::new().format(number).as_bytes());
    }
}
