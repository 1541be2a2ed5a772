//! Gateways that share their tokens through a store in memory, which delivers its changes when the test says so.

use super::*;
use crate::oauth2_server::OAuth2Server;
use crate::oauth2_server::records::{Bounds, GrantedAccess, RecordOwner, Token};
use std::collections::HashMap;
use weir_plugin::{Exchange, Filter, Plugin};
use weir_plugins_testkit::{build_with, exchange, prepare, word};

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// What a commit has changed.
type CommittedChanges = Vec<(String, Option<SharedRecord>)>;

/// A store, and the gateways that follow it.
#[derive(Default)]
struct FakeStore {
    state: Mutex<FakeState>,
}

#[derive(Default)]
struct FakeState {
    is_away: bool,
    revision: u64,
    records: HashMap<String, SharedRecord>,
    commits: Vec<(u64, CommittedChanges)>,
    reads: usize,
    /// Commits are answered when the test says so.
    is_slow: bool,
    held: Vec<(SharedChange, Committed)>,
}

impl FakeStore {
    fn state(&self) -> std::sync::MutexGuard<'_, FakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the commits that are held, in their order.
    fn answer_held(&self) {
        self.state().is_slow = false;
        let held = std::mem::take(&mut self.state().held);
        for (change, then) in held {
            self.commit(change, then);
        }
    }

    /// Tells a gateway all that was committed after a revision.
    fn deliver(&self, gateway: &SharedTokens, after: u64) -> u64 {
        let state = self.state();
        for (revision, changes) in state.commits.iter().filter(|(revision, _)| *revision > after) {
            gateway.apply(*revision, changes.clone());
        }
        state.revision
    }
}

impl SharedStore for FakeStore {
    fn read(&self, name: &str, then: weir_plugin::RecordRead) {
        let mut state = self.state();
        state.reads += 1;
        then(match state.is_away {
            true => Err(StoreUnavailable),
            false => Ok((state.records.get(name).cloned(), state.revision)),
        });
    }

    fn commit(&self, change: SharedChange, then: Committed) {
        let mut state = self.state();
        if state.is_away {
            return then(Err(StoreUnavailable));
        }
        if state.is_slow {
            return state.held.push((change, then));
        }
        let mut expected = change.expected.iter();
        if !expected.all(|(name, value)| state.records.get(name).map(|it| &it.value) == value.as_ref()) {
            return then(Ok(None));
        }
        state.revision += 1;
        let revision = state.revision;
        let removes = change.removes.into_iter().map(|name| (name, None));
        let puts = change.puts.into_iter().map(|(name, record)| (name, Some(record)));
        let changes: Vec<_> = removes.chain(puts).collect();
        for (name, record) in &changes {
            match record {
                Some(record) => drop(state.records.insert(name.clone(), record.clone())),
                None => drop(state.records.remove(name)),
            }
        }
        state.commits.push((revision, changes));
        drop(state);
        then(Ok(Some(revision)));
    }
}

fn gateway(store: &Arc<FakeStore>, bounds: Bounds) -> SharedTokens {
    let tokens = SharedTokens(Arc::new(Records::bounded(bounds)));
    tokens.share(Arc::clone(store) as Arc<dyn SharedStore>);
    tokens
}

fn token(text: &str, made_ms: u64) -> Put {
    let record = Record::Token(Token {
        owner: RecordOwner {
            area: "test".into(),
            client: "c".into(),
        },
        grant: GrantedAccess::default(),
        refresh: Some(hash(&format!("refresh {text}"))),
        code: None,
        created_ms: made_ms,
        expires_seconds: 0,
    });
    Put {
        hash: hash(text),
        record,
        ends_ms: None,
        made_ms,
    }
}

fn put(text: &str, made_ms: u64) -> Change {
    Change {
        puts: vec![token(text, made_ms)],
        ..Change::default()
    }
}

fn commit(gateway: &SharedTokens, change: Change) -> Option<Result<bool, StoreUnavailable>> {
    match gateway.0.commit(change, 0) {
        ChangeResult::Now(done) => Some(Ok(done)),
        ChangeResult::Later(result) => result.take(),
    }
}

#[test]
fn what_one_gateway_gives_another_one_knows() {
    let store = Arc::new(FakeStore::default());
    let [one, two] = [0, 1].map(|_| gateway(&store, Bounds::default()));
    assert_eq!(commit(&one, put("a", 1)), Some(Ok(true)));
    assert!(one.0.find(&hash("a"), 9).is_some(), "at once where it was given");
    assert!(two.0.find(&hash("a"), 9).is_none());
    // A call does not wait for the news.
    let looked = two.0.fetch(&hash("a"), CLIENT, 9).expect("looks");
    assert_eq!(looked.take(), Some(Ok(())));
    assert!(two.0.find(&hash("a"), 9).is_some());
    assert!(two.0.fetch(&hash("a"), CLIENT, 9).is_none(), "known");
    let delivered = store.deliver(&two, 0);
    assert!(two.0.find_refresh(&hash("refresh a"), 9).is_some());
    // If two gateways take the same record, only one gets it.
    let take = |gateway: &SharedTokens, text: &str| Change {
        unless_changed: Some((hash("a"), gateway.0.find(&hash("a"), 9).expect("there"))),
        removes: vec![hash("a")],
        puts: vec![token(text, 2)],
        ..Change::default()
    };
    let (first, second) = (take(&one, "b"), take(&two, "c"));
    assert_eq!(commit(&one, first), Some(Ok(true)));
    assert_eq!(commit(&two, second), Some(Ok(false)));
    store.deliver(&two, delivered);
    assert!(two.0.find(&hash("a"), 9).is_none() && two.0.find(&hash("b"), 9).is_some());
    // One that starts knows all.
    let three = gateway(&store, Bounds::default());
    store.deliver(&three, 0);
    assert_eq!(three.list(9), two.list(9));
    assert_eq!(three.list(9).len(), 1);
    let name = three.name_of("b");
    three.remove(&name, Box::new(|done| assert!(done.is_ok())));
    assert!(three.list(9).is_empty());
}

/// News that come late bring nothing back that was removed since.
#[test]
fn what_was_removed_stays_removed() {
    let store = Arc::new(FakeStore::default());
    let [one, two] = [0, 1].map(|_| gateway(&store, Bounds::default()));
    assert_eq!(commit(&one, put("a", 1)), Some(Ok(true)));
    let remove = Change {
        removes: vec![hash("a")],
        ..Change::default()
    };
    assert_eq!(commit(&one, remove), Some(Ok(true)));
    store.deliver(&two, 0);
    let late = store.state().commits[0].clone();
    two.0.apply_newer(late.0, vec![(hash("a"), Some(token("a", 1)))]);
    assert!(two.0.find(&hash("a"), 9).is_none());
}

#[test]
fn a_store_that_is_away_gives_nothing_and_takes_nothing() {
    let store = Arc::new(FakeStore::default());
    let one = gateway(&store, Bounds::default());
    assert_eq!(commit(&one, put("a", 1)), Some(Ok(true)));
    store.state().is_away = true;
    assert!(one.0.find(&hash("a"), 9).is_some(), "what is known is good");
    assert_eq!(commit(&one, put("b", 1)), Some(Err(StoreUnavailable)));
    assert!(one.0.find(&hash("b"), 9).is_none());
    let looked = one.0.fetch(&hash("b"), CLIENT, 9).expect("looks");
    assert_eq!(looked.take(), Some(Err(StoreUnavailable)));
}

#[test]
fn guesses_do_not_keep_the_store_busy() {
    let store = Arc::new(FakeStore::default());
    let one = gateway(&store, Bounds::default());
    let look = |text: String, client: u128, now_ms: u64| {
        let client = IpAddr::V6(Ipv6Addr::from_bits(client));
        one.0.fetch(&hash(&text), client, now_ms).is_some()
    };
    // One client with many addresses of its network.
    for number in 0..2_000 {
        look(format!("guess {number}"), u128::from(number), 1_000 + number / 2);
    }
    assert_eq!(store.state().reads, MAX_FETCHES_OF_CLIENT as usize);
    // Others are still looked for, up to the bound of all.
    for number in 0..2_000_u64 {
        look(format!("other {number}"), u128::from(number + 1) << 64, 1_999);
    }
    assert_eq!(store.state().reads, MAX_FETCHES as usize);
    assert!(look("later".to_owned(), 0, 2_000));
}

#[test]
fn a_token_that_the_store_lacks_is_not_looked_for_again_and_again() {
    let store = Arc::new(FakeStore::default());
    let one = gateway(&store, Bounds::default());
    let look = |now_ms: u64| {
        one.0.fetch(&hash("made up"), CLIENT, now_ms);
        store.state().reads
    };
    assert_eq!((look(1_000), look(1_001), look(4_999)), (1, 1, 1));
    assert_eq!(look(9_999), 1, "also in the time after");
    assert_eq!((look(10_000), look(10_001)), (2, 2));
    assert_eq!(look(100_000), 3);
    // What the store delivers is known, whether or not it was looked up.
    let other = gateway(&store, Bounds::default());
    assert_eq!(commit(&other, put("made up", 1)), Some(Ok(true)));
    store.deliver(&one, 0);
    assert!(one.0.find(&hash("made up"), 100_001).is_some());
    // A store that is away says nothing of what it has.
    let away = gateway(&store, Bounds::default());
    store.state().is_away = true;
    for now_ms in [1, 2] {
        let looked = away.0.fetch(&hash("b"), CLIENT, now_ms).expect("looks");
        assert_eq!(looked.take(), Some(Err(StoreUnavailable)));
    }
}

#[test]
fn the_store_is_bounded_too() {
    let store = Arc::new(FakeStore::default());
    let bounds = Bounds {
        of_client: 3,
        of_all: 10,
    };
    let one = gateway(&store, bounds);
    for number in 0..10_u64 {
        assert_eq!(commit(&one, put(&number.to_string(), number)), Some(Ok(true)));
    }
    assert_eq!((store.state().records.len(), one.0.len()), (3, 3));
    assert!(one.0.find(&hash("9"), 99).is_some() && one.0.find(&hash("6"), 99).is_none());
}

/// All that are under way at once see the same records.
#[test]
fn what_many_commits_at_once_leave_over_goes_with_the_next() {
    let store = Arc::new(FakeStore::default());
    let bounds = Bounds {
        of_client: 3,
        of_all: 10,
    };
    let one = gateway(&store, bounds);
    for number in 0..3_u64 {
        assert_eq!(commit(&one, put(&number.to_string(), number)), Some(Ok(true)));
    }
    store.state().is_slow = true;
    for number in 3..11_u64 {
        assert_eq!(commit(&one, put(&number.to_string(), number)), None);
    }
    store.answer_held();
    assert_eq!(one.0.len(), 10, "all have made room with the same one");
    assert_eq!(commit(&one, put("11", 11)), Some(Ok(true)));
    assert_eq!((store.state().records.len(), one.0.len()), (3, 3));
    assert!(one.0.find(&hash("11"), 99).is_some() && one.0.find(&hash("8"), 99).is_none());
}

#[test]
fn lists_name_the_place_of_a_client() {
    let store = Arc::new(FakeStore::default());
    let one = gateway(&store, Bounds::default());
    let mut change = put("a", 1);
    if let Record::Token(token) = &mut change.puts[0].record {
        token.owner.area = "kong my team".into();
    }
    assert_eq!(commit(&one, change), Some(Ok(true)));
    let listed = &one.list(9)[0].1;
    assert_eq!(
        (&listed["dialect"], &listed["workspace"]),
        (&json!("kong"), &json!("my team"))
    );
}

/// An instance over a store, with a client that has two tokens of an administrator: one of them can be refreshed.
fn instance(store: &Arc<FakeStore>) -> (Arc<dyn Filter>, Arc<dyn SharedRecords>) {
    let plugin = OAuth2Server::default();
    let records = plugin.shared_records().expect("it shares");
    records.share(Arc::clone(store) as Arc<dyn SharedStore>);
    let config = json!({"grants": ["client-credentials"], "all_services": true});
    let credential = json!({
        "client_id": "c",
        "client_secret": "s",
        "redirect_uris": ["http://c.test/"],
        "tokens": [
            {"access_token_sha256": name(&hash("lasting"))},
            {"access_token_sha256": name(&hash("written")), "refresh_token_sha256": name(&hash("next"))},
        ],
    });
    let filter = build_with(&plugin, &config, &[("alice", None, credential)]).expect("good");
    (filter, records)
}

/// A call with this `Authorization`.
fn call(authorization: &str) -> Exchange {
    let mut made = exchange();
    prepare(&mut made, "GET /", &[("authorization", authorization)]);
    made
}

#[test]
fn only_what_may_be_a_token_is_looked_for() {
    let store = Arc::new(FakeStore::default());
    store.state().is_away = true;
    let (filter, _) = instance(&store);
    for other in [
        "Basic YTpi",
        "Bearer a.b.c",
        "key",
        "Bearer 0123456789abcdefghijABCDEFGHIJ-",
    ] {
        assert_eq!(word(&filter.on_request(&mut call(other))), "reply 401", "{other}");
    }
    assert_eq!(word(&filter.on_request(&mut call("Bearer lasting"))), "continue");
    assert_eq!(store.state().reads, 0);
    let mut made = call("Bearer 0123456789abcdefghijABCDEFGHIJKL");
    assert_eq!(word(&filter.on_request(&mut made)), "wait");
    let answer = word(&filter.on_request(&mut made));
    assert!(answer.ends_with(" 503"), "{answer}");
    assert_eq!(store.state().reads, 1);
}

/// Until the store has been read for the first time, it is not known what other gateways have refreshed.
#[test]
fn refreshed_tokens_are_not_judged_before_the_store_is_read() {
    let store = Arc::new(FakeStore::default());
    let (filter, records) = instance(&store);
    let refresh = || {
        let mut made = exchange();
        let line =
            "POST /oauth2/token?grant_type=refresh_token&refresh_token=unknown&client_id=c&client_secret=s";
        prepare(&mut made, line, &[]);
        made.request.is_tls = true;
        made
    };
    for mut made in [call("Bearer written"), refresh()] {
        assert_eq!(word(&filter.on_request(&mut made)), "wait");
        let answer = word(&filter.on_request(&mut made));
        assert!(answer.ends_with(" 503"), "{answer}");
    }
    let (mut access, mut unknown) = (call("Bearer written"), refresh());
    for made in [&mut access, &mut unknown] {
        assert_eq!(word(&filter.on_request(made)), "wait");
    }
    records.apply(1, Vec::new());
    assert_eq!(word(&filter.on_request(&mut access)), "continue");
    assert_eq!(word(&filter.on_request(&mut unknown)), "reply 400");
    assert_eq!(word(&filter.on_request(&mut call("Bearer written"))), "continue");
    let owner = RecordOwner {
        area: "native".into(),
        client: "c".into(),
    };
    let refreshed = SharedRecord {
        value: stored(&Record::Refreshed { owner }, 1),
        ends_ms: None,
    };
    records.apply(2, vec![(name(&hash("written")), Some(refreshed))]);
    assert_eq!(word(&filter.on_request(&mut call("Bearer written"))), "reply 401");
}
