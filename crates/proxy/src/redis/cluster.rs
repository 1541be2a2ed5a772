//! A cluster: which of its servers has which keys.

use super::RedisContext;
use super::node::Node;
use super::resp::{self, Value};
use super::slot::{SLOTS, slot_of};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use weir_plugin::{RedisAddress, RedisServer};

/// Most servers of a cluster.
const MAX_NODES: usize = 1_000;
/// The shortest time between two looks at who has which slots.
const LOOK_PAUSE: Duration = Duration::from_millis(250);
/// A slot of which it is not known who has it.
const UNASSIGNED: u16 = u16::MAX;

/// A cluster.
pub struct Cluster {
    around: Rc<RedisContext>,
    server: Arc<RedisServer>,
    /// Those that are configured come first, and stay.
    nodes: RefCell<Vec<Rc<Node>>>,
    seeds: usize,
    /// By slot, the place of its server in the list.
    slots: RefCell<Vec<u16>>,
    looking: Cell<bool>,
    looked: Cell<Option<Instant>>,
    done: Notify,
}

/// A look for the slots under way, which is over when this is dropped: after a panic, too.
struct LookupGuard(Rc<Cluster>);

impl Drop for LookupGuard {
    fn drop(&mut self) {
        self.0.looked.set(Some(Instant::now()));
        self.0.looking.set(false);
        self.0.done.notify_waiters();
    }
}

/// A server's redirection of a call.
pub enum Redirect {
    /// There, from now on.
    Moved(Rc<Node>),
    /// There, this time.
    Ask(Rc<Node>),
}

impl Cluster {
    /// A cluster of which these servers are known.
    pub fn new(around: &Rc<RedisContext>, server: &Arc<RedisServer>, seeds: &[RedisAddress]) -> Rc<Self> {
        let start = |address: &RedisAddress| Node::start(around, server, Some(address.clone()));
        Rc::new(Self {
            around: Rc::clone(around),
            server: Arc::clone(server),
            nodes: RefCell::new(seeds.iter().map(start).collect()),
            seeds: seeds.len(),
            slots: RefCell::new(vec![UNASSIGNED; SLOTS]),
            looking: Cell::new(false),
            looked: Cell::new(None),
            done: Notify::new(),
        })
    }

    /// Ends all connections.
    pub fn close(&self) {
        self.nodes.borrow().iter().for_each(|node| node.close());
    }

    /// The server that has a key.
    pub async fn node_of(self: &Rc<Self>, key: &[u8]) -> Option<Rc<Node>> {
        let slot = slot_of(key);
        if let Some(node) = self.known(slot) {
            return Some(node);
        }
        self.refresh_slots();
        let refreshed = async {
            while self.looking.get() {
                self.done.notified().await;
            }
        };
        let timeout = self.server.connect_timeout + self.server.timeout;
        let _is_told = tokio::time::timeout(timeout, refreshed).await;
        self.known(slot)
    }

    fn known(&self, slot: usize) -> Option<Rc<Node>> {
        let place = *self.slots.borrow().get(slot)?;
        self.nodes.borrow().get(usize::from(place)).cloned()
    }

    /// The server at this address; one that was not known yet is one from now on.
    fn node_at(&self, address: &RedisAddress) -> Option<(u16, Rc<Node>)> {
        let mut nodes = self.nodes.borrow_mut();
        let known = nodes
            .iter()
            .position(|node| node.address.as_ref() == Some(address));
        let place = match known {
            Some(place) => place,
            None if nodes.len() >= MAX_NODES => return None,
            None => {
                nodes.push(Node::start(&self.around, &self.server, Some(address.clone())));
                nodes.len() - 1
            }
        };
        Some((place as u16, Rc::clone(&nodes[place])))
    }

    /// The redirection in a server's error, if it is one.
    pub fn sent_on(self: &Rc<Self>, words: &str, from: &Node) -> Option<Redirect> {
        let mut words = words.split(' ');
        let (code, slot, address) = (words.next()?, words.next()?, words.next()?);
        if !matches!(code, "MOVED" | "ASK") {
            return None;
        }
        let (host, port) = address.rsplit_once(':')?;
        let address = self.address(host, port.parse().ok()?, from)?;
        let (place, node) = self.node_at(&address)?;
        if code == "ASK" {
            return Some(Redirect::Ask(node));
        }
        let slot: usize = slot.parse().ok()?;
        *self.slots.borrow_mut().get_mut(slot)? = place;
        self.refresh_slots();
        Some(Redirect::Moved(node))
    }

    /// A server may leave its own host out.
    fn address(&self, host: &str, port: u16, from: &Node) -> Option<RedisAddress> {
        let host = match host {
            "" | "?" => from.address.as_ref()?.host.clone(),
            host => host.to_owned(),
        };
        Some(RedisAddress { host, port })
    }

    /// Looks up in the background who has which slots, unless that was done just now.
    pub fn refresh_slots(self: &Rc<Self>) {
        let is_fresh = self.looked.get().is_some_and(|at| at.elapsed() < LOOK_PAUSE);
        if is_fresh || self.looking.replace(true) {
            return;
        }
        let looking = LookupGuard(Rc::clone(self));
        tokio::task::spawn_local(async move { looking.0.look().await });
    }

    /// Asks one server after the other until one answers.
    async fn look(&self) {
        let nodes = self.nodes.borrow().clone();
        for node in nodes {
            let asked = node.send(|out| out.extend_from_slice(&resp::command(&[b"CLUSTER", b"SLOTS"])));
            let Some(answer) = asked else { continue };
            if let Ok(value) = answer.await
                && self.take_in(&value, &node)
            {
                return;
            }
        }
    }

    /// Takes in a list of ranges of slots, each with its first, its last, and its servers, the master first. Returns
    /// whether there was anything in it.
    fn take_in(&self, value: &Value, from: &Node) -> bool {
        let mut slots = vec![UNASSIGNED; SLOTS];
        let mut is_good = false;
        for range in value.list() {
            let [first, last, master, ..] = range.list() else {
                continue;
            };
            let [host, port, ..] = master.list() else {
                continue;
            };
            let host = host.text().and_then(|host| std::str::from_utf8(host).ok());
            let port = port.integer().and_then(|port| u16::try_from(port).ok());
            let bounds = [first, last].map(|it| it.integer().and_then(|it| usize::try_from(it).ok()));
            let (Some(port), [Some(first), Some(last)]) = (port, bounds) else {
                continue;
            };
            let Some(address) = self.address(host.unwrap_or_default(), port, from) else {
                continue;
            };
            if let Some((place, _)) = self.node_at(&address)
                && let Some(range) = slots.get_mut(first..=last.min(SLOTS - 1))
            {
                range.fill(place);
                is_good = true;
            }
        }
        if is_good {
            self.forget_others(&mut slots, Instant::now());
            *self.slots.borrow_mut() = slots;
        }
        is_good
    }

    /// Lets go of servers that have no slot any more and were not asked for long: those of a cluster may come
    /// and go, each at an address of its own.
    fn forget_others(&self, slots: &mut [u16], now: Instant) {
        let mut nodes = self.nodes.borrow_mut();
        let mut keeps: Vec<bool> = nodes.iter().map(|node| !node.is_unused(now)).collect();
        keeps.iter_mut().take(self.seeds).for_each(|keeps| *keeps = true);
        for place in slots.iter() {
            if let Some(keeps) = keeps.get_mut(usize::from(*place)) {
                *keeps = true;
            }
        }
        renumber(&keeps, slots);
        let mut keeps = keeps.into_iter();
        nodes.retain(|node| {
            let stays = keeps.next().unwrap_or(true);
            if !stays {
                node.close();
            }
            stays
        });
    }
}

/// Renumbers places in a list by their positions in the kept part of it.
fn renumber(keeps: &[bool], places: &mut [u16]) {
    let mut kept = 0;
    let numbers: Vec<u16> = keeps
        .iter()
        .map(|keeps| {
            let number = if *keeps { kept } else { UNASSIGNED };
            kept += u16::from(*keeps);
            number
        })
        .collect();
    for place in places {
        *place = numbers.get(usize::from(*place)).copied().unwrap_or(UNASSIGNED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_what_is_kept() {
        for (keeps, places, expected) in [
            (&[true, true][..], vec![0, 1, UNASSIGNED], vec![0, 1, UNASSIGNED]),
            (
                &[true, false, true, false, true],
                vec![4, 2, 0, 2],
                vec![2, 1, 0, 1],
            ),
            (&[false, true], vec![0, 1, 7], vec![UNASSIGNED, 0, UNASSIGNED]),
            (&[], vec![UNASSIGNED, 0], vec![UNASSIGNED, UNASSIGNED]),
        ] {
            let mut numbered = places.clone();
            renumber(keeps, &mut numbered);
            assert_eq!(numbered, expected, "{keeps:?} {places:?}");
        }
    }
}
