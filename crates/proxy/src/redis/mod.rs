//! Redis servers that hold counts for filters: a worker's connections to them, and counts that are synchronised with
//! them in the background.
//!
//! Each worker has one connection to each server, which all of its calls share. Everything that a server can do wrong
//! is bounded: what it sends, how long it is waited for, how much waits for it, and how often it is tried again.

mod client;
mod cluster;
mod connect;
pub mod fuzzing;
mod node;
mod resp;
mod slot;

use crate::buffer::Buffers;
use crate::dns::Resolver;
use crate::shared::Shared;
use client::Client;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use weir_plugin::{RedisAccumulator, RedisCall, RedisPublisher, RedisResponse, RedisServer, system_clock};

/// How long a server that no filter uses is remembered.
const UNUSED: Duration = Duration::from_secs(300);
/// Calls of a settlement that are under way at once.
const SETTLED_AT_ONCE: usize = 512;
/// How long the last settlements may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The common part of connections.
struct RedisContext {
    shared: Arc<Shared>,
    resolver: Rc<Resolver>,
    buffers: Buffers,
}

/// A worker's Redis servers.
pub struct Redis {
    around: Rc<RedisContext>,
    clients: RefCell<Vec<(Arc<RedisServer>, Rc<Client>)>>,
    settling: Rc<PendingSyncs>,
}

/// Settlements that go on.
#[derive(Default)]
struct PendingSyncs {
    count: Cell<usize>,
    is_last: Cell<bool>,
    last: Notify,
}

impl Redis {
    /// No server yet.
    pub fn new(shared: &Arc<Shared>, resolver: &Rc<Resolver>) -> Self {
        Self {
            around: Rc::new(RedisContext {
                shared: Arc::clone(shared),
                resolver: Rc::clone(resolver),
                buffers: Buffers::default(),
            }),
            clients: RefCell::default(),
            settling: Rc::default(),
        }
    }

    fn client(&self, server: &Arc<RedisServer>) -> Rc<Client> {
        let mut clients = self.clients.borrow_mut();
        let known = clients.iter().position(|(known, _)| Arc::ptr_eq(known, server));
        // A configuration that is read again brings equal ones.
        let known = known.or_else(|| clients.iter().position(|(known, _)| known == server));
        let place = known.unwrap_or_else(|| {
            clients.push((Arc::clone(server), Client::start(&self.around, server)));
            clients.len() - 1
        });
        let (known, client) = &mut clients[place];
        if !Arc::ptr_eq(known, server) {
            *known = Arc::clone(server);
        }
        client.used.set(Instant::now());
        Rc::clone(client)
    }

    /// Runs a script. `None`: there is no answer.
    pub async fn run_script(&self, call: RedisCall) -> Option<RedisResponse> {
        let client = self.client(&call.server);
        let (numbers, texts) = client.run(call).await?;
        let outlet: Rc<dyn RedisPublisher> = client;
        Some(RedisResponse {
            numbers,
            texts,
            outlet,
        })
    }

    /// Settles counts after a while, and again as long as there are some.
    pub fn flush(&self, ledger: Arc<dyn RedisAccumulator>) {
        let (client, settling) = (self.client(ledger.server()), Rc::clone(&self.settling));
        settling.count.set(settling.count.get() + 1);
        tokio::task::spawn_local(async move {
            loop {
                if !settling.is_last.get() {
                    let last = settling.last.notified();
                    let _is_last = tokio::time::timeout(ledger.delay(), last).await;
                }
                let due = ledger.due(system_clock());
                client.used.set(Instant::now());
                for some in due.chunks(SETTLED_AT_ONCE) {
                    flush(&client, &*ledger, some).await;
                }
                if !ledger.finish() || settling.is_last.get() {
                    break;
                }
            }
            settling.count.set(settling.count.get() - 1);
        });
    }

    /// Forgets unused servers. To be called now and then.
    pub fn prune(&self, now: Instant) {
        self.clients.borrow_mut().retain(|(_, client)| {
            // One is held here, and one by the task that sends posts.
            let is_held = Rc::strong_count(client) > 2;
            let is_used = is_held || now.saturating_duration_since(client.used.get()) < UNUSED;
            if !is_used {
                client.close();
            }
            is_used
        });
    }

    /// Settles what is left, has places given back whose calls have just ended, and ends all connections.
    pub async fn finish(&self) {
        self.settling.is_last.set(true);
        self.settling.last.notify_waiters();
        let until = Instant::now() + CLOSE_TIMEOUT;
        let has_posts = || self.clients.borrow().iter().any(|(_, client)| client.has_posts());
        while (self.settling.count.get() > 0 || has_posts()) && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for (_, client) in self.clients.borrow_mut().drain(..) {
            client.close();
        }
    }
}

async fn flush(client: &Rc<Client>, ledger: &dyn RedisAccumulator, some: &[(u64, RedisCall)]) {
    let mut under_way = Vec::with_capacity(some.len());
    for (number, call) in some {
        under_way.push((*number, call, client.send(call).await));
    }
    for (number, call, sent) in under_way {
        let answer = match sent {
            Some(sent) => client.answer(sent, call).await,
            None => None,
        };
        let numbers = answer.as_ref().map(|(numbers, _)| numbers.as_slice());
        ledger.complete(number, numbers, system_clock());
    }
}
