//! Events for those who watch: commits, gateways, alerts and publications.
//!
//! There is one log of the latest events for all clients, and each client only remembers how far it has read. So a slow
//! client costs nothing. A client that has missed events, because it was away for too long or reads too slowly, gets a
//! notice so and reads again what it shows.
//!
//! **What it is not**: it is no queue. Events are in memory; the store has the history.

use crate::access::{Action, Caller, Scope};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use weir_store::Changes;

/// Events that are kept.
const MAX_EVENTS: usize = 1_000;
/// Documents of a commit that are named, at most.
pub const MAX_DOCUMENTS: usize = 100;
/// Clients at a time: in all, and with one name.
const MAX_CLIENTS: usize = 256;
const MAX_CLIENTS_OF_ONE: usize = 16;
/// Commits that wait to become events, at most.
const MAX_COMMITS: usize = 1_000;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The kind of event: `commit`, `gateway`, `alert` or `publication`.
    pub kind: &'static str,
    /// Its data.
    pub data: Value,
    /// The receivers: callers with one of these rights. An event with documents goes to callers who may read one of
    /// them.
    pub needs: Vec<(Action, Scope)>,
    /// The documents that it concerns, each with who may read of it.
    pub documents: Vec<(Value, (Action, Scope))>,
}

impl Event {
    /// The part that a caller may see; `None`: nothing.
    pub fn shown_to(&self, caller: &Caller) -> Option<Value> {
        let may = |(action, scope): &(Action, Scope)| caller.can(*action, scope);
        if self.documents.is_empty() {
            return self.needs.iter().any(may).then(|| self.data.clone());
        }
        let documents = self.documents.iter().filter(|(_, needs)| may(needs));
        let documents: Vec<Value> = documents.map(|(document, _)| document.clone()).collect();
        if documents.is_empty() {
            return None;
        }
        let mut data = self.data.clone();
        data["documents"] = documents.into();
        Some(data)
    }
}

/// The events. Cheap to share.
#[derive(Debug, Clone)]
pub struct Events(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Which process this is: numbers of another one mean nothing here.
    epoch: String,
    log: Mutex<Log>,
    newest: watch::Sender<u64>,
    clients: Mutex<HashMap<String, usize>>,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Arc<Event>>,
    /// The number of the newest one. The first is 1.
    newest: u64,
}

/// The sender of commits that become events.
#[derive(Debug, Clone)]
pub struct Commits(mpsc::Sender<Changes>);

impl Commits {
    /// Takes over a commit. If too many wait, it becomes no event: clients ask for the history anyway.
    pub fn send(&self, changes: &Changes) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.0.try_send(changes.clone()) {
            tracing::debug!(revision = %changes.revision, "a commit is not sent to browsers: too many events are waiting");
        }
    }
}

/// A channel from commits to events.
pub fn commits() -> (Commits, mpsc::Receiver<Changes>) {
    let (sender, receiver) = mpsc::channel(MAX_COMMITS);
    (Commits(sender), receiver)
}

/// The events after one that a client has seen.
#[derive(Debug, PartialEq)]
pub struct EventBatch {
    /// The events, the oldest first.
    pub events: Vec<Arc<Event>>,
    /// The number of the last one.
    pub number: u64,
    /// Whether others came in between that are not known any more.
    pub has_missed: bool,
}

impl EventBatch {
    /// The events with their numbers. A client that loses its connection between two of them resumes after the first.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Event)> {
        let before = self.number - self.events.len() as u64;
        (before + 1..).zip(self.events.iter().map(AsRef::as_ref))
    }
}

impl Events {
    /// No events yet. The name distinguishes this process from others.
    pub fn new(epoch: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            epoch: epoch.into(),
            log: Mutex::default(),
            newest: watch::Sender::new(0),
            clients: Mutex::default(),
        }))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // Every change leaves it whole.
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event.
    pub fn send(&self, event: Event) {
        let newest = {
            let mut log = self.log();
            if log.events.len() == MAX_EVENTS {
                log.events.pop_front();
            }
            log.events.push_back(Arc::new(event));
            log.newest += 1;
            log.newest
        };
        self.0.newest.send_replace(newest);
    }

    /// The number of the newest event, now and from then on.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    /// The events after one.
    pub fn after(&self, number: u64) -> EventBatch {
        let log = self.log();
        let first = log.newest - log.events.len() as u64 + 1;
        let known = log.events.iter().skip(number.saturating_sub(first - 1) as usize);
        EventBatch {
            events: known.cloned().collect(),
            number: log.newest,
            has_missed: number > log.newest || number + 1 < first,
        }
    }

    /// The id of an event for clients.
    pub fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.0.epoch)
    }

    /// The number of the event that a client calls so; `None`: it is one of another process.
    pub fn number(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.rsplit_once('-')?;
        (epoch == self.0.epoch).then(|| number.parse().ok()).flatten()
    }

    /// Whether a client receives events.
    pub fn have_clients(&self) -> bool {
        !self.clients().is_empty()
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more client with this name; `None`: there are too many.
    pub fn join(&self, name: &str) -> Option<ClientSlot> {
        let mut clients = self.clients();
        let of_all: usize = clients.values().sum();
        let of_one = clients.get(name).copied().unwrap_or_default();
        if of_all >= MAX_CLIENTS || of_one >= MAX_CLIENTS_OF_ONE {
            return None;
        }
        clients.insert(name.to_owned(), of_one + 1);
        Some(ClientSlot {
            events: self.clone(),
            name: name.to_owned(),
        })
    }
}

/// A client's place, until it is dropped.
#[derive(Debug)]
pub struct ClientSlot {
    events: Events,
    name: String,
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut clients = self.events.clients();
        if let Some(count) = clients.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Right, Role, User};
    use serde_json::json;

    fn event(number: u64) -> Event {
        Event {
            kind: "gateway",
            data: json!(number),
            needs: vec![(Action::GatewaysRead, Scope::Everything)],
            documents: Vec::new(),
        }
    }

    #[test]
    fn clients_resume_or_get_a_notice_that_they_missed_something() {
        let events = Events::new("e");
        assert_eq!(events.after(0).events, []);
        for number in 1..=MAX_EVENTS as u64 + 10 {
            events.send(event(number));
        }
        let newest = MAX_EVENTS as u64 + 10;
        for (after, first, count, has_missed) in [
            (newest, None, 0, false),
            (newest - 2, Some(newest - 1), 2, false),
            (10, Some(11), MAX_EVENTS, false),
            (9, Some(11), MAX_EVENTS, true),
            (0, Some(11), MAX_EVENTS, true),
            (newest + 1, None, 0, true),
            (u64::MAX, None, 0, true),
        ] {
            let next = events.after(after);
            let seen = next.events.first().map(|it| it.data.clone());
            assert_eq!(seen, first.map(|it| json!(it)), "{after}");
            assert_eq!(
                (next.events.len(), next.has_missed, next.number),
                (count, has_missed, newest)
            );
            assert!(next.numbered().all(|(number, event)| event.data == number));
        }
        for (id, expected) in [("e-7", Some(7)), ("f-7", None), ("e-x", None), ("", None)] {
            assert_eq!(events.number(id), expected, "{id}");
        }
        assert_eq!(events.id(7), "e-7");
    }

    #[test]
    fn clients_are_bounded() {
        let events = Events::new("e");
        let mut places: Vec<ClientSlot> = (0..MAX_CLIENTS_OF_ONE)
            .filter_map(|_| events.join("ada"))
            .collect();
        assert!(places.len() == MAX_CLIENTS_OF_ONE && events.join("ada").is_none());
        places.extend((0..MAX_CLIENTS).filter_map(|it| events.join(&it.to_string())));
        assert!(places.len() == MAX_CLIENTS && events.join("bob").is_none());
        places.clear();
        assert!(!events.have_clients() && events.join("ada").is_some());
    }

    #[test]
    fn callers_receive_what_they_may_read() {
        let caller = |role, scope: &str| {
            let scope = Scope::parse(scope).expect("a scope");
            Caller::User(Arc::new(User {
                name: "ada".to_owned(),
                token_hash: None,
                password_hash: None,
                rights: vec![Right { role, scope }],
                created: 0,
            }))
        };
        let of = |key: &str, scope: &str| {
            let scope = Scope::parse(scope).expect("a scope");
            (json!(key), (Action::HistoryRead, scope))
        };
        let commit = Event {
            kind: "commit",
            data: json!({ "revision": 1 }),
            needs: Vec::new(),
            documents: vec![
                of("a", "workspace:team"),
                of("b", "api:orders"),
                of("c", "everything"),
            ],
        };
        for (role, scope, expected) in [
            (Role::Admin, "everything", Some(json!(["a", "b", "c"]))),
            (Role::Read, "workspace:team", Some(json!(["a"]))),
            (Role::ApiOwner, "api:orders", Some(json!(["b"]))),
            (Role::ApiOwner, "api:pets", None),
            (Role::Gateway, "everything", None),
        ] {
            let visible = commit.shown_to(&caller(role, scope));
            assert_eq!(
                visible.map(|it| it["documents"].clone()),
                expected,
                "{role:?} {scope}"
            );
        }
        assert!(event(1).shown_to(&caller(Role::Viewer, "everything")).is_some());
        assert!(event(1).shown_to(&caller(Role::Viewer, "api:orders")).is_none());
        assert!(event(1).shown_to(&Caller::LocalAnonymous).is_some());
    }
}
