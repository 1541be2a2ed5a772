//! What is kept under a key: a response, its times, and how it can be used.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_plugin::{Headers, SharedReply};

/// What an entry takes besides its texts, in bytes, about.
pub(super) const OVERHEAD: usize = 256;

/// A digest of everything that distinguishes responses.
pub(super) type Key = [u8; 32];

/// A response that is kept.
#[derive(Debug, Clone)]
pub(super) struct CacheEntry {
    pub(super) status: u16,
    pub(super) headers: Arc<Headers>,
    pub(super) body: Arc<[u8]>,
    pub(super) times: Times,
}

/// The times of a response, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Times {
    /// When it was stored, since the Unix epoch.
    pub(super) stored: u64,
    /// How old it was then.
    pub(super) age: u64,
    /// The age up to which it is fresh.
    pub(super) fresh: u64,
    /// The age up to which it is kept.
    pub(super) keep: u64,
    /// For how long beyond `fresh` it does while a new one is fetched.
    pub(super) while_revalidate: u64,
    /// How long beyond `fresh` it may be used if the service fails.
    pub(super) if_error: u64,
    /// It must not be used once it is too old, whatever a caller says.
    pub(super) never_stale: bool,
    /// The service must be asked about it every time.
    pub(super) always_ask: bool,
}

/// How a response that is kept can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    /// As it is.
    Fresh,
    /// Only if it may be used stale.
    Stale,
    /// Not at all: its time is over.
    Over,
}

impl Times {
    /// How old the response is.
    pub(super) fn age_at(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.stored).saturating_add(self.age)
    }

    /// How it can be used.
    pub(super) fn freshness(&self, now_ms: u64) -> Freshness {
        let age = self.age_at(now_ms);
        if age < self.fresh {
            Freshness::Fresh
        } else if age < self.keep {
            Freshness::Stale
        } else {
            Freshness::Over
        }
    }

    /// Whether it does though it is too old by so much, of the time allowed for that.
    pub(super) fn may_be_stale(&self, allowed: u64, now_ms: u64) -> bool {
        !self.never_stale && self.age_at(now_ms).saturating_sub(self.fresh) < allowed
    }
}

impl CacheEntry {
    /// The memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + self.headers.bytes() + OVERHEAD
    }

    /// Whether the service can be asked whether it still holds.
    pub(super) fn has_validator(&self) -> bool {
        self.status == 200 && (self.headers.contains(b"etag") || self.headers.contains(b"last-modified"))
    }

    /// All of it, as an answer.
    pub(super) fn shared(&self) -> SharedReply {
        SharedReply {
            headers: Arc::clone(&self.headers),
            body: Arc::clone(&self.body),
            range: 0..self.body.len(),
        }
    }
}

/// What stands under a key.
pub(super) enum Slot {
    /// A response; `used`: since the hand of the clock came by.
    Response {
        entry: Arc<CacheEntry>,
        used: AtomicBool,
    },
    /// Responses differ by these request headers, and are stored under keys of their own; `latest` is the key of the
    /// newest one, if it is known.
    Vary {
        names: Arc<[String]>,
        salt: u64,
        latest: Option<Key>,
    },
    /// The last response could not be stored; no call waits for the next one until then.
    Pass { until_ms: u64 },
}

impl Slot {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Response { entry, .. } => entry.bytes(),
            Self::Vary { names, .. } => names.iter().map(String::len).sum::<usize>() + OVERHEAD,
            Self::Pass { .. } => OVERHEAD,
        }
    }
}
