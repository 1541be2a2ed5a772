//! Callers that wait for another one's fetch, leave before its end, or are too many.

use super::*;
use crate::proxy_cache::flight::{FlightRole, MAX_WAITING};
use std::sync::Weak;
use std::task::Wake;

struct NoopWaker;

impl Wake for NoopWaker {
    fn wake(self: Arc<Self>) {}
}

/// A zone, and a function that joins a flight in it. A call that joins at `at_ms` waits for 100 ms.
fn seats() -> (Arc<Zone>, impl Fn(u64) -> FlightRole) {
    let zone = Arc::new(Zone::new(1 << 20, None));
    let flying = Arc::clone(&zone);
    (zone, move |at_ms| flying.lead([7; 32], at_ms, 100))
}

fn waits(seat: FlightRole) -> flight::FetchCompleted {
    match seat {
        FlightRole::Wait(landing) => landing,
        FlightRole::FetchLeader(_) => panic!("it leads"),
        FlightRole::Full => panic!("there is no room"),
    }
}

fn leads(seat: FlightRole) -> flight::FetchLeader {
    match seat {
        FlightRole::FetchLeader(lead) => lead,
        FlightRole::Wait(_) => panic!("it waits"),
        FlightRole::Full => panic!("there is no room"),
    }
}

/// A waker that is kept keeps the whole call of its owner.
#[test]
fn a_caller_that_leaves_takes_its_waker_along() {
    let (zone, seat) = seats();
    let lead = leads(seat(0));
    let held: Vec<Weak<NoopWaker>> = (0..10)
        .map(|_| {
            let waker = Arc::new(NoopWaker);
            let held = Arc::downgrade(&waker);
            let waker = Waker::from(waker);
            let mut landing = waits(seat(0));
            let mut context = Context::from_waker(&waker);
            assert!(Pin::new(&mut landing).poll(&mut context).is_pending());
            held
        })
        .collect();
    assert_eq!(zone.waiters(), 0);
    assert!(held.iter().all(|waker| waker.strong_count() == 0));
    drop(lead);
}

#[test]
fn callers_beyond_the_bound_do_not_wait() {
    let (zone, seat) = seats();
    let lead = leads(seat(0));
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| waits(seat(0))).collect();
    assert!(matches!(seat(0), FlightRole::Full));
    assert_eq!(zone.waiters(), MAX_WAITING);
    // One that leaves makes room.
    drop(waiting.pop());
    waiting.push(waits(seat(0)));
    drop(lead);
    let mut context = Context::from_waker(Waker::noop());
    let has_landed = |landing: &mut flight::FetchCompleted| Pin::new(landing).poll(&mut context).is_ready();
    assert!(waiting.iter_mut().all(has_landed));
    drop(waiting);
    drop(leads(seat(0)));
}

/// An upstream that says nothing keeps its caller, and no other.
#[test]
fn a_leader_leads_no_longer_than_others_wait() {
    let (_, seat) = seats();
    let first = leads(seat(0));
    let mut early = waits(seat(100));
    let second = leads(seat(101));
    let mut late = waits(seat(102));
    let mut context = Context::from_waker(Waker::noop());
    let mut is_over = |landing: &mut flight::FetchCompleted| Pin::new(landing).poll(&mut context).is_ready();
    assert!(!is_over(&mut early) && !is_over(&mut late));
    drop(first);
    // The second one leads still.
    assert!(is_over(&mut early) && !is_over(&mut late));
    let mut third = waits(seat(103));
    drop(second);
    assert!(is_over(&mut late) && is_over(&mut third));
    drop(leads(seat(104)));
}

#[test]
fn a_call_without_room_to_wait_goes_to_the_service() {
    let cache = cache(&json!({}));
    let start = || {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /slow", &[]);
        exchange
    };
    let mut first = start();
    assert_eq!(word(&cache.on_request(&mut first)), "continue");
    let waiting: Vec<_> = (0..MAX_WAITING).map(|_| wait(&cache, &mut start())).collect();
    let mut next = start();
    assert_eq!(word(&cache.on_request(&mut next)), "continue");
    assert_eq!(answer(&cache, &mut next, 200, &[], "1"), "200 miss 1");
    drop(waiting);
    assert_eq!(call(&cache, "GET /slow", &[], &[], "2"), "200 hit 1");
}
