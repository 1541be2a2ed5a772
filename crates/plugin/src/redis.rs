//! Redis: the place of counts that several gateways share, and the work that filters give the engine for it.
//!
//! A filter hands the engine the call of a script ([`RedisCall`]). The engine runs it over a connection of the worker,
//! keeps the result in [`Exchange::redis`](crate::Exchange::redis), and calls the filter again. Scripts answer with a
//! list of whole numbers and texts, so that nothing else from a server has to be parsed.

use crate::refusal::Refusal;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How a Redis is reached. `Debug` shows no password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RedisServer {
    /// Where it is.
    pub place: RedisTopology,
    /// The user name; `None`: the default user.
    pub username: Option<String>,
    /// The password; `None` if the server needs none.
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
    /// How it is met over TLS; `None`: without.
    pub tls: Option<RedisTls>,
    /// The longest that a connection may take to be ready for use.
    pub connect_timeout: Duration,
    /// The longest that an answer may take.
    pub timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisServer({})", self.name())
    }
}

impl RedisServer {
    /// Names the server in logs and metrics: its address, or the name of what it belongs to.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.place {
            RedisTopology::Single(place) => place.to_string(),
            RedisTopology::Sentinel { master, .. } => format!("sentinel/{master}"),
            RedisTopology::Cluster(nodes) => {
                let first = nodes.first().map(RedisAddress::to_string);
                format!("cluster/{}", first.unwrap_or_default())
            }
        }
    }
}

/// Where a Redis is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum RedisTopology {
    /// One server.
    Single(RedisAddress),
    /// The master of this name, at the address that these sentinels report.
    Sentinel {
        /// The sentinels, at least one.
        sentinels: Vec<RedisAddress>,
        /// The master's name.
        master: String,
        /// The user name for the sentinels.
        username: Option<String>,
        /// Their password.
        password: Option<String>,
    },
    /// A cluster, of which these nodes are known, at least one.
    Cluster(Vec<RedisAddress>),
}

/// The address of a server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RedisAddress {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// How a Redis is met over TLS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RedisTls {
    /// Whether its certificate must be good.
    pub verify: bool,
    /// The server name for the TLS handshake, which its certificate must have; `None`: that of its address.
    pub server_name: Option<String>,
}

/// A script in Lua that Redis runs as one step.
#[derive(Debug)]
pub struct RedisScript {
    /// The text.
    pub text: &'static str,
    /// The SHA-1 of the text in hexadecimal digits, by which Redis knows scripts.
    pub sha1: String,
}

/// The call of a script.
#[derive(Clone)]
pub struct RedisCall {
    /// Where it is run.
    pub server: Arc<RedisServer>,
    /// The script.
    pub script: &'static RedisScript,
    /// What is run if no call waits for the answer any more, or none comes: it reverts what the call did.
    pub compensate: Option<Box<RedisCall>>,
    /// Running it twice does what running it once does, so that it can be sent again when no answer has come.
    pub is_repeatable: bool,
    /// The script answers with texts too. Without it, an answer with a text is invalid.
    pub gives_texts: bool,
    keys: usize,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl RedisCall {
    /// A call without keys and arguments.
    #[must_use]
    pub fn new(server: &Arc<RedisServer>, script: &'static RedisScript) -> Self {
        Self {
            server: Arc::clone(server),
            script,
            compensate: None,
            is_repeatable: false,
            gives_texts: false,
            keys: 0,
            ends: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Adds a key; all keys come before the first argument. Keys of one call must have the same hash tag.
    pub fn key(&mut self, parts: &[&[u8]]) {
        debug_assert_eq!(self.keys, self.ends.len(), "keys come before arguments");
        self.keys += 1;
        self.argument(parts);
    }

    /// Adds an argument, made of these parts.
    pub fn argument(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.ends.push(self.bytes.len());
    }

    /// Adds a number as an argument.
    pub fn number(&mut self, number: impl fmt::Display) {
        use std::io::Write;
        // Writing into memory does not fail.
        let _is_written = write!(self.bytes, "{number}");
        self.ends.push(self.bytes.len());
    }

    /// How many of the parts are keys.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.keys
    }

    /// How many bytes keys and arguments have.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The keys, and then the arguments.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let count = self.ends.len();
        let mut ranges = starts.zip(&self.ends);
        (0..count).map(move |_| {
            let (start, end) = ranges.next().unwrap_or((0, &0));
            self.bytes.get(start..*end).unwrap_or_default()
        })
    }
}

/// Keys may name callers, so they are left out.
impl fmt::Debug for RedisCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisCall({:?})", self.server)
    }
}

/// What a filter has the engine do.
#[derive(Debug)]
pub enum RedisCommand {
    /// To run a script and call the filter again, which finds in [`Exchange::redis`](crate::Exchange::redis) what came
    /// of it.
    Run(RedisCall),
    /// To synchronize these counts in the background. The call goes on with the next filter, or with a refusal.
    Settle(Arc<dyn RedisAccumulator>, Option<Box<Refusal>>),
}

/// What a script has answered.
pub struct RedisResponse {
    /// Its numbers.
    pub numbers: Vec<i64>,
    /// Its texts. What is not there (`nil`) is left out.
    pub texts: Vec<Vec<u8>>,
    /// Over which more can be run there, now or later on, without waiting for the answer.
    pub outlet: Rc<dyn RedisPublisher>,
}

impl fmt::Debug for RedisResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisAnswer({:?})", self.numbers)
    }
}

/// A worker's way to a Redis.
pub trait RedisPublisher {
    /// Runs a script whose answer is not awaited. It is left out if too many wait already.
    fn fire_and_forget(&self, call: RedisCall);
}

/// Counts that are kept locally and synchronized with a Redis from time to time.
pub trait RedisAccumulator: Send + Sync + fmt::Debug {
    /// The server that they are synchronized with.
    fn server(&self) -> &Arc<RedisServer>;

    /// How long after the first count they are synchronized.
    fn delay(&self) -> Duration;

    /// Takes out the calls to run now, each with a number of its own. Later counts belong to the next synchronization.
    fn due(&self, now_ms: u64) -> Vec<(u64, RedisCall)>;

    /// Takes in the result of a call; `None` if it is not known whether it was run.
    fn complete(&self, number: u64, answer: Option<&[i64]>, now_ms: u64);

    /// Called after all calls have been completed. Returns whether there are already more counts; then the engine goes
    /// on.
    fn finish(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    static SCRIPT: RedisScript = RedisScript {
        text: "return {}",
        sha1: String::new(),
    };

    fn server() -> Arc<RedisServer> {
        Arc::new(RedisServer {
            place: RedisTopology::Single(RedisAddress {
                host: "h".to_owned(),
                port: 6379,
            }),
            username: Some("user".to_owned()),
            password: Some("secret".to_owned()),
            database: 0,
            tls: None,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
        })
    }

    #[test]
    fn calls_have_keys_and_arguments() {
        let mut call = RedisCall::new(&server(), &SCRIPT);
        assert_eq!(call.parts().len(), 0);
        call.key(&[b"a", b"b"]);
        call.key(&[b""]);
        call.argument(&[b"x"]);
        call.number(-7);
        call.number(0.5);
        let parts: Vec<&[u8]> = call.parts().collect();
        assert_eq!(parts, [&b"ab"[..], b"", b"x", b"-7", b"0.5"]);
        assert_eq!(call.key_count(), 2);
    }

    #[test]
    fn passwords_do_not_show() {
        let call = RedisCall::new(&server(), &SCRIPT);
        assert_eq!(format!("{call:?}"), "RedisCall(RedisServer(h:6379))");
    }
}
