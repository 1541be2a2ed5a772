//! `request-id` as its users see it.

use super::*;
use regex::Regex;
use serde_json::json;
use weir_plugins_testkit::*;

#[test]
fn ids_have_their_forms() {
    let plugin = RequestId::default();
    for (generator, form) in [
        (
            json!("uuid"),
            "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
        ),
        (
            json!("uuid-v7"),
            "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
        ),
        (json!("uuid#counter"), "^[0-9a-f-]{36}#\\d+$"),
        (json!("tracker"), "^10.0.0.2-8000-\\d+-4711-\\d+-1795188660.000$"),
        (json!("nanoid"), "^[A-Za-z0-9_-]{21}$"),
        (
            json!({"random": {"characters": "abcdef", "length": 8}}),
            "^[a-f]{8}$",
        ),
        (json!("ksuid"), "^[0-9A-Za-z]{27}$"),
    ] {
        let config = json!({"generator": generator, "header": "X-Id"});
        let filter = build(&plugin, &config).expect("valid");
        let mut exchange = exchange();
        let mut ids: Vec<String> = (0..50)
            .map(|_| {
                prepare(&mut exchange, "GET /", &[]);
                assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
                let id = exchange.request.headers.get(b"x-id").expect("an id");
                String::from_utf8(id.to_vec()).expect("text")
            })
            .collect();
        let form = Regex::new(form).expect("valid");
        assert!(ids.iter().all(|id| form.is_match(id)), "{generator}: {}", ids[0]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 50, "{generator}");
    }
}

#[test]
fn ksuids_begin_with_the_time() {
    // The largest ksuid of a second and the smallest of the next one are neighbours in their order.
    fn second(offset: u64) -> String {
        let clock: weir_plugin::Clock = match offset {
            0 => || NOW_MS,
            _ => || NOW_MS + 1_000,
        };
        let mut exchange = Exchange::new(clock, 3);
        let plugin = RequestId::default();
        let filter = build(&plugin, &json!({"generator": "ksuid"})).expect("valid");
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        let id = exchange.request.headers.get(b"x-request-id").expect("an id");
        String::from_utf8_lossy(id).into_owned()
    }
    assert!(second(0) < second(1));
}

#[test]
fn ids_are_kept_and_echoed_as_configured() {
    let plugin = RequestId::default();
    let mine = [("X-Request-Id", "mine")];
    let theirs = [("x-request-id", "theirs")];
    for (config, headers, upstream, on_request, on_response) in [
        (json!({}), &mine[..], &theirs[..], Some("mine"), Some("mine")),
        (
            json!({"echo": "if-absent"}),
            &mine,
            &theirs,
            Some("mine"),
            Some("theirs"),
        ),
        (
            json!({"echo": "if-absent"}),
            &mine,
            &[],
            Some("mine"),
            Some("mine"),
        ),
        (json!({"echo": "no"}), &mine, &[], Some("mine"), None),
        (
            json!({"generator": {"random": {"characters": "a", "length": 3}}}),
            &[("X-Request-Id", "")],
            &[],
            Some("aaa"),
            Some("aaa"),
        ),
        (
            json!({"keep_client_id": false, "generator": {"random": {"characters": "a", "length": 3}}}),
            &mine,
            &theirs,
            Some("aaa"),
            Some("aaa"),
        ),
    ] {
        let filter = build(&plugin, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", headers);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(
            exchange.request.headers.get(b"x-request-id"),
            on_request.map(str::as_bytes),
            "{config}"
        );
        for (name, value) in upstream {
            exchange
                .response
                .headers
                .append(name.as_bytes(), value.as_bytes());
        }
        if filter.phases().response {
            filter.on_response(&mut exchange);
        }
        let ids: Vec<_> = exchange.response.headers.get_all(b"X-Request-Id").collect();
        assert_eq!(
            ids,
            on_response.map(str::as_bytes).into_iter().collect::<Vec<_>>(),
            "{config}"
        );
    }
}

#[test]
fn answers_of_earlier_filters_get_an_id_too() {
    let plugin = RequestId::default();
    let filter = build(&plugin, &json!({})).expect("valid");
    let mut exchange = exchange();
    filter.on_response(&mut exchange);
    assert!(exchange.response.headers.contains(b"x-request-id"));
}

#[test]
fn configurations_are_checked() {
    let plugin = RequestId::default();
    assert!(build(&plugin, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({"header": "a b"}), vec!["header"]),
        (
            json!({"generator": {"random": {"characters": "", "length": 3}}}),
            vec!["generator"],
        ),
        (
            json!({"generator": {"random": {"characters": "ä", "length": 3}}}),
            vec!["generator"],
        ),
        (
            json!({"generator": {"random": {"characters": "a", "length": 0}}}),
            vec!["generator"],
        ),
        (json!({"algorithm": "uuid"}), vec!["algorithm"]),
    ] {
        assert_eq!(refused_at(&plugin, &config), places, "{config}");
    }
}
