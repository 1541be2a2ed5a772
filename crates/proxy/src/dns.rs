//! Names of targets, resolved with the TTL of their records (A and AAAA), for one worker.
//!
//! A name that was resolved once is answered from memory. When its time is up, the old answer serves on while
//! a new one is fetched; when that fails, it serves on still: an outage of the name service is not one of the
//! upstream.

use hickory_resolver::TokioResolver;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Shortest time that an answer is kept, whatever its TTL.
const MIN_TTL: Duration = Duration::from_secs(1);
/// How long a failure is remembered.
const FAILURE_TTL: Duration = Duration::from_secs(1);

/// A name that has no address now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name cannot be resolved")]
pub struct Unresolved;

#[derive(Clone)]
struct Answer {
    addresses: Rc<[IpAddr]>,
    good_until: Instant,
    turn: Rc<Cell<usize>>,
    refreshing: Rc<Cell<bool>>,
}

/// A worker's resolver.
#[derive(Default)]
pub struct Resolver {
    system: OnceCell<Option<TokioResolver>>,
    answers: RefCell<HashMap<Box<str>, Answer>>,
}

impl Resolver {
    /// An address of `name`, each in turn.
    pub async fn resolve(self: &Rc<Self>, name: &str, now: Instant) -> Result<IpAddr, Unresolved> {
        let known = self.answers.borrow().get(name).cloned();
        let answer = match known {
            Some(answer) if now < answer.good_until => answer,
            Some(answer) if !answer.addresses.is_empty() => {
                self.refresh(name, &answer);
                answer
            }
            _ => self.look_up(name).await,
        };
        if answer.addresses.is_empty() {
            return Err(Unresolved);
        }
        let turn = answer.turn.get();
        answer.turn.set(turn.wrapping_add(1));
        Ok(answer.addresses[turn % answer.addresses.len()])
    }

    fn refresh(self: &Rc<Self>, name: &str, answer: &Answer) {
        if answer.refreshing.replace(true) {
            return;
        }
        let (resolver, name) = (Rc::clone(self), name.to_owned());
        tokio::task::spawn_local(async move {
            resolver.look_up(&name).await;
        });
    }

    async fn look_up(&self, name: &str) -> Answer {
        let found = self.query(name).await;
        let mut answers = self.answers.borrow_mut();
        let old = answers.get(name);
        let turn = old.map_or_else(Rc::default, |old| Rc::clone(&old.turn));
        let (addresses, ttl) = match (found, old) {
            (Some(found), _) => found,
            (None, Some(old)) => (Rc::clone(&old.addresses), FAILURE_TTL),
            (None, None) => (Rc::from([]), FAILURE_TTL),
        };
        let good_until = Instant::now() + ttl;
        let answer = Answer {
            addresses,
            good_until,
            turn,
            refreshing: Rc::default(),
        };
        answers.insert(name.into(), answer.clone());
        answer
    }

    async fn query(&self, name: &str) -> Option<(Rc<[IpAddr]>, Duration)> {
        let resolver = self.system.get_or_init(system_resolver).as_ref()?;
        let lookup = resolver.lookup_ip(name).await.ok()?;
        let ttl = lookup
            .valid_until()
            .saturating_duration_since(Instant::now())
            .max(MIN_TTL);
        let mut addresses: Vec<IpAddr> = lookup.iter().collect();
        // IPv4 first, as a target without a route to IPv6 would lose every other call.
        addresses.sort_by_key(IpAddr::is_ipv6);
        if addresses.iter().any(IpAddr::is_ipv4) {
            addresses.retain(IpAddr::is_ipv4);
        }
        (!addresses.is_empty()).then(|| (addresses.into(), ttl))
    }
}

fn system_resolver() -> Option<TokioResolver> {
    let mut builder = TokioResolver::builder_tokio()
        .inspect_err(|error| tracing::warn!(%error, "the system's name service configuration cannot be read"))
        .ok()?;
    builder.options_mut().timeout = Duration::from_secs(2);
    builder.options_mut().attempts = 1;
    builder.build().ok()
}
