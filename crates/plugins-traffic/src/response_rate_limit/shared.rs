//! The usage that several gateways count together: it is read before a call, and added to after the call.

use super::{LimitWindow, UsageSource, UseFilter};
use crate::redis::{Shared, answer, run, windows};
use std::rc::Rc;
use weir_flow::rate_limit::Window;
use weir_plugin::{Exchange, Filter, Outcome, Phases, RedisPublisher};

/// An instance whose counts several gateways share.
pub(super) struct SharedUsage {
    pub(super) filter: UseFilter,
    pub(super) shared: Shared,
}

/// That the Redis has been asked.
struct RedisQueried;

/// What it has answered: what is used of each window of each limit.
struct RedisUsage {
    /// By limit, the places of its windows in the list of counts.
    used: Vec<Vec<u64>>,
    outlet: Rc<dyn RedisPublisher>,
    now_ms: u64,
}

impl UsageSource for RedisUsage {
    fn used(&self, _: &Exchange, limit: usize, _: &LimitWindow, place: usize) -> u64 {
        let of = self.used.get(limit).and_then(|windows| windows.get(place));
        of.copied().unwrap_or(0)
    }
}

/// That there was no answer, and the call is counted in this process.
struct LocalFallback;

impl SharedUsage {
    fn ask(&self, exchange: &mut Exchange) -> Outcome {
        let now_ms = exchange.unix_ms();
        let limits = self.filter.limits.iter();
        let names: Vec<Vec<u8>> = limits.clone().map(|limit| limit.name(exchange)).collect();
        let of = names.iter().zip(limits).flat_map(|(name, limit)| {
            let windows = limit.windows.iter();
            windows.map(move |span| (name.as_slice(), span.window, span.window.end_ms(now_ms)))
        });
        let call = windows::add(&self.shared, of, 0);
        exchange.filter_state.put(self, RedisQueried);
        run(call)
    }

    /// Takes in the result of the request.
    fn finish(&self, exchange: &mut Exchange) -> Outcome {
        let now_ms = exchange.unix_ms();
        let Some(answer) = answer(exchange) else {
            return self.shared.away("response-rate-limit").unwrap_or_else(|| {
                exchange.filter_state.put(self, LocalFallback);
                self.filter.on_request(exchange)
            });
        };
        let mut counts = windows::added(&answer.numbers);
        let limits = self.filter.limits.iter();
        let known = RedisUsage {
            used: limits
                .map(|limit| {
                    let windows = limit.windows.iter();
                    windows
                        .map(|_| counts.next().map_or(0, |(used, _)| used))
                        .collect()
                })
                .collect(),
            outlet: answer.outlet,
            now_ms,
        };
        let outcome = self.filter.before(exchange, &known);
        exchange.filter_state.put(self, known);
        outcome
    }

    fn add(&self, known: &RedisUsage, name: &[u8], of: impl Iterator<Item = Window> + Clone, used: u64) {
        let of = of.map(|window| (name, window, window.end_ms(known.now_ms)));
        known.outlet.fire_and_forget(windows::add(&self.shared, of, used));
    }
}

impl Filter for SharedUsage {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        match exchange.filter_state.take::<_, RedisQueried>(self) {
            None => self.ask(exchange),
            Some(RedisQueried) => self.finish(exchange),
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if exchange.response.is_gateway {
            return;
        }
        if exchange.filter_state.take::<_, LocalFallback>(self).is_some() {
            self.filter.respond_here(exchange);
        } else if let Some(known) = exchange.filter_state.take::<_, RedisUsage>(self) {
            self.filter.after(exchange, &known, |limit, used, exchange| {
                let windows = limit.windows.iter().map(|span| span.window);
                self.add(&known, &limit.name(exchange), windows, used);
            });
        } else {
            // The call passed uncounted.
            exchange.response.headers.remove(self.filter.header.as_bytes());
        }
    }
}
