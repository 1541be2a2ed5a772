//! The state of the Redis servers that hold counts, and the results of requests to them.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The most servers that are distinguished; others share one name.
const MAX_SERVERS: usize = 100;
/// The name that they share.
const OTHER: &str = "_other";

/// The servers that have been used since the start.
#[derive(Debug, Default)]
pub struct RedisStats(Mutex<Vec<Arc<RedisServerStats>>>);

impl RedisStats {
    /// The counts of the server of this name.
    pub fn server(&self, name: &str) -> Arc<RedisServerStats> {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut name = name;
        if servers.len() >= MAX_SERVERS && !servers.iter().any(|it| it.name == name) {
            name = OTHER;
        }
        if let Some(known) = servers.iter().find(|it| it.name == name) {
            return Arc::clone(known);
        }
        let fresh = Arc::new(RedisServerStats {
            name: name.to_owned(),
            ..RedisServerStats::default()
        });
        servers.push(Arc::clone(&fresh));
        fresh
    }

    /// All servers.
    pub fn servers(&self) -> Vec<Arc<RedisServerStats>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The counts of one server, over all workers.
#[derive(Debug, Default)]
pub struct RedisServerStats {
    name: String,
    /// 0: not known yet, 1: there, 2: away.
    state: AtomicU8,
    /// Calls that were answered.
    pub answered: AtomicU64,
    /// Calls that were sent, or were to be, and got no good answer.
    pub failed: AtomicU64,
    /// Calls that were not sent, as the server was away.
    pub skipped: AtomicU64,
    /// Connections that were made.
    pub connections: AtomicU64,
}

impl RedisServerStats {
    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Notes whether the server is there. Says whether that is news.
    pub fn set_up(&self, is_up: bool) -> bool {
        let state = if is_up { 1 } else { 2 };
        self.state.swap(state, Relaxed) != state
    }

    /// Whether the server was there when it was last seen to.
    pub fn is_up(&self) -> bool {
        self.state.load(Relaxed) == 1
    }

    /// Counts one more.
    pub fn add(count: &AtomicU64) {
        count.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_distinguished_up_to_a_bound() {
        let stats = RedisStats::default();
        for number in 0..MAX_SERVERS + 10 {
            RedisServerStats::add(&stats.server(&format!("s{number}")).answered);
        }
        RedisServerStats::add(&stats.server("s0").answered);
        let servers = stats.servers();
        assert_eq!(servers.len(), MAX_SERVERS + 1);
        assert_eq!(servers[0].answered.load(Relaxed), 2);
        assert_eq!(servers[MAX_SERVERS].answered.load(Relaxed), 10);
    }

    #[test]
    fn only_changes_are_news() {
        let server = RedisServerStats::default();
        for (is_up, is_news) in [
            (true, true),
            (true, false),
            (false, true),
            (false, false),
            (true, true),
        ] {
            assert_eq!(server.set_up(is_up), is_news);
            assert_eq!(server.is_up(), is_up);
        }
    }
}
