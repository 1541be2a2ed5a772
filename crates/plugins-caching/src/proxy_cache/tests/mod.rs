//! `proxy-cache` as callers see it.

mod bodies;
mod disk;
mod flights;
mod keys;
mod standard;

use super::*;
use serde_json::json;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use weir_model::DialectName;
use weir_plugin::{Exchange, Outcome, RedisCommand, Suspend};
use weir_plugins_testkit::*;

type Cache = Arc<dyn Filter>;

fn cache(config: &Value) -> Cache {
    build(&ProxyCache::default(), config).expect("valid")
}

/// How a call is answered: `STATUS WORD BODY`, or what the filter wants. The service would answer with `body`.
fn call(
    cache: &Cache,
    line: &str,
    request: &[(&str, &str)],
    response: &[(&str, &str)],
    body: &str,
) -> String {
    let mut exchange = exchange();
    prepare(&mut exchange, line, request);
    match cache.on_request(&mut exchange) {
        Outcome::Continue => answer(cache, &mut exchange, 200, response, body),
        Outcome::Reply(reply) => {
            let word = exchange
                .response_headers
                .get(b"x-cache-status")
                .unwrap_or_default();
            let body = reply
                .shared
                .as_ref()
                .map_or(&reply.body[..], |shared| shared.part());
            let [word, body] = [word, body].map(String::from_utf8_lossy);
            format!("{} {word} {body}", reply.status)
        }
        other => word(&other),
    }
}

/// The response work on what the service answers.
fn answer(
    cache: &Cache,
    exchange: &mut Exchange,
    status: u16,
    response: &[(&str, &str)],
    body: &str,
) -> String {
    exchange.response.status = status;
    for (name, value) in response {
        exchange
            .response
            .headers
            .append(name.as_bytes(), value.as_bytes());
    }
    cache.on_response(exchange);
    let whole = exchange.response.filter_whole(body.as_bytes().to_vec());
    assert_eq!(whole, body.as_bytes());
    let word = exchange
        .response
        .headers
        .get(b"x-cache-status")
        .unwrap_or_default();
    format!("{status} {} {body}", String::from_utf8_lossy(word))
}

#[test]
fn responses_are_kept() {
    let config = json!({"bypass": ["$arg_bypass"], "no_store": ["$arg_no"], "purge": true});
    let cache = cache(&config);
    let get = |line: &str, body: &str| call(&cache, line, &[], &[], body);
    assert_eq!(get("GET /a", "1"), "200 miss 1");
    assert_eq!(get("GET /a", "2"), "200 hit 1");
    assert_eq!(get("HEAD /a", "2"), "200 hit 1");
    assert_eq!(get("GET /a?x", "2"), "200 miss 2");
    assert_eq!(get("POST /p", "3"), "200 bypass 3");
    assert_eq!(get("GET /a?bypass=1", "4"), "200 bypass 4");
    assert_eq!(get("GET /n?no=1", "5"), "200 miss 5");
    assert_eq!(get("GET /n?no=1", "6"), "200 miss 6");
    assert_eq!(get("HEAD /h", ""), "200 miss ");
    assert_eq!(get("GET /h", "7"), "200 miss 7");
    assert_eq!(get("PURGE /a", ""), "200  ");
    assert_eq!(get("PURGE /a", ""), "answered 404");
    assert_eq!(get("GET /a", "8"), "200 miss 8");
}

/// The defect: headers about limits of the call that filled the cache came with those of the call that hit it.
#[test]
fn what_filters_add_for_a_call_is_not_kept() {
    let cache = cache(&json!({}));
    let begin = |left: &[u8]| {
        let mut exchange = exchange();
        exchange.response_headers.append(b"X-Left", left);
        exchange.response_headers.append(b"Vary", b"Origin");
        let outcome = cache.on_request(&mut exchange);
        (exchange, outcome)
    };
    let (mut first, outcome) = begin(b"2");
    assert_eq!(word(&outcome), "continue");
    first.response.status = 200;
    // One that the service sends, too, is kept.
    first.response.headers.append(b"Vary", b"Accept");
    first.response.headers.append(b"X-Own", b"1");
    first.merge_response_headers();
    cache.on_response(&mut first);
    assert_eq!(first.response.filter_whole(b"body".to_vec()), b"body");
    let (_, outcome) = begin(b"1");
    let Outcome::Reply(reply) = outcome else {
        panic!("{}", word(&outcome));
    };
    let shared = reply.shared.expect("from the cache");
    assert_eq!(lines(&shared.headers), ["X-Own: 1", "Vary: Accept"]);
}

#[test]
fn some_responses_are_not_kept() {
    let cache =
        cache(&json!({"content_types": ["text/plain", "image/*"], "status_values": {"not_stored": "no"}}));
    let plain = ("Content-Type", "text/plain");
    for (index, (response, kept)) in [
        (vec![plain], true),
        (vec![("Content-Type", "IMAGE/png")], true),
        (vec![("Content-Type", "text/plain; charset=x")], false),
        (vec![], false),
        (vec![plain, ("Cache-Control", "private")], false),
        (vec![plain, ("Cache-Control", "max-age=0")], true),
        (vec![plain, ("Set-Cookie", "a=b")], false),
        (vec![plain, ("Vary", "*")], false),
    ]
    .into_iter()
    .enumerate()
    {
        let line = format!("GET /{index}");
        let first = if kept { "200 miss 1" } else { "200 no 1" };
        let second = if kept { "200 hit 1" } else { "200 no 2" };
        assert_eq!(call(&cache, &line, &[], &response, "1"), first, "{response:?}");
        assert_eq!(call(&cache, &line, &[], &response, "2"), second, "{response:?}");
    }
}

#[test]
fn what_responses_say_of_their_time_counts_where_wanted() {
    let cache = cache(&json!({"obey_lifetime": true}));
    for (index, (response, kept)) in [
        (vec![], true),
        (vec![("Cache-Control", "max-age=60")], true),
        (vec![("Cache-Control", "max-age=0")], false),
        (vec![("Expires", "Thu, 01 Jan 1970 00:00:01 GMT")], false),
        (vec![("Cache-Control", "max-age=0, s-maxage=9")], true),
    ]
    .into_iter()
    .enumerate()
    {
        // What callers say does not count.
        let asked = [("Cache-Control", "no-cache")];
        let line = format!("GET /{index}");
        call(&cache, &line, &asked, &response, "1");
        let second = if kept { "200 hit 1" } else { "200 miss 2" };
        assert_eq!(
            call(&cache, &line, &asked, &response, "2"),
            second,
            "{response:?}"
        );
    }
}

#[test]
fn cache_control_counts_where_wanted() {
    let cache = cache(&json!({"cache_control": true}));
    let aged = [("Cache-Control", "max-age=60")];
    let ask = |control: &str, body: &str| call(&cache, "GET /a", &[("Cache-Control", control)], &aged, body);
    assert_eq!(ask("only-if-cached", "0"), "answered 504");
    assert_eq!(ask("", "1"), "200 miss 1");
    assert_eq!(ask("no-store", "2"), "200 bypass 2");
    assert_eq!(ask("only-if-cached", "3"), "200 hit 1");
    assert_eq!(ask("min-fresh=61", "4"), "200 refresh 4");
    assert_eq!(ask("max-age=0", "5"), "200 hit 4");
    assert_eq!(call(&cache, "GET /none", &[], &[], "1"), "200 miss 1");
    assert_eq!(call(&cache, "GET /none", &[], &[], "2"), "200 miss 2");
}

#[test]
fn clients_that_have_it_get_not_modified() {
    let cache = cache(&json!({}));
    let tagged = [("ETag", "\"e\""), ("Content-Type", "text/plain")];
    assert_eq!(call(&cache, "GET /t", &[], &tagged, "1"), "200 miss 1");
    assert_eq!(
        call(&cache, "GET /t", &[("If-None-Match", "\"e\"")], &tagged, "2"),
        "304 hit "
    );
    assert_eq!(
        call(&cache, "GET /t", &[("If-None-Match", "\"f\"")], &tagged, "2"),
        "200 hit 1"
    );
}

fn wait(cache: &Cache, exchange: &mut Exchange) -> Pin<Box<dyn Future<Output = ()>>> {
    match cache.on_request(exchange) {
        Outcome::Suspend(Suspend {
            event: Some(event), ..
        }) => event,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_fetches_for_many() {
    let cache = cache(&json!({}));
    let mut context = Context::from_waker(Waker::noop());
    let start = || {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /slow", &[]);
        exchange
    };
    let (mut first, mut second, mut third) = (start(), start(), start());
    assert_eq!(word(&cache.on_request(&mut first)), "continue");
    let mut waits = [wait(&cache, &mut second), wait(&cache, &mut third)];
    assert!(
        waits
            .iter_mut()
            .all(|wait| wait.as_mut().poll(&mut context).is_pending())
    );
    assert_eq!(answer(&cache, &mut first, 200, &[], "1"), "200 miss 1");
    assert!(
        waits
            .iter_mut()
            .all(|wait| wait.as_mut().poll(&mut context) == Poll::Ready(()))
    );
    for waiting in [&mut second, &mut third] {
        assert_eq!(word(&cache.on_request(waiting)), "reply 200");
    }
}

#[test]
fn cache_misses_do_not_wait_for_what_is_not_kept() {
    let cache = cache(&json!({}));
    let mut context = Context::from_waker(Waker::noop());
    let start = || {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /never", &[]);
        exchange
    };
    let (mut first, mut second, mut third) = (start(), start(), start());
    assert_eq!(word(&cache.on_request(&mut first)), "continue");
    let mut landing = wait(&cache, &mut second);
    // The first breaks off; who waited fetches itself.
    drop(first);
    assert!(landing.as_mut().poll(&mut context).is_ready());
    assert_eq!(word(&cache.on_request(&mut second)), "continue");
    assert_eq!(answer(&cache, &mut second, 500, &[], "no"), "500 miss no");
    assert_eq!(word(&cache.on_request(&mut third)), "continue");
    let mut fourth = start();
    assert_eq!(word(&cache.on_request(&mut fourth)), "continue");
}

#[test]
fn memory_is_bounded() {
    let zone = Arc::new(Zone::new(1 << 20, None));
    let request = exchange().request.headers;
    let entry = |size: usize| entry::CacheEntry {
        status: 200,
        headers: Arc::default(),
        body: vec![0; size].into(),
        times: entry::Times {
            stored: NOW_MS,
            fresh: 1000,
            keep: 1000,
            ..entry::Times::default()
        },
    };
    for number in 0..2000_u32 {
        let mut digest = key::Digest::new();
        digest.part(&number.to_le_bytes());
        let key = digest.finish();
        zone.store(&key, &[], &request, entry(3000));
        assert!(zone.bytes() <= 1 << 20);
        let found = zone.look(&key, &request, NOW_MS);
        assert!(matches!(
            found,
            zone::ZoneLookup::Hit(_, entry::Freshness::Fresh, _)
        ));
        let later = zone.look(&key, &request, NOW_MS + 1000);
        assert!(matches!(
            later,
            zone::ZoneLookup::Hit(_, entry::Freshness::Over, _)
        ));
    }
    assert!(zone.bytes() > 1 << 19);
}

#[test]
fn graphql_is_kept_by_query() {
    let cache = cache(&json!({"graphql": true, "methods": ["GET", "POST"]}));
    let ask = |query: &str, body: &str| {
        let mut exchange = exchange();
        prepare(
            &mut exchange,
            "POST /g",
            &[("Content-Type", "application/graphql")],
        );
        exchange.request.body = Some(query.as_bytes().to_vec());
        match cache.on_request(&mut exchange) {
            Outcome::Continue => answer(&cache, &mut exchange, 200, &[], body),
            other => word(&other),
        }
    };
    assert_eq!(ask("{ a }", "1"), "200 miss 1");
    assert_eq!(ask("{ a }", "2"), "reply 200");
    assert_eq!(ask("{ b }", "3"), "200 miss 3");
    assert_eq!(ask("mutation { b }", "4"), "200 bypass 4");
    assert_eq!(ask("nothing", "5"), "reply 400");
}

#[test]
fn configurations_are_checked() {
    assert!(build(&ProxyCache::default(), &example(include_str!("../mod.rs"))).is_ok());
    for (config, places) in [
        (
            json!({"status_header": "a b", "headers": ["x y"]}),
            vec!["status_header", "headers"],
        ),
        (
            json!({"disk": {"path": "", "size": 1}}),
            vec!["disk.path", "disk.size"],
        ),
        (
            json!({"zone_bytes": 1, "key": [], "ttl_seconds": 0}),
            vec!["zone_bytes", "key", "ttl_seconds"],
        ),
    ] {
        assert_eq!(refused_at(&ProxyCache::default(), &config), places, "{config}");
    }
}

/// The defects: braces in a zone's name broke keys in a cluster, and zones of two dialects were one.
#[test]
fn zones_in_a_redis_have_plain_names() {
    let fault = |zone: &str, redis: bool| {
        let mut config = json!({"zone": zone});
        if redis {
            config["redis"] = json!({"host": "127.0.0.1"});
        }
        let error = build(&ProxyCache::default(), &config).err()?;
        error.first().map(|fault| fault.message.clone())
    };
    let long = "z".repeat(65);
    for zone in ["{a}", "a}", "a b", "é", &long] {
        let message = fault(zone, true);
        let wanted = "expected at most 64 visible characters without braces";
        assert_eq!(message.as_deref(), Some(wanted), "{zone}");
        assert_eq!(fault(zone, false), None, "{zone}");
    }
    assert_eq!(fault("a/b:c", true), None);
}

#[test]
fn dialects_have_keys_of_their_own_in_a_redis() {
    let keys = ["native", "kong"].map(|dialect| {
        let config = json!({"redis": {"host": "127.0.0.1"}});
        let cache = build_in(DialectName::new(dialect), &ProxyCache::default(), &config, &[]).expect("valid");
        let Outcome::Redis(command) = cache.on_request(&mut exchange()) else {
            panic!("the Redis is asked first");
        };
        let RedisCommand::Run(call) = *command else {
            panic!("a script is run");
        };
        let key = call.parts().next().map(<[u8]>::to_vec).expect("a key");
        String::from_utf8(key).expect("text")
    });
    assert!(keys[0].starts_with("weir:cache:native/default:{"), "{}", keys[0]);
    assert!(keys[1].starts_with("weir:cache:kong/default:{"), "{}", keys[1]);
}
