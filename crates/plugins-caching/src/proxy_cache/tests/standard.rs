//! What RFC 9110 and 9111 ask of a cache: times, validators, parts, changes.

use super::*;
use std::cell::Cell;
use weir_plugin::Headers;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(NOW_MS) };
}

fn now() -> u64 {
    NOW.get()
}

/// One call of a story: when it comes, what it asks, what the service would answer, and what the caller gets.
struct Step<'s> {
    at_s: u64,
    line: &'s str,
    request: &'s [(&'s str, &'s str)],
    /// Status, headers and body.
    service: (u16, &'s [(&'s str, &'s str)], &'s str),
    expected: &'s str,
}

/// The headers that the service gets in addition to the request, and the caller's response: `STATUS WORD BODY`.
fn tell(cache: &Cache, step: &Step<'_>) -> String {
    NOW.set(NOW_MS + step.at_s * 1000);
    let mut exchange = Exchange::new(now, 7);
    prepare(&mut exchange, step.line, step.request);
    let (status, headers, body) = step.service;
    match cache.on_request(&mut exchange) {
        Outcome::Reply(reply) => {
            let shared = reply.shared.expect("an answer from the cache");
            let mut headers = Headers::clone(&shared.headers);
            headers.prepend_all(&exchange.response_headers);
            exchange.response_headers.clear();
            describe_response(reply.status, &headers, shared.part())
        }
        Outcome::Continue => {
            let asked = ["if-none-match", "if-modified-since"]
                .iter()
                .find_map(|name| exchange.request.headers.get(name.as_bytes()))
                .map(|value| format!("?{} ", String::from_utf8_lossy(value)));
            exchange.response.status = status;
            for (name, value) in headers {
                exchange
                    .response
                    .headers
                    .append(name.as_bytes(), value.as_bytes());
            }
            cache.on_response(&mut exchange);
            let body = exchange
                .response
                .replaced_body
                .take()
                .unwrap_or_else(|| exchange.response.filter_whole(body.into()));
            let response = &exchange.response;
            asked.unwrap_or_default() + &describe_response(response.status, &response.headers, &body)
        }
        other => word(&other),
    }
}

fn describe_response(status: u16, headers: &Headers, body: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let header = |name: &str| headers.get(name.as_bytes()).map(text).unwrap_or_default();
    let part = header("content-range");
    let extra = if part.is_empty() {
        part
    } else {
        format!(" [{part}]")
    };
    format!("{status} {} {}{extra}", header("x-cache-status"), text(body))
}

fn story(config: &Value, steps: &[Step<'_>]) {
    let cache = cache(config);
    for (place, step) in steps.iter().enumerate() {
        assert_eq!(tell(&cache, step), step.expected, "step {place} of {config}");
    }
}

const TAGGED: &[(&str, &str)] = &[("Cache-Control", "max-age=10"), ("ETag", "\"a\"")];

fn get<'s>(at_s: u64, request: &'s [(&'s str, &'s str)], expected: &'s str) -> Step<'s> {
    Step {
        at_s,
        line: "GET /a",
        request,
        service: (200, TAGGED, "hello"),
        expected,
    }
}

#[test]
fn what_is_too_old_is_asked_about() {
    let full = json!({"cache_control": true});
    let unchanged: (u16, &[(&str, &str)], &str) =
        (304, &[("Cache-Control", "max-age=20"), ("X-New", "1")], "");
    story(
        &full,
        &[
            get(0, &[], "200 miss hello"),
            get(9, &[], "200 hit hello"),
            Step {
                service: unchanged,
                ..get(10, &[], "?\"a\" 200 revalidated hello")
            },
            // The answer has made it fresh for longer.
            get(29, &[], "200 hit hello"),
            // A caller's own condition is answered here.
            Step {
                service: unchanged,
                ..get(30, &[("If-None-Match", "\"a\"")], "?\"a\" 304 revalidated ")
            },
            Step {
                service: unchanged,
                ..get(
                    31,
                    &[("Cache-Control", "no-cache")],
                    "?\"a\" 200 revalidated hello",
                )
            },
            // Something new takes its place.
            Step {
                service: (200, &[("Cache-Control", "max-age=10")], "new"),
                ..get(60, &[], "?\"a\" 200 expired new")
            },
            get(61, &[], "200 hit new"),
            get(75, &[], "200 expired hello"),
        ],
    );
}

#[test]
fn what_must_always_be_asked_about_is_kept() {
    let response: (u16, &[(&str, &str)], &str) =
        (200, &[("Cache-Control", "no-cache"), ("ETag", "\"n\"")], "always");
    let first = Step {
        service: response,
        ..get(0, &[], "200 miss always")
    };
    let again = Step {
        service: (304, &[("Cache-Control", "no-cache")], ""),
        ..get(1, &[], "?\"n\" 200 revalidated always")
    };
    story(&json!({"cache_control": true}), &[first, again]);
    // Where RFC 9111 does not count in full, it is not kept.
    let first = Step {
        service: response,
        ..get(0, &[], "200 miss always")
    };
    let again = Step {
        service: response,
        ..get(1, &[], "200 miss always")
    };
    story(
        &json!({"cache_control": true, "revalidate": false}),
        &[first, again],
    );
}

#[test]
fn ages_count() {
    let aged: (u16, &[(&str, &str)], &str) = (200, &[("Cache-Control", "max-age=10"), ("Age", "7")], "aged");
    let made: (u16, &[(&str, &str)], &str) = (
        200,
        &[
            ("Date", "Fri, 20 Nov 2026 15:30:53 GMT"),
            ("Expires", "Fri, 20 Nov 2026 15:31:03 GMT"),
        ],
        "made",
    );
    for service in [aged, made] {
        let at = |at_s, expected| Step {
            service,
            ..get(at_s, &[], expected)
        };
        let body = service.2;
        let [miss, hit, expired] = ["miss", "hit", "expired"].map(|word| format!("200 {word} {body}"));
        let steps = [at(0, miss.as_str()), at(2, hit.as_str()), at(3, expired.as_str())];
        story(&json!({"cache_control": true}), &steps);
    }
}

#[test]
fn stale_responses_do_where_they_may() {
    let response =
        |control: &'static str| -> Vec<(&'static str, &'static str)> { vec![("Cache-Control", control)] };
    for (config, control, then, expected) in [
        (json!({}), "max-age=1, stale-if-error=60", 503, "200 stale old"),
        (json!({}), "max-age=1, stale-if-error=60", 404, "404 expired "),
        (json!({}), "max-age=1, stale-if-error=2", 503, "503 expired "),
        (
            json!({}),
            "max-age=1, stale-if-error=60, must-revalidate",
            503,
            "503 expired ",
        ),
        (
            json!({"stale_if_error_seconds": 60}),
            "max-age=1",
            500,
            "200 stale old",
        ),
        (json!({}), "max-age=1", 500, "500 expired "),
    ] {
        let mut config = config;
        config["cache_control"] = true.into();
        let headers = response(control);
        let first = Step {
            service: (200, &headers, "old"),
            ..get(0, &[], "200 miss old")
        };
        let failed = Step {
            service: (then, &[], ""),
            ..get(5, &[], expected)
        };
        story(&config, &[first, failed]);
    }
}

#[test]
fn one_fetches_while_others_get_what_is_stale() {
    let cache = cache(&json!({"cache_control": true}));
    let control: &[(&str, &str)] = &[("Cache-Control", "max-age=1, stale-while-revalidate=10")];
    let old = Step {
        service: (200, control, "old"),
        ..get(0, &[], "200 miss old")
    };
    assert_eq!(tell(&cache, &old), old.expected);
    NOW.set(NOW_MS + 5_000);
    let mut first = Exchange::new(now, 7);
    prepare(&mut first, "GET /a", &[]);
    assert_eq!(word(&cache.on_request(&mut first)), "continue");
    let second = get(5, &[], "200 stale old");
    assert_eq!(tell(&cache, &second), second.expected);
    // Beyond that time, it waits.
    let mut third = Exchange::new(now, 7);
    NOW.set(NOW_MS + 12_000);
    prepare(&mut third, "GET /a", &[]);
    assert_eq!(word(&cache.on_request(&mut third)), "wait");
}

#[test]
fn parts_are_given_of_what_is_kept() {
    let part = |range: &'static str, expected| (range, expected);
    let cache = cache(&json!({"cache_control": true}));
    let whole = get(0, &[], "200 miss hello");
    assert_eq!(tell(&cache, &whole), whole.expected);
    for (range, expected) in [
        part("bytes=1-3", "206 hit ell [bytes 1-3/5]"),
        part("bytes=9-", "416 hit  [bytes */5]"),
        part("bytes=0-1,3-4", "200 hit hello"),
    ] {
        let request = [("Range", range)];
        assert_eq!(tell(&cache, &get(1, &request, expected)), expected);
    }
    // A part that the service sends is never kept for the whole.
    let partial: (u16, &[(&str, &str)], &str) = (
        206,
        &[("Cache-Control", "max-age=10"), ("Content-Range", "bytes 0-1/5")],
        "he",
    );
    let range = [("Range", "bytes=0-1")];
    for expected in ["206 miss he [bytes 0-1/5]", "206 miss he [bytes 0-1/5]"] {
        let step = Step {
            line: "GET /b",
            service: partial,
            ..get(0, &range, expected)
        };
        assert_eq!(tell(&cache, &step), expected);
    }
}

#[test]
fn changes_make_the_cache_forget() {
    let posted = |status, expected| Step {
        line: "POST /a",
        service: (status, &[], "done"),
        ..get(1, &[], expected)
    };
    story(
        &json!({"cache_control": true}),
        &[
            get(0, &[], "200 miss hello"),
            posted(500, "500 bypass done"),
            get(1, &[], "200 hit hello"),
            posted(201, "201 bypass done"),
            get(1, &[], "200 miss hello"),
        ],
    );
}

#[test]
fn what_callers_show_the_service_is_shared_only_where_it_may_be() {
    let shown = [("Authorization", "Basic YTpi")];
    for (control, expected) in [
        ("max-age=60", "200 miss one"),
        ("max-age=60, public", "200 hit one"),
        ("max-age=60, must-revalidate", "200 hit one"),
        ("s-maxage=60", "200 hit one"),
    ] {
        let headers = [("Cache-Control", control)];
        let at = |expected| Step {
            service: (200, &headers, "one"),
            ..get(0, &shown, expected)
        };
        story(
            &json!({"cache_control": true}),
            &[at("200 miss one"), at(expected)],
        );
    }
}
