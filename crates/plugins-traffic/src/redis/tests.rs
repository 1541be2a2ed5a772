//! What every limiter does with a Redis: its options, what it asks, and what it makes of answers. The scripts
//! themselves are tested against a real server.

use super::*;
use crate::rate_limit::RateLimit;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use weir_plugin::RedisPublisher;
use weir_plugins_testkit::{NOW_MS, build, exchange, lines, prepare, refused_at, word};

/// Keeps what is posted.
#[derive(Default)]
struct RecordingPublisher(RefCell<Vec<RedisCall>>);

impl RedisPublisher for RecordingPublisher {
    fn fire_and_forget(&self, call: RedisCall) {
        self.0.borrow_mut().push(call);
    }
}

fn words(call: &RedisCall) -> Vec<String> {
    let parts = call.parts();
    parts
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

fn redis_call(outcome: &Outcome) -> &RedisCall {
    match outcome {
        Outcome::Redis(work) => match &**work {
            RedisCommand::Run(call) => call,
            RedisCommand::Settle(..) => panic!("nothing is asked"),
        },
        other => panic!("nothing is asked: {other:?}"),
    }
}

fn tell(exchange: &mut Exchange, numbers: Option<&[i64]>) -> Rc<RecordingPublisher> {
    let outlet = Rc::new(RecordingPublisher::default());
    exchange.redis = Some(numbers.map(|numbers| RedisResponse {
        texts: Vec::new(),
        numbers: numbers.to_vec(),
        outlet: Rc::clone(&outlet) as Rc<dyn RedisPublisher>,
    }));
    outlet
}

fn store(more: &Value) -> Value {
    let mut store = json!({"redis": {"host": "h"}});
    for (name, value) in more.as_object().into_iter().flatten() {
        store[name] = value.clone();
    }
    store
}

#[test]
fn options_are_checked() {
    let limits = json!([{"count": 1, "per": "second"}]);
    let of = |redis: Value| json!({"limits": limits, "store": {"redis": redis}});
    for (config, places) in [
        (of(json!({"host": "h"})), &[][..]),
        (of(json!({"cluster": ["a:1", "[::1]:2"]})), &[]),
        (
            of(json!({"sentinel": {"master": "m", "sentinels": ["a:1"]}})),
            &[],
        ),
        (of(json!({})), &["store.redis"]),
        (of(json!({"host": "h", "cluster": ["a:1"]})), &["store.redis"]),
        (of(json!({"host": "", "port": 0})), &["store.redis.host"]),
        (of(json!({"cluster": ["a"]})), &["store.redis.cluster"]),
        (
            of(json!({"cluster": ["a:1"], "database": 1})),
            &["store.redis.database"],
        ),
        (
            of(json!({"sentinel": {"master": "m", "sentinels": []}})),
            &["store.redis.sentinel.sentinels"],
        ),
        (
            of(json!({"host": "h", "timeout_ms": 0, "connect_timeout_ms": 60_001, "prefix": "a{b"})),
            &[
                "store.redis.connect_timeout_ms",
                "store.redis.timeout_ms",
                "store.redis.prefix",
            ],
        ),
        (of(json!({"host": "h", "hots": 1})), &["store.redis.hots"]),
        (
            json!({"limits": limits, "store": {"redis": {"host": "h"}, "sync_interval_seconds": 0}}),
            &["store.sync_interval_seconds"],
        ),
    ] {
        assert_eq!(refused_at(&RateLimit::default(), &config), places, "{config}");
    }
}

#[test]
fn passwords_do_not_show() {
    let redis: Redis = serde_json::from_value(json!({"host": "h", "password": "geheim"})).expect("valid");
    assert!(!format!("{redis:?}").contains("geheim"));
    let shared = Store::new(redis)
        .compile(&mut ConfigErrors::default())
        .expect("valid");
    assert!(!format!("{shared:?}").contains("geheim"));
}

#[test]
fn keys_of_a_caller_have_one_hash_tag() {
    let config = json!({
        "limits": [{"count": 5, "per": "second"}, {"count": 9, "per": {"seconds": 60}},
                   {"count": 7, "per": {"sliding-seconds": 10}}],
        "scope": "a{b", "store": store(&json!({})),
    });
    let filter = build(&RateLimit::default(), &config).expect("valid");
    let outcome = filter.on_request(&mut exchange());
    let call = redis_call(&outcome);
    let words = words(call);
    // What would end the tag too soon is hidden in a digest.
    assert!(words[0].starts_with("weir:{#"), "{words:?}");
    let tags: Vec<&str> = words[..6]
        .iter()
        .filter_map(|key| key.split_once('}').map(|(tag, _)| tag))
        .collect();
    assert!(
        tags.iter().all(|tag| *tag == tags[0]) && tags.len() == 6,
        "{words:?}"
    );
    assert!(tags[0].ends_with(":a:10.0.0.1"), "{words:?}");
    let (window, second) = (NOW_MS / 10_000 + 1, NOW_MS / 1_000 + 1);
    let ends: Vec<&str> = words[..6]
        .iter()
        .filter_map(|key| key.split_once("}:0:").map(|(_, end)| end))
        .collect();
    assert_eq!(
        ends,
        [
            format!("s{second}"),
            format!("s{second}"),
            "f60000".to_owned(),
            "f60000".to_owned(),
            format!("w10000:{window}"),
            format!("w10000:{}", window - 1),
        ]
    );
    let forgotten = NOW_MS + 1_000 + 5_000;
    assert_eq!(words[6..10], ["5", "c", &forgotten.to_string(), "0"]);
    assert_eq!(words[10..14], ["9", "f", "60000", "0"]);
    assert_eq!(
        words[14..18],
        ["7", "s", &(NOW_MS + 20_000 + 5_000).to_string(), "1"]
    );
}

/// The script's answer, the outcome of the call, and the headers about it.
#[test]
fn answers_decide() {
    let config = json!({
        "limits": [{"count": 5, "per": "hour"}, {"count": 9, "per": {"seconds": 60}}],
        "store": store(&json!({})),
    });
    for (numbers, expected, headers) in [
        (
            &[0, 1, 0, -1, 3, 0, 20_000][..],
            "continue",
            &[
                "RateLimit-Limit: 5",
                "RateLimit-Remaining: 4",
                "RateLimit-Reset: 1740",
            ][..],
        ),
        (
            &[2, 1, 0, -1, 9, 0, 20_000],
            "rate_limited 429",
            &[
                "RateLimit-Limit: 9",
                "RateLimit-Remaining: 0",
                "RateLimit-Reset: 20",
                "Retry-After: 20",
            ],
        ),
        // No answer of the script: the call is counted here.
        (
            &[0],
            "continue",
            &[
                "RateLimit-Limit: 5",
                "RateLimit-Remaining: 4",
                "RateLimit-Reset: 1740",
            ],
        ),
    ] {
        let filter = build(&RateLimit::default(), &config).expect("valid");
        let mut exchange = exchange();
        assert_eq!(word(&filter.on_request(&mut exchange)), "redis");
        tell(&mut exchange, Some(numbers));
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{numbers:?}");
        assert_eq!(lines(&exchange.response_headers), headers, "{numbers:?}");
    }
}

#[test]
fn limits_of_their_own_are_asked_one_after_the_other() {
    let by = |header: &str| json!({"template": format!("$http_{header}")});
    let limit = |header: &str| json!({"count": 1, "per": "hour", "by": by(header)});
    let config = json!({"limits": [limit("a"), limit("b"), limit("c")], "store": store(&json!({}))});
    let filter = build(&RateLimit::default(), &config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", &[("A", "1"), ("C", "{2}")]);
    let first = filter.on_request(&mut exchange);
    assert!(words(redis_call(&first))[0].contains(":v:1}:1:"), "{first:?}");
    tell(&mut exchange, Some(&[0, 1, 0, -1]));
    let second = filter.on_request(&mut exchange);
    assert!(words(redis_call(&second))[0].contains(":v:#"), "{second:?}");
    tell(&mut exchange, Some(&[1, 1, 0, -1]));
    assert_eq!(word(&filter.on_request(&mut exchange)), "rate_limited 429");
}

#[test]
fn a_redis_that_is_away_is_done_without() {
    for (on_unavailable, expected) in [
        ("local", &["continue", "rate_limited 429"]),
        ("pass", &["continue", "continue"]),
        ("refuse", &["plugin_failed 500", "plugin_failed 500"]),
    ] {
        let store = store(&json!({"on_unavailable": on_unavailable, "unavailable_message": "gone"}));
        let config = json!({"limits": [{"count": 1, "per": "hour"}], "store": store});
        let filter = build(&RateLimit::default(), &config).expect("valid");
        for expected in expected {
            let mut exchange = exchange();
            assert_eq!(word(&filter.on_request(&mut exchange)), "redis");
            tell(&mut exchange, None);
            let outcome = filter.on_request(&mut exchange);
            assert_eq!(word(&outcome), *expected, "{on_unavailable}");
            if let (Outcome::Refuse(refusal), "refuse") = (&outcome, on_unavailable) {
                assert_eq!(refusal.message.as_deref(), Some("gone"));
            }
        }
    }
}

/// Each step: a call with its outcome, or a settlement with what is sent and what the Redis answers.
#[test]
fn counts_are_settled() {
    let config = json!({
        "limits": [{"count": 5, "per": "hour"}],
        "scope": "s",
        "store": store(&json!({"sync_interval_seconds": 0.5})),
    });
    let filter = build(&RateLimit::default(), &config).expect("valid");
    let first = filter.on_request(&mut exchange());
    let Outcome::Redis(work) = first else {
        panic!("the engine learns that there are counts to synchronize: {first:?}");
    };
    let RedisCommand::Settle(ledger, None) = *work else {
        panic!("the call goes on");
    };
    assert_eq!(ledger.delay(), Duration::from_millis(500));
    // The engine knows now.
    assert_eq!(word(&filter.on_request(&mut exchange())), "continue");
    let settle = |expected: &str, answer: Option<&[i64]>| {
        let due = ledger.due(NOW_MS);
        assert_eq!(due.len(), 1);
        let words = words(&due[0].1);
        assert!(words[0].starts_with("weir:{s:a:10.0.0.1}:0:h"), "{words:?}");
        assert_eq!(words[1], expected);
        ledger.complete(due[0].0, answer, NOW_MS);
    };
    // Another gateway has counted 2.
    settle("2", Some(&[4, -1]));
    assert_eq!(word(&filter.on_request(&mut exchange())), "continue");
    assert_eq!(word(&filter.on_request(&mut exchange())), "rate_limited 429");
    // Without an answer it counts with the next one.
    settle("1", None);
    assert!(ledger.finish());
    settle("1", Some(&[5, -1]));
    assert!(!ledger.finish());
    assert!(ledger.due(NOW_MS).is_empty());
    assert_eq!(word(&filter.on_request(&mut exchange())), "rate_limited 429");
    assert!(!ledger.finish(), "what is refused is not counted");
}
