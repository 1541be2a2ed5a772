//! Codes and tokens that calls make, in memory, for all workers. Each is found by the SHA-256 of its text; the texts
//! themselves are not kept. If the gateway has a store, this is a copy of what is there ([`super::shared`]).
//!
//! Nothing here grows without bound: a client has at most so many records, all together have at most so many, and what is
//! over is removed as new ones come.

use super::shared::Sharing;
use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use weir_model::DialectName;

/// The SHA-256 of a code or token.
pub(super) type Hash = [u8; 32];

/// The hash of a code or token.
pub(super) fn hash(text: &str) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    hash
}

/// A code that stands for what a user has allowed, until its client fetches a token with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Code {
    pub(super) owner: RecordOwner,
    /// The instance of the plugin that made it.
    pub(super) instance: String,
    pub(super) grant: GrantedAccess,
    /// What the client must know the origin of (RFC 7636).
    pub(super) challenge: Option<String>,
    /// Where the application was sent back to.
    pub(super) redirect_uri: String,
}

/// An access token, with the refresh token that goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    pub(super) owner: RecordOwner,
    pub(super) grant: GrantedAccess,
    pub(super) refresh: Option<Hash>,
    /// The code that it, or a token before it, was given for: if the code is used again, it is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<Hash>,
    pub(super) created_ms: u64,
    /// For how long it lets calls in; 0: for ever.
    pub(super) expires_seconds: u64,
}

/// Whose a record is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct RecordOwner {
    /// The dialect and workspace of the client.
    pub(super) area: Arc<str>,
    /// The id of the client.
    pub(super) client: Arc<str>,
}

impl RecordOwner {
    pub(super) fn area(dialect: DialectName, workspace: Option<&str>) -> Arc<str> {
        match workspace {
            Some(workspace) => format!("{dialect} {workspace}").into(),
            None => dialect.as_str().into(),
        }
    }

    /// The dialect and workspace of the client. The names of dialects have no spaces.
    pub(super) fn place(&self) -> (&str, Option<&str>) {
        match self.area.split_once(' ') {
            Some((dialect, workspace)) => (dialect, Some(workspace)),
            None => (&self.area, None),
        }
    }
}

/// What was allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GrantedAccess {
    /// The service; `None`: all that share their clients.
    pub(super) service: Option<Arc<str>>,
    pub(super) scope: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
}

/// What is kept under a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record {
    Code(Code),
    /// A code that was used, and the token that was given for it.
    UsedCode {
        owner: RecordOwner,
        token: Hash,
    },
    Token(Token),
    /// A token of the configuration that was refreshed and is no longer valid.
    Refreshed {
        owner: RecordOwner,
    },
}

impl Record {
    fn owner(&self) -> &RecordOwner {
        match self {
            Self::Code(Code { owner, .. })
            | Self::UsedCode { owner, .. }
            | Self::Token(Token { owner, .. })
            | Self::Refreshed { owner } => owner,
        }
    }

    /// Whether it goes when there are too many. Were it forgotten that a token of the configuration was refreshed, that
    /// token would be good again; there are no more of these records than an administrator has written tokens.
    fn makes_room(&self) -> bool {
        !matches!(self, Self::Refreshed { .. })
    }

    pub(super) fn refresh(&self) -> Option<&Hash> {
        match self {
            Self::Token(token) => token.refresh.as_ref(),
            _ => None,
        }
    }
}

/// A record that is put.
#[derive(Debug, Clone)]
pub(super) struct Put {
    pub(super) hash: Hash,
    pub(super) record: Record,
    /// From when on it is gone; `None`: it stays.
    pub(super) ends_ms: Option<u64>,
    /// When it was made. Of too many the oldest go.
    pub(super) made_ms: u64,
}

/// Records of a client that are put and removed together, or not at all.
#[derive(Debug, Clone, Default)]
pub(super) struct Change {
    /// The record of this hash must be as it was found.
    pub(super) unless_changed: Option<(Hash, Arc<Record>)>,
    /// There must be none of this hash.
    pub(super) unless_there: Option<Hash>,
    pub(super) removes: Vec<Hash>,
    pub(super) puts: Vec<Put>,
}

/// How many records there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) of_client: usize,
    pub(super) of_all: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            of_client: 10_000,
            of_all: 200_000,
        }
    }
}

/// All records.
#[derive(Default)]
pub(super) struct Records {
    bounds: Bounds,
    state: RwLock<RecordIndex>,
    /// Who else knows the records; none: they are in memory alone.
    pub(super) sharing: OnceLock<Sharing>,
}

/// By age: when it was made, and which came first of those of one moment.
type Age = (u64, u64, Hash);

#[derive(Default)]
pub(super) struct RecordIndex {
    by_hash: HashMap<Hash, CachedRecord>,
    /// The access tokens by their refresh tokens.
    by_refresh: HashMap<Hash, Hash>,
    /// By the time from when on they are gone.
    by_end: BTreeSet<(u64, Hash)>,
    /// The records of each client, and of all, by age.
    by_client: HashMap<RecordOwner, BTreeSet<Age>>,
    by_age: BTreeSet<Age>,
    next_number: u64,
    /// The revision of the store up to which all is known.
    followed_revision: u64,
    /// Whether the store has been read for the first time.
    is_followed: bool,
}

pub(super) struct CachedRecord {
    pub(super) record: Arc<Record>,
    pub(super) ends_ms: Option<u64>,
    pub(super) made_ms: u64,
    number: u64,
}

impl Records {
    #[cfg(test)]
    pub(super) fn bounded(bounds: Bounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, RecordIndex> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, RecordIndex> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of this hash.
    pub(super) fn find(&self, hash: &Hash, now_ms: u64) -> Option<Arc<Record>> {
        let state = self.read();
        let kept = state.by_hash.get(hash)?;
        (kept.ends_ms.is_none_or(|end| now_ms < end)).then(|| Arc::clone(&kept.record))
    }

    /// The access token's hash and the record of this refresh token.
    pub(super) fn find_refresh(&self, refresh: &Hash, now_ms: u64) -> Option<(Hash, Arc<Record>)> {
        let hash = *self.read().by_refresh.get(refresh)?;
        Some((hash, self.find(&hash, now_ms)?))
    }

    /// Makes a change in memory. `false`: another call was faster, and nothing is changed.
    pub(super) fn apply(&self, change: &Change, now_ms: u64) -> bool {
        let mut state = self.write();
        state.remove_ended(now_ms);
        let is_as_found = change.unless_changed.as_ref().is_none_or(|(hash, record)| {
            let kept = state.by_hash.get(hash);
            kept.is_some_and(|kept| kept.record == *record)
        });
        let is_free = change
            .unless_there
            .is_none_or(|hash| !state.by_hash.contains_key(&hash));
        if !is_as_found || !is_free {
            return false;
        }
        let surplus = state.surplus(change, self.bounds);
        for hash in change.removes.iter().chain(&surplus) {
            state.remove(hash);
        }
        for put in &change.puts {
            state.put(put.clone());
        }
        true
    }

    /// What goes to make room for the records of a change.
    pub(super) fn surplus(&self, change: &Change) -> Vec<Hash> {
        self.read().surplus(change, self.bounds)
    }

    /// Takes over what a revision of the store has made of records. What is known of later ones stays.
    pub(super) fn apply_newer(&self, revision: u64, changes: Vec<(Hash, Option<Put>)>) {
        let mut state = self.write();
        if revision > state.followed_revision {
            state.change(changes);
        }
    }

    /// Takes over a revision of the store, and that all before is known.
    pub(super) fn follow(&self, revision: u64, changes: Vec<(Hash, Option<Put>)>, now_ms: u64) {
        let mut state = self.write();
        // A store that was reset reports smaller revisions than before.
        state.followed_revision = revision;
        state.is_followed = true;
        state.change(changes);
        state.remove_ended(now_ms);
    }

    /// Whether the store has been read for the first time. Before that, this copy lacks what other gateways have
    /// created.
    pub(super) fn is_followed(&self) -> bool {
        self.read().is_followed
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().by_hash.len()
    }
}

impl RecordIndex {
    /// A record that is kept, whether or not it has ended.
    pub(super) fn kept(&self, hash: &Hash) -> Option<&CachedRecord> {
        self.by_hash.get(hash)
    }

    /// All that is kept.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Hash, &CachedRecord)> {
        self.by_hash.iter()
    }

    fn change(&mut self, changes: Vec<(Hash, Option<Put>)>) {
        for (hash, put) in changes {
            match put {
                Some(put) => self.put(put),
                None => self.remove(&hash),
            }
        }
    }

    fn remove_ended(&mut self, now_ms: u64) {
        while let Some((end, hash)) = self.by_end.first().copied() {
            if end > now_ms {
                return;
            }
            self.remove(&hash);
        }
    }

    /// What goes to make room for a change. A client that has too many loses its oldest. If all together are too many, the
    /// client that gets more loses as many of its oldest, so that no client can take the place of another one's tokens.
    /// Whatever is over then goes from the client that has most: several changes that were under way at once have left it,
    /// or the client had none to lose.
    fn surplus(&self, change: &Change, bounds: Bounds) -> Vec<Hash> {
        let Some(owner) = change.puts.first().map(|put| put.record.owner()) else {
            return Vec::new();
        };
        let new = || {
            let puts = change.puts.iter();
            puts.filter(|put| !self.by_hash.contains_key(&put.hash))
        };
        let (new_all, new_own) = (new().count(), new().filter(|put| put.record.makes_room()).count());
        let is_there = |hash: &&Hash| self.by_hash.contains_key(*hash);
        let gone = change.removes.iter().filter(is_there).count();
        let own = self.by_client.get(owner);
        let over_own = (own.map_or(0, BTreeSet::len) + new_own).saturating_sub(gone + bounds.of_client);
        let over_all = (self.by_hash.len() + new_all).saturating_sub(gone + bounds.of_all);
        let from_own = over_own.max(over_all.min(new_all.saturating_sub(gone)));
        let is_free = |hash: &Hash| {
            let is_put = change.puts.iter().any(|put| put.hash == *hash);
            !is_put && !change.removes.contains(hash)
        };
        let oldest = |ages: &BTreeSet<Age>, from: usize, count: usize| -> Vec<Hash> {
            let hashes = ages.iter().map(|(_, _, hash)| *hash);
            hashes.filter(is_free).skip(from).take(count).collect()
        };
        let mut goes = own.map_or_else(Vec::new, |own| oldest(own, 0, from_own));
        let rest = over_all.saturating_sub(goes.len());
        let by_client = || self.by_client.values();
        if rest > 0
            && let Some(most) = by_client().max_by_key(|ages| (ages.len(), Reverse(ages.first())))
        {
            let is_own = own.is_some_and(|own| std::ptr::eq(own, most));
            let from = if is_own { goes.len() } else { 0 };
            goes.extend(oldest(most, from, rest));
        }
        goes
    }

    fn put(&mut self, put: Put) {
        self.remove(&put.hash);
        let number = self.next_number;
        self.next_number += 1;
        if let Some(end) = put.ends_ms {
            self.by_end.insert((end, put.hash));
        }
        if let Some(refresh) = put.record.refresh() {
            self.by_refresh.insert(*refresh, put.hash);
        }
        if put.record.makes_room() {
            let owner = put.record.owner().clone();
            let age = (put.made_ms, number, put.hash);
            self.by_client.entry(owner).or_default().insert(age);
            self.by_age.insert(age);
        }
        self.by_hash.insert(
            put.hash,
            CachedRecord {
                record: Arc::new(put.record),
                ends_ms: put.ends_ms,
                made_ms: put.made_ms,
                number,
            },
        );
    }

    fn remove(&mut self, hash: &Hash) {
        let Some(kept) = self.by_hash.remove(hash) else {
            return;
        };
        if let Some(end) = kept.ends_ms {
            self.by_end.remove(&(end, *hash));
        }
        if let Some(refresh) = kept.record.refresh()
            && self.by_refresh.get(refresh) == Some(hash)
        {
            self.by_refresh.remove(refresh);
        }
        let age = (kept.made_ms, kept.number, *hash);
        self.by_age.remove(&age);
        let owner = kept.record.owner();
        if let Some(own) = self.by_client.get_mut(owner) {
            own.remove(&age);
            if own.is_empty() {
                self.by_client.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(client: &str, number: u32, ends_ms: Option<u64>) -> Put {
        let record = Record::Token(Token {
            owner: RecordOwner {
                area: "test".into(),
                client: client.into(),
            },
            grant: GrantedAccess::default(),
            refresh: Some(hash(&format!("refresh {client} {number}"))),
            code: None,
            created_ms: 0,
            expires_seconds: 0,
        });
        Put {
            hash: hash(&format!("{client} {number}")),
            record,
            ends_ms,
            made_ms: 0,
        }
    }

    fn put(records: &Records, put: Put, now_ms: u64) {
        let change = Change {
            puts: vec![put],
            ..Change::default()
        };
        assert!(records.apply(&change, now_ms));
    }

    #[test]
    fn records_are_bounded_and_clients_take_no_place_of_others() {
        let records = Records::bounded(Bounds {
            of_client: 3,
            of_all: 5,
        });
        for number in 0..10 {
            put(&records, token("greedy", number, None), 0);
        }
        assert_eq!(records.len(), 3);
        assert!(records.find(&hash("greedy 6"), 0).is_none());
        assert!(records.find(&hash("greedy 7"), 0).is_some());
        for number in 0..2 {
            put(&records, token("modest", number, None), 0);
        }
        put(&records, token("greedy", 10, None), 0);
        put(&records, token("modest", 2, None), 0);
        assert_eq!(records.len(), 5);
        for (name, is_there) in [
            ("greedy 7", false),
            ("greedy 10", true),
            ("modest 0", false),
            ("modest 1", true),
            ("modest 2", true),
        ] {
            assert_eq!(records.find(&hash(name), 0).is_some(), is_there, "{name}");
        }
        // One who has none gets a place.
        put(&records, token("new", 0, None), 0);
        assert!(records.find(&hash("new 0"), 0).is_some());
        assert_eq!(records.len(), 5);
    }

    /// As many changes at once leave them.
    #[test]
    fn what_is_over_goes_from_the_client_that_has_most() {
        let records = Records::bounded(Bounds {
            of_client: 9,
            of_all: 4,
        });
        let greedy = (0..6).map(|number| token("greedy", number, None));
        let all = greedy.chain([token("modest", 0, None), token("modest", 1, None)]);
        records.follow(1, all.map(|put| (put.hash, Some(put))).collect(), 0);
        put(&records, token("modest", 2, None), 0);
        for (name, is_there) in [
            ("modest 0", false),
            ("modest 1", true),
            ("modest 2", true),
            ("greedy 3", false),
            ("greedy 4", true),
        ] {
            assert_eq!(records.find(&hash(name), 0).is_some(), is_there, "{name}");
        }
        assert_eq!(records.len(), 4);
    }

    #[test]
    fn a_token_in_the_place_of_another_one_takes_no_other_place() {
        let records = Records::bounded(Bounds {
            of_client: 2,
            of_all: 2,
        });
        for number in 0..2 {
            put(&records, token("a", number, None), 0);
        }
        let change = Change {
            removes: vec![hash("a 1")],
            puts: vec![token("a", 2, None)],
            ..Change::default()
        };
        assert!(records.apply(&change, 0));
        assert!(records.find(&hash("a 0"), 0).is_some() && records.find(&hash("a 2"), 0).is_some());
    }

    #[test]
    fn that_a_token_was_refreshed_is_not_forgotten_for_others() {
        let records = Records::bounded(Bounds {
            of_client: 2,
            of_all: 3,
        });
        let owner = RecordOwner {
            area: "test".into(),
            client: "a".into(),
        };
        let refreshed = Put {
            hash: hash("written"),
            record: Record::Refreshed { owner },
            ends_ms: None,
            made_ms: 0,
        };
        put(&records, refreshed, 0);
        for number in 0..10 {
            put(&records, token("a", number, None), 0);
        }
        assert!(records.find(&hash("written"), 0).is_some());
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn clients_of_one_name_in_two_areas_have_places_of_their_own() {
        let records = Records::bounded(Bounds {
            of_client: 1,
            of_all: 9,
        });
        put(&records, token("a", 0, None), 0);
        let mut elsewhere = token("a", 1, None);
        if let Record::Token(token) = &mut elsewhere.record {
            token.owner.area = "other".into();
        }
        put(&records, elsewhere, 0);
        assert_eq!(records.len(), 2);
    }

    #[test]
    fn records_end_and_leave_nothing() {
        let records = Records::default();
        put(&records, token("a", 0, Some(1_000)), 0);
        put(&records, token("a", 1, Some(2_000)), 0);
        assert!(records.find(&hash("a 0"), 999).is_some());
        assert!(records.find(&hash("a 0"), 1_000).is_none());
        assert!(records.find_refresh(&hash("refresh a 0"), 1_000).is_none());
        put(&records, token("b", 0, None), 5_000);
        let state = records.read();
        assert_eq!(
            (
                state.by_hash.len(),
                state.by_refresh.len(),
                state.by_end.len(),
                state.by_client.len(),
                state.by_age.len()
            ),
            (1, 1, 0, 1, 1)
        );
    }

    #[test]
    fn of_two_that_take_the_same_record_one_gets_it() {
        let records = Records::default();
        put(&records, token("a", 0, None), 0);
        let found = records.find(&hash("a 0"), 0).expect("there");
        let take = |number| Change {
            unless_changed: Some((hash("a 0"), Arc::clone(&found))),
            removes: vec![hash("a 0")],
            puts: vec![token("a", number, None)],
            ..Change::default()
        };
        assert!(records.apply(&take(1), 0));
        assert!(!records.apply(&take(2), 0));
        assert!(records.find(&hash("a 2"), 0).is_none());
        let again = Change {
            unless_there: Some(hash("a 1")),
            ..Change::default()
        };
        assert!(!records.apply(&again, 0));
    }
}
