//! Places that several gateways share: they are taken and given back in a Redis.

use super::{ConcurrencyFilter, LimitDecision, RejectReason, pass};
use crate::rate_key::handled::is_handled;
use crate::redis::{Shared, answer, run, scripts};
use std::rc::Rc;
use weir_plugin::{Exchange, Filter, Indeterminate, Outcome, Phases, RedisCall, RedisPublisher};

/// An instance whose places several gateways share.
pub(super) struct SharedConcurrencyFilter {
    places: ConcurrencyFilter,
    shared: Shared,
    forget_ms: u64,
}

/// A place that a call has, given back when it is dropped.
struct AcquiredSlot {
    outlet: Rc<dyn RedisPublisher>,
    leave: Option<RedisCall>,
}

impl Drop for AcquiredSlot {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            self.outlet.fire_and_forget(leave);
        }
    }
}

/// The places that a call has so far.
#[derive(Default)]
struct Progress {
    held: Vec<AcquiredSlot>,
    delay: f64,
    is_counted: bool,
    /// Limits that are done with.
    done: usize,
    /// What the Redis is being asked: how to give the place back, and how many calls may be under way without waiting.
    asked: Option<(RedisCall, u64)>,
}

impl SharedConcurrencyFilter {
    pub(super) fn new(places: ConcurrencyFilter, shared: Shared, forget_ms: u64) -> Self {
        Self {
            places,
            shared,
            forget_ms,
        }
    }

    /// Goes on with the limits until one must ask.
    fn go_on(
        &self,
        exchange: &mut Exchange,
        progress: &mut Progress,
    ) -> Result<Option<RedisCall>, RejectReason> {
        while let Some(limit) = self.places.limits.get(progress.done) {
            let own = limit.by.name(exchange);
            let (count, burst) = match limit.read(own.is_some(), exchange)? {
                LimitDecision::Skip => {
                    progress.done += 1;
                    continue;
                }
                LimitDecision::Pass => {
                    progress.is_counted = true;
                    progress.done += 1;
                    continue;
                }
                LimitDecision::Limit { count, burst } => (count, burst),
            };
            let name = own.unwrap_or_else(|| limit.by.name_of_address(exchange.request.client));
            let id = [
                exchange.random_u64().to_be_bytes(),
                exchange.random_u64().to_be_bytes(),
            ];
            let key: [&[u8]; 4] = [&self.shared.prefix, b":", &name, b":places"];
            let mut leave = self.shared.call(&scripts::LEAVE);
            leave.is_repeatable = true;
            leave.key(&key);
            leave.argument(&[&id[0], &id[1]]);
            let mut enter = self.shared.call(&scripts::ENTER);
            enter.key(&key);
            enter.number(count.saturating_add(burst));
            enter.number(self.forget_ms);
            enter.argument(&[&id[0], &id[1]]);
            enter.compensate = Some(Box::new(leave.clone()));
            progress.is_counted = true;
            progress.asked = Some((leave, count));
            return Ok(Some(enter));
        }
        match progress.is_counted {
            true => Ok(None),
            false => Err(RejectReason::Failure),
        }
    }
}

impl Filter for SharedConcurrencyFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.places.needs_body()
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.places.indeterminate(exchange)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if is_handled(exchange, "concurrency-limit") {
            return Outcome::Continue;
        }
        let mut progress: Progress = exchange.filter_state.take(self).unwrap_or_default();
        if let Some((leave, count)) = progress.asked.take() {
            let Some(answer) = answer(exchange) else {
                // Places that it has already are given back.
                drop(progress);
                let away = self.shared.away("concurrency-limit");
                return away.unwrap_or_else(|| self.places.take_local(exchange));
            };
            let [1, taken] = answer.numbers[..] else {
                return self.places.stop(&RejectReason::Full);
            };
            progress.held.push(AcquiredSlot {
                outlet: answer.outlet,
                leave: Some(leave),
            });
            progress.delay += self.places.delay(u64::try_from(taken).unwrap_or(0), count);
            progress.done += 1;
        }
        match self.go_on(exchange, &mut progress) {
            Ok(Some(enter)) => {
                exchange.filter_state.put(self, progress);
                run(enter)
            }
            Ok(None) => {
                exchange.filter_state.put(self, progress.held);
                pass(progress.delay)
            }
            Err(stop) => self.places.stop(&stop),
        }
    }
}
