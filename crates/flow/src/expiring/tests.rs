//! The map as its callers see it.

use super::*;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

const HOUR: Lifetime = Lifetime::fresh_and_stale(3_600_000, 60_000);

impl Lifetime {
    const fn fresh_and_stale(fresh_ms: u64, stale_ms: u64) -> Self {
        Self { fresh_ms, stale_ms }
    }
}

fn word(found: &Lookup<u32>) -> String {
    match found {
        Lookup::Hit(value) => format!("hit {value}"),
        Lookup::Stale(value, _) => format!("stale {value}"),
        Lookup::Miss(_) => "miss".into(),
        Lookup::Pending(_) => "pending".into(),
        Lookup::Failed => "failed".into(),
    }
}

fn fetch(map: &Arc<ExpiringMap<u32>>, key: &[u8], now_ms: u64) -> Fetch<u32> {
    match map.lookup(key, now_ms) {
        Lookup::Miss(fetch) | Lookup::Stale(_, fetch) => fetch,
        other => panic!("expected a ticket, found {}", word(&other)),
    }
}

#[test]
fn values_are_fresh_then_stale_then_gone() {
    let map = ExpiringMap::new(1 << 20);
    fetch(&map, b"k", 0).store(7, 4, HOUR, 0);
    for (now_ms, expected) in [
        (0, "hit 7"),
        (3_599_999, "hit 7"),
        (3_600_000, "stale 7"),
        (3_659_999, "stale 7"),
        (3_660_000, "miss"),
    ] {
        assert_eq!(word(&map.lookup(b"k", now_ms)), expected, "{now_ms}");
    }
    assert_eq!(map.get(b"k", 3_600_001), Some(7));
    assert_eq!(map.get(b"k", 3_660_000), None);
}

#[test]
fn one_caller_fetches_and_all_others_wait() {
    let map = ExpiringMap::new(1 << 20);
    let ticket = fetch(&map, b"k", 0);
    let waiting: Vec<_> = (0..99).map(|_| map.lookup(b"k", 0)).collect();
    assert!(waiting.iter().all(|it| word(it) == "pending"));
    assert_eq!(word(&map.lookup(b"other", 0)), "miss");
    ticket.store(7, 4, HOUR, 1);
    assert_eq!(word(&map.lookup(b"k", 2)), "hit 7");
    // While one fetches a newer value, all others use the stale one.
    let found = map.lookup(b"k", 3_600_001);
    assert_eq!(word(&found), "stale 7");
    assert_eq!(word(&map.lookup(b"k", 3_600_001)), "hit 7");
}

struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn waits_end_with_the_fetch_however_that_ends() {
    let map = ExpiringMap::new(1 << 20);
    for how in ["store", "fail", "drop"] {
        let ticket = fetch(&map, how.as_bytes(), 0);
        let Lookup::Pending(pending) = map.lookup(how.as_bytes(), 0) else {
            panic!("pending");
        };
        let given_up = map.lookup(how.as_bytes(), 0);
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut pending = pin!(pending);
        for _ in 0..3 {
            assert!(pending.as_mut().poll(&mut context).is_pending());
        }
        drop(given_up);
        match how {
            "store" => ticket.store(1, 4, HOUR, 0),
            "fail" => ticket.fail(500, 0),
            _ => drop(ticket),
        }
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "{how}");
        assert_eq!(pending.as_mut().poll(&mut context), Poll::Ready(()));
    }
    assert_eq!(word(&map.lookup(b"store", 1)), "hit 1");
    assert_eq!(word(&map.lookup(b"fail", 499)), "failed");
    assert_eq!(word(&map.lookup(b"fail", 500)), "miss");
    assert_eq!(word(&map.lookup(b"drop", 1)), "miss");
}

#[test]
fn a_failed_fetch_leaves_the_value_and_is_not_repeated_at_once() {
    let map = ExpiringMap::new(1 << 20);
    fetch(&map, b"k", 0).store(7, 4, HOUR, 0);
    fetch(&map, b"k", 3_600_000).fail(10_000, 3_600_000);
    assert_eq!(word(&map.lookup(b"k", 3_600_001)), "hit 7");
    assert_eq!(word(&map.lookup(b"k", 3_610_000)), "stale 7");
}

#[test]
fn what_misses_something_causes_one_fetch_an_interval() {
    let map = ExpiringMap::new(1 << 20);
    fetch(&map, b"keys", 1_000_000).store(1, 4, HOUR, 1_000_000);
    let mut fetches = 0;
    for call in 0..1_000_u64 {
        let now_ms = 1_000_001 + call * 60;
        if let Lookup::Miss(ticket) = map.lookup_since(b"keys", now_ms - 30_000, now_ms) {
            ticket.store(1, 4, HOUR, now_ms);
            fetches += 1;
        }
    }
    // 1,000 calls in 60 seconds.
    assert_eq!(fetches, 1);
    // Calls that miss nothing go on with the value.
    let ticket = map.lookup_since(b"keys", 2_000_000, 2_000_000);
    assert_eq!(word(&ticket), "miss");
    assert_eq!(word(&map.lookup(b"keys", 2_000_000)), "hit 1");
}

#[test]
fn many_keys_take_no_more_than_their_share() {
    let most = 1 << 20;
    let map = ExpiringMap::new(most);
    map.insert(b"in use", 9, 100, HOUR, 0);
    for number in 0..200_000_u32 {
        map.insert(&number.to_be_bytes(), number, 100, HOUR, 1);
        if number % 50 == 0 {
            assert!(map.bytes() <= most);
            assert_eq!(map.get(b"in use", 2), Some(9), "{number}");
        }
    }
    assert!(map.evictions().load(Ordering::Relaxed) > 190_000);
    // What is larger than a share of the map is not kept.
    map.insert(b"huge", 1, most, HOUR, 1);
    assert_eq!(map.get(b"huge", 1), None);
    // A value takes the place of its predecessor.
    let before = map.bytes();
    for _ in 0..100 {
        map.insert(b"in use", 8, 100, HOUR, 3);
    }
    assert_eq!((map.bytes(), map.get(b"in use", 3)), (before, Some(8)));
    map.remove(b"in use");
    assert_eq!(map.get(b"in use", 3), None);
}

#[test]
fn fetches_of_several_threads_are_one() {
    let map = ExpiringMap::<u32>::new(1 << 20);
    let fetches = AtomicU64::new(0);
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                match map.lookup(b"k", 0) {
                    Lookup::Miss(ticket) => {
                        fetches.fetch_add(1, Ordering::Relaxed);
                        ticket.store(1, 4, HOUR, 0);
                    }
                    found => assert!(matches!(found, Lookup::Pending(_) | Lookup::Hit(1))),
                }
            });
        }
    });
    assert_eq!(fetches.load(Ordering::Relaxed), 1);
}
