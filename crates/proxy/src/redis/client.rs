//! A Redis as one worker uses it, whatever it is made of: which server is asked, and how a script gets there.

use super::RedisContext;
use super::cluster::{Cluster, Redirect};
use super::node::Node;
use super::resp::{self, Value};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use weir_plugin::{RedisCall, RedisPublisher, RedisServer, RedisTopology};
use weir_telemetry::redis::RedisServerStats;

/// Most waiting calls whose answers are dropped.
const MAX_POSTS: usize = 4 * 1024;
/// Most bytes of those.
const MAX_POSTED_BYTES: usize = 32 << 20;
/// How long those wait that could not be sent.
const POST_PAUSE: Duration = Duration::from_millis(100);
/// For how long one is tried to be sent.
const POST_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a cluster may send a call on.
const MAX_REDIRECTS: usize = 5;

/// A Redis.
pub struct Client {
    way: Topology,
    posts: RefCell<VecDeque<FireAndForget>>,
    posted: Notify,
    /// Bytes of the posts that are not done with.
    posted_bytes: Cell<usize>,
    /// Posts that have been taken from the list and are not done with.
    posting: Cell<bool>,
    closed: Cell<bool>,
    /// When it was last asked for.
    pub used: Cell<Instant>,
}

enum Topology {
    Single(Rc<Node>),
    Cluster(Rc<Cluster>),
}

struct FireAndForget {
    call: RedisCall,
    since: Instant,
}

/// The numbers and the texts that a script has answered.
pub type Values = (Vec<i64>, Vec<Vec<u8>>);

/// A call that has been sent.
pub struct InFlight {
    node: Rc<Node>,
    answer: oneshot::Receiver<Value>,
}

impl Client {
    /// A Redis to which there is no connection yet.
    pub fn start(around: &Rc<RedisContext>, server: &Arc<RedisServer>) -> Rc<Self> {
        let way = match &server.place {
            RedisTopology::Single(address) => {
                Topology::Single(Node::start(around, server, Some(address.clone())))
            }
            RedisTopology::Sentinel { .. } => Topology::Single(Node::start(around, server, None)),
            RedisTopology::Cluster(seeds) => Topology::Cluster(Cluster::new(around, server, seeds)),
        };
        let client = Rc::new(Self {
            way,
            posts: RefCell::default(),
            posted: Notify::new(),
            posted_bytes: Cell::new(0),
            posting: Cell::new(false),
            closed: Cell::new(false),
            used: Cell::new(Instant::now()),
        });
        tokio::task::spawn_local(send_posts(Rc::clone(&client)));
        client
    }

    /// Ends all connections.
    pub fn close(&self) {
        self.closed.set(true);
        self.posted.notify_one();
        match &self.way {
            Topology::Single(node) => node.close(),
            Topology::Cluster(cluster) => cluster.close(),
        }
    }

    /// Runs a script; its numbers and texts, if it gave some.
    pub async fn run(self: &Rc<Self>, call: RedisCall) -> Option<Values> {
        let mut pending = CompensationGuard {
            client: self,
            compensate: call.compensate.clone(),
        };
        let sent = self.send(&call).await;
        let answer = match sent {
            Some(sent) => self.answer(sent, &call).await,
            // Nothing was done, so there is nothing to be taken back.
            None => {
                pending.compensate = None;
                None
            }
        };
        if answer.is_some() {
            pending.compensate = None;
        }
        answer
    }

    /// Sends the call of a script; the answer is for [`Client::answer`].
    pub async fn send(&self, call: &RedisCall) -> Option<InFlight> {
        let key = call.parts().next().unwrap_or_default();
        let node = match &self.way {
            Topology::Single(node) => Rc::clone(node),
            Topology::Cluster(cluster) => cluster.node_of(key).await?,
        };
        let sent = send(&node, call, false, false);
        if let (None, Topology::Cluster(cluster)) = (&sent, &self.way) {
            cluster.refresh_slots();
        }
        sent
    }

    /// Awaits the answer of a call, which is sent again if the script was not known, or is run elsewhere.
    pub async fn answer(&self, sent: InFlight, call: &RedisCall) -> Option<Values> {
        let mut sent = sent;
        let mut in_full = false;
        for _ in 0..=MAX_REDIRECTS {
            let Ok(value) = sent.answer.await else {
                RedisServerStats::add(&sent.node.stats.failed);
                if let Topology::Cluster(cluster) = &self.way {
                    cluster.refresh_slots();
                }
                return None;
            };
            let Value::Error(words) = &value else {
                let values = match call.gives_texts {
                    true => value.numbers_and_texts(),
                    false => value.integers().map(|numbers| (numbers, Vec::new())),
                };
                let stats = &sent.node.stats;
                RedisServerStats::add(if values.is_some() {
                    &stats.answered
                } else {
                    &stats.failed
                });
                return values;
            };
            let sent_on = match &self.way {
                Topology::Cluster(cluster) => cluster.sent_on(words, &sent.node),
                Topology::Single(_) => None,
            };
            let (node, asking) = match sent_on {
                Some(Redirect::Moved(node)) => (node, false),
                Some(Redirect::Ask(node)) => (node, true),
                None if words.starts_with("NOSCRIPT") && !in_full => {
                    in_full = true;
                    (Rc::clone(&sent.node), false)
                }
                None => {
                    tracing::debug!(
                        server = sent.node.stats.name(),
                        error = words,
                        "a Redis script has failed"
                    );
                    RedisServerStats::add(&sent.node.stats.failed);
                    return None;
                }
            };
            sent = send(&node, call, in_full, asking)?;
        }
        None
    }
}

/// Sends a call to one server, with the script's text or only its name.
fn send(node: &Rc<Node>, call: &RedisCall, in_full: bool, asking: bool) -> Option<InFlight> {
    if asking {
        // Its answer says nothing that the next one would not.
        node.send(|out| out.extend_from_slice(&resp::command(&[b"ASKING"])))?;
    }
    let answer = node.send(|out| {
        let parts = call.parts();
        resp::begin(out, parts.len() + 3);
        match in_full {
            true => {
                resp::part(out, b"EVAL");
                resp::part(out, call.script.text.as_bytes());
            }
            false => {
                resp::part(out, b"EVALSHA");
                resp::part(out, call.script.sha1.as_bytes());
            }
        }
        resp::part(out, itoa::Buffer::new().format(call.key_count()).as_bytes());
        parts.for_each(|part| resp::part(out, part));
    });
    let Some(answer) = answer else {
        RedisServerStats::add(&node.stats.skipped);
        return None;
    };
    Some(InFlight {
        node: Rc::clone(node),
        answer,
    })
}

/// Takes back what a call did whose answer is unknown or no longer wanted.
struct CompensationGuard<'c> {
    client: &'c Rc<Client>,
    compensate: Option<Box<RedisCall>>,
}

impl Drop for CompensationGuard<'_> {
    fn drop(&mut self) {
        if let Some(compensate) = self.compensate.take() {
            self.client.fire_and_forget(*compensate);
        }
    }
}

impl Client {
    /// Whether something was posted whose answer has not come.
    pub fn has_posts(&self) -> bool {
        self.posting.get() || !self.posts.borrow().is_empty()
    }

    /// A post is done with.
    fn forget(&self, post: &FireAndForget) {
        let left = self.posted_bytes.get().saturating_sub(post.call.size());
        self.posted_bytes.set(left);
    }

    /// Puts posts back that could not be sent, before those that have come since.
    fn keep(&self, mut left: VecDeque<FireAndForget>) {
        let mut posts = self.posts.borrow_mut();
        left.append(&mut posts);
        for dropped in left.drain(MAX_POSTS.min(left.len())..) {
            self.forget(&dropped);
        }
        *posts = left;
    }
}

impl RedisPublisher for Client {
    fn fire_and_forget(&self, call: RedisCall) {
        let mut posts = self.posts.borrow_mut();
        let bytes = self.posted_bytes.get() + call.size();
        if posts.len() < MAX_POSTS && bytes <= MAX_POSTED_BYTES && !self.closed.get() {
            self.posted_bytes.set(bytes);
            let since = Instant::now();
            posts.push_back(FireAndForget { call, since });
            self.posted.notify_one();
        }
    }
}

/// Sends what was posted.
async fn send_posts(client: Rc<Client>) {
    while !client.closed.get() {
        client.posted.notified().await;
        loop {
            let posts = std::mem::take(&mut *client.posts.borrow_mut());
            client.posting.set(!posts.is_empty());
            if posts.is_empty() {
                break;
            }
            let mut under_way = Vec::with_capacity(posts.len());
            for post in posts {
                let sent = client.send(&post.call).await;
                under_way.push((post, sent));
            }
            let mut left = VecDeque::new();
            for (post, sent) in under_way {
                let was_sent = sent.is_some();
                let is_done = match sent {
                    Some(sent) => client.answer(sent, &post.call).await.is_some(),
                    None => false,
                };
                let may_again = !was_sent || post.call.is_repeatable;
                if !is_done && may_again && post.since.elapsed() < POST_TIMEOUT {
                    left.push_back(post);
                } else {
                    client.forget(&post);
                }
            }
            if client.closed.get() {
                return;
            }
            if !left.is_empty() {
                client.used.set(Instant::now());
                client.keep(left);
                tokio::time::sleep(POST_PAUSE).await;
            }
        }
    }
}
