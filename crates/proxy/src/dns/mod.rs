//! Names of targets, resolved with the TTL of their records (SRV, A and AAAA), for one worker.
//!
//! A name that was resolved once is answered from memory. Names that are in use are looked up again shortly before
//! their time is up, so that a change is taken over when it is due. When that fails, the old answer serves on: an
//! outage of the name service is not one of the upstream. However many calls wait for a name, it is looked up once.

mod resolved_name;
mod system;

pub use system::NameServers;

use resolved_name::ResolvedName;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};
use system::System;
use tokio::sync::Notify;

/// Shortest time that an answer is kept, whatever its TTL.
const MIN_TTL: Duration = Duration::from_secs(1);
/// How long a failure is remembered.
const FAILURE_TTL: Duration = Duration::from_secs(1);
/// How long before its end an answer is renewed: a little more than names are looked after.
const AHEAD: Duration = Duration::from_millis(1_500);
/// How long an unused name is remembered.
const UNUSED: Duration = Duration::from_secs(300);

/// A name that has no address now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name cannot be resolved")]
pub struct ResolveError;

/// A look-up of a name.
#[derive(Debug, Clone, Copy)]
pub struct DnsQuery<'w> {
    /// The name.
    pub name: &'w str,
    /// The port to use if the name's records have none.
    pub port: u16,
    /// SRV records are looked for first.
    pub srv: bool,
    /// An answer whose time is up will not do: the one before has just failed.
    pub is_again: bool,
    /// The address that was tried last, which is not to be tried again if there is another.
    pub tried: Option<SocketAddr>,
}

/// The records that a name had when it was last resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Records {
    #[default]
    Unknown,
    Services,
    Addresses,
}

/// A name that was asked for.
#[derive(Default)]
struct Name {
    answer: RefCell<Option<ResolvedName>>,
    records: Cell<Records>,
    /// A look-up is under way; those who wait for it are woken when it is over.
    looking: Cell<bool>,
    done: Notify,
    used: Cell<Option<Instant>>,
    /// Whether anybody has asked since the last look-up began.
    is_wanted: Cell<bool>,
}

/// A look-up under way, which is over when this is dropped: after a panic, too.
struct LookupGuard(Rc<Name>);

impl Drop for LookupGuard {
    fn drop(&mut self) {
        self.0.looking.set(false);
        self.0.done.notify_waiters();
    }
}

/// A worker's resolver.
pub struct Resolver {
    system: System,
    /// Names that are looked up as addresses, and those that are looked up as services first.
    names: [RefCell<HashMap<Box<str>, Rc<Name>>>; 2],
    seed: u64,
}

impl Resolver {
    /// A resolver that asks these servers.
    pub fn new(servers: NameServers, seed: u64) -> Rc<Self> {
        Rc::new(Self {
            system: System::new(servers),
            names: Default::default(),
            seed,
        })
    }

    /// An address of `name`, each in turn.
    pub async fn resolve(self: &Rc<Self>, name: &str, now: Instant) -> Result<IpAddr, ResolveError> {
        let wanted = DnsQuery {
            name,
            port: 0,
            srv: false,
            is_again: false,
            tried: None,
        };
        let address = self.address(wanted, now, |_| true).await?;
        Ok(address.ip())
    }

    /// An address of a name, each in turn by its weight. `allows` denies those that are unhealthy; they are used only
    /// when there is no other.
    pub async fn address(
        self: &Rc<Self>,
        wanted: DnsQuery<'_>,
        now: Instant,
        allows: impl Fn(SocketAddr) -> bool,
    ) -> Result<SocketAddr, ResolveError> {
        let name = self.name(wanted.name, wanted.srv);
        name.used.set(Some(now));
        name.is_wanted.set(true);
        let state = name.answer.borrow().as_ref().map(|answer| answer.state(now));
        match state {
            Some(known) if known.is_current => {}
            // An old one will do, unless it has just not done.
            Some(known) if known.has_addresses && !wanted.is_again => {
                self.look_up(&name, wanted.name, wanted.srv);
            }
            _ => {
                self.look_up(&name, wanted.name, wanted.srv);
                while name.looking.get() {
                    name.done.notified().await;
                }
            }
        }
        let mut answer = name.answer.borrow_mut();
        let answer = answer.as_mut().ok_or(ResolveError)?;
        answer.pick(wanted.port, wanted.tried, allows).ok_or(ResolveError)
    }

    /// All addresses of a name, for those who look after each of them.
    pub async fn all(
        self: &Rc<Self>,
        name: &str,
        port: u16,
        srv: bool,
        now: Instant,
    ) -> Result<Vec<SocketAddr>, ResolveError> {
        let wanted = DnsQuery {
            name,
            port,
            srv,
            is_again: true,
            tried: None,
        };
        self.address(wanted, now, |_| true).await?;
        let known = self.name(name, srv);
        let answer = known.answer.borrow();
        match &*answer {
            Some(answer) if !answer.has_failed() => Ok(answer.addresses(port).collect()),
            _ => Err(ResolveError),
        }
    }

    /// Renews what is used and will soon be over, and forgets what is not used any more. To be called each second.
    pub fn refresh(self: &Rc<Self>, now: Instant) {
        for (srv, names) in [false, true].into_iter().zip(&self.names) {
            names.borrow_mut().retain(|text, name| {
                let is_used = name
                    .used
                    .get()
                    .is_some_and(|used| now.saturating_duration_since(used) < UNUSED);
                let is_ending = name
                    .answer
                    .borrow()
                    .as_ref()
                    .is_some_and(|answer| answer.ends_by(now + AHEAD));
                if is_used && name.is_wanted.get() && is_ending {
                    self.look_up(name, text, srv);
                }
                is_used || name.looking.get()
            });
        }
    }

    fn name(&self, name: &str, srv: bool) -> Rc<Name> {
        let mut names = self.names[usize::from(srv)].borrow_mut();
        if let Some(known) = names.get(name) {
            return Rc::clone(known);
        }
        let fresh = Rc::<Name>::default();
        names.insert(name.into(), Rc::clone(&fresh));
        fresh
    }

    /// Begins to look a name up, unless that is under way. It goes on whatever becomes of the call that wants it.
    fn look_up(self: &Rc<Self>, name: &Rc<Name>, text: &str, srv: bool) {
        if name.looking.replace(true) {
            return;
        }
        name.is_wanted.set(false);
        let (resolver, name, text) = (Rc::clone(self), Rc::clone(name), text.to_owned());
        let looking = LookupGuard(name);
        tokio::task::spawn_local(async move {
            let name = &*looking.0;
            let found = resolver.query(name, &text, srv).await;
            let good_until = |ttl: Duration| Instant::now() + ttl;
            let mut answer = name.answer.borrow_mut();
            match (found, &mut *answer) {
                (Some(found), Some(old)) if old.is_of(&found.endpoints) => {
                    old.renew(good_until(found.ttl));
                }
                (Some(found), _) => {
                    *answer = Some(ResolvedName::new(
                        found.endpoints,
                        good_until(found.ttl),
                        resolver.seed,
                    ));
                }
                (None, Some(old)) => old.note_failure(good_until(FAILURE_TTL)),
                (None, None) => {
                    let mut none = ResolvedName::new(Vec::new(), good_until(FAILURE_TTL), 0);
                    none.note_failure(good_until(FAILURE_TTL));
                    *answer = Some(none);
                }
            }
        });
    }

    /// By the kind of record that there was the last time, and then by the other; both at once, when nothing is known
    /// yet.
    async fn query(&self, name: &Name, text: &str, srv: bool) -> Option<ResolvedAddress> {
        let (system, last) = (&self.system, name.records.get());
        if !srv || system.is_local(text) {
            return system.addresses(text).await;
        }
        let (services, addresses) = match last {
            Records::Unknown => tokio::join!(system.services(text), system.addresses(text)),
            Records::Services => match system.services(text).await {
                None => (None, system.addresses(text).await),
                services => (services, None),
            },
            Records::Addresses => match system.addresses(text).await {
                None => (system.services(text).await, None),
                addresses => (None, addresses),
            },
        };
        name.records.set(match (&services, &addresses) {
            (Some(_), _) => Records::Services,
            (None, Some(_)) => Records::Addresses,
            (None, None) => last,
        });
        services.or(addresses)
    }
}

/// A result of a look-up.
struct ResolvedAddress {
    endpoints: Vec<Endpoint>,
    ttl: Duration,
}

/// One of the places that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoint {
    ip: IpAddr,
    /// `None`: the name's records have none.
    port: Option<u16>,
    weight: u32,
    /// The higher is preferred.
    priority: i32,
}

#[cfg(test)]
mod tests;
