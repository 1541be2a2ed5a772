//! Sticky sessions: they survive changes of targets.

use super::support::{Message, TestGateway, Upstream, answer, dead};
use super::{GET, call};
use serde_json::{Value, json};
use std::net::SocketAddr;

fn server(name: &'static str) -> SocketAddr {
    let upstream = Upstream::bind();
    let address = upstream.address;
    upstream.serve(move |_| answer(name));
    address
}

fn model(targets: &[(SocketAddr, u32)], more: &Value) -> Value {
    let sticky = json!({"upstreams": {"sticky": {"cookie": "at", "max_age_s": 60}}});
    super::support::patch(super::support::balanced(targets, &sticky), more)
}

/// The answer's body, and the cookie that it sets.
fn visit(gateway: &TestGateway, cookie: Option<&str>) -> (String, Option<String>) {
    let answer: Message = match cookie {
        None => call(gateway, GET),
        Some(cookie) => call(
            gateway,
            &format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: a=b; at={cookie}\r\n\r\n"),
        ),
    };
    assert_eq!(answer.status(), 200);
    let body = String::from_utf8(answer.body.clone()).unwrap();
    let set = answer.head.get("Set-Cookie").map(|line| {
        let (value, attributes) = line.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
        value.strip_prefix("at=").unwrap().to_owned()
    });
    (body, set)
}

#[test]
fn sessions_survive_changes_of_targets() {
    let (a, b, c) = (server("a"), server("b"), server("c"));
    let nothing = json!({});
    let gateway = TestGateway::start(model(&[(a, 1), (b, 1)], &nothing));
    let (home, cookie) = visit(&gateway, None);
    let cookie = cookie.expect("a first visit gets a cookie");
    assert!(!cookie.contains('.') && cookie.len() == 16, "{cookie}");
    let (own, other) = if home == "a" { (a, b) } else { (b, a) };
    let stays = |targets: &[(SocketAddr, u32)]| {
        gateway.publish(model(targets, &nothing));
        for _ in 0..6 {
            assert_eq!(
                visit(&gateway, Some(&cookie)),
                (home.clone(), None),
                "{targets:?}"
            );
        }
    };
    stays(&[(a, 1), (b, 1)]);
    stays(&[(c, 1), (b, 1), (a, 1)]);
    // A target that takes no new clients keeps those that it has.
    stays(&[(c, 1), (other, 1), (own, 0)]);
    assert_ne!(visit(&gateway, None).0, home);
    // It is gone: another one takes over, and says so.
    gateway.publish(model(&[(c, 1)], &nothing));
    let (body, moved) = visit(&gateway, Some(&cookie));
    assert_eq!(body, "c");
    let moved = moved.expect("a new cookie");
    assert_eq!(visit(&gateway, Some(&moved)), ("c".to_owned(), None));
    // What no target has is no cookie.
    for forged in ["", "c", "0000000000000000", &cookie.to_uppercase()] {
        let (body, set) = visit(&gateway, Some(forged));
        assert_eq!(
            (body.as_str(), set.as_deref()),
            ("c", Some(moved.as_str())),
            "{forged}"
        );
    }
}

#[test]
fn a_target_that_fails_gives_its_clients_away() {
    let alive = server("alive");
    let retries = json!({"services": {"retries": 1}});
    let gateway = TestGateway::start(model(&[(dead(), 1)], &retries));
    let values = |targets: &[(SocketAddr, u32)]| {
        gateway.publish(model(targets, &retries));
        visit(&gateway, None).1.unwrap()
    };
    let of_alive = values(&[(alive, 1)]);
    // The cookie of the dead target is known from a time when another server listened there; here, from a target of
    // the same place that has weight 0 and never answers.
    gateway.publish(model(&[(alive, 1), (dead(), 1)], &retries));
    for _ in 0..4 {
        let (body, set) = visit(&gateway, None);
        assert_eq!(
            (body.as_str(), set.as_deref()),
            ("alive", Some(of_alive.as_str()))
        );
    }
}
