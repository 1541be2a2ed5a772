//! Instances of `rate-limit` whose counts several gateways share: each call asks the Redis, or is counted locally and
//! synchronized with the Redis later.

use super::engine::{Decision, Failure, Group, Limits, NoKey};
use crate::rate_key::handled::is_handled;
use crate::redis::{Accumulator, Shared, answer, run, windows};
use std::sync::Arc;
use weir_flow::rate_limit::{MAX_LIMITS, WindowLimit, WindowState};
use weir_plugin::{Exchange, Filter, Indeterminate, Outcome, Phases, RedisCommand};

/// An instance of which each call asks the Redis.
pub(super) struct RedisLimits {
    pub(super) limits: Limits,
    pub(super) shared: Shared,
}

/// How far the groups have been asked.
struct Progress {
    decision: Decision,
    /// The groups that are done with.
    done: usize,
    /// The limits of the group that is being asked.
    asked: Option<Vec<WindowLimit>>,
}

impl RedisLimits {
    /// Goes on with the groups until one must ask.
    fn go_on(&self, exchange: &mut Exchange, progress: &mut Progress) -> Result<Option<Outcome>, Failure> {
        let now_ms = exchange.unix_ms();
        while let Some(group) = self.limits.groups.get(progress.done) {
            let name = match group.by.name(exchange) {
                Some(name) => name,
                None => match progress.decision.go_on_without(group.when_key_missing)? {
                    NoKey::ByAddress => group.by.name_of_address(exchange.request.client),
                    NoKey::WithTheNext => {
                        progress.done += 1;
                        continue;
                    }
                },
            };
            let limits = group.read(exchange, progress.decision.count)?;
            let cost = progress.decision.cost;
            let call = windows::take(&self.shared, &name, &limits, cost, now_ms);
            progress.asked = Some(limits.into_owned());
            return Ok(Some(run(call)));
        }
        Ok(None)
    }

    /// Takes in the result for a group. `Some`: the outcome of the call, because there was no answer.
    fn take_in(&self, group: &Group, exchange: &mut Exchange, progress: &mut Progress) -> Option<Outcome> {
        let limits = progress.asked.take()?;
        progress.done += 1;
        let now_ms = exchange.unix_ms();
        let mut states = [WindowState::default(); MAX_LIMITS];
        let taken =
            answer(exchange).and_then(|answer| windows::taken(&limits, now_ms, &answer.numbers, &mut states));
        if let Some(verdict) = taken {
            let decision = &mut progress.decision;
            self.limits
                .note_status(group, &limits, &states, verdict, exchange, decision);
            return None;
        }
        let away = self.shared.away("rate-limit");
        if away.is_none() {
            let key = group.by.key(exchange);
            let key = key.unwrap_or_else(|| group.by.key_of_address(exchange.request.client));
            self.limits
                .take_local(group, key, &limits, now_ms, exchange, &mut progress.decision);
        }
        away
    }
}

impl Filter for RedisLimits {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.limits.needs_body()
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.limits.indeterminate(exchange)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "rate-limit") {
            return Outcome::Continue;
        }
        let known: Option<Progress> = exchange.filter_state.take(self);
        let mut progress = match known {
            Some(progress) => progress,
            None => match self.limits.cost(exchange) {
                Ok(cost) => Progress {
                    decision: Decision::of(cost),
                    done: 0,
                    asked: None,
                },
                Err(outcome) => return outcome,
            },
        };
        if let Some(group) = self.limits.groups.get(progress.done)
            && let Some(outcome) = self.take_in(group, exchange, &mut progress)
        {
            return outcome;
        }
        let decision = match progress.decision.allowed {
            false => Ok(progress.decision),
            true => match self.go_on(exchange, &mut progress) {
                Ok(Some(ask)) => {
                    exchange.filter_state.put(self, progress);
                    return ask;
                }
                Ok(None) => progress.decision.conclude(),
                Err(failure) => Err(failure),
            },
        };
        match self.limits.conclude(decision, exchange) {
            None => Outcome::Continue,
            Some(refusal) => Outcome::Refuse(refusal),
        }
    }
}

/// An instance that counts locally and synchronizes later.
pub(super) struct SyncedLimits {
    pub(super) limits: Limits,
    pub(super) ledger: Arc<Accumulator>,
}

impl Filter for SyncedLimits {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.limits.needs_body()
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.limits.indeterminate(exchange)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "rate-limit") {
            return Outcome::Continue;
        }
        let cost = match self.limits.cost(exchange) {
            Ok(cost) => cost,
            Err(outcome) => return outcome,
        };
        let mut has_counted = false;
        let decision = self
            .limits
            .decide(exchange, cost, |group, key, limits, now_ms, exchange| {
                has_counted = true;
                self.ledger.note(key, limits, cost, now_ms, || {
                    let own = group.by.name(exchange);
                    own.unwrap_or_else(|| group.by.name_of_address(exchange.request.client))
                });
            });
        let refusal = self.limits.conclude(decision, exchange);
        match refusal {
            refusal if has_counted && self.ledger.starts() => Outcome::Redis(Box::new(RedisCommand::Settle(
                Arc::clone(&self.ledger) as Arc<dyn weir_plugin::RedisAccumulator>,
                refusal,
            ))),
            None => Outcome::Continue,
            Some(refusal) => Outcome::Refuse(refusal),
        }
    }
}
