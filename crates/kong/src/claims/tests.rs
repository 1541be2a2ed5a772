//! Which routes take calls of which others, and that the index finds what a comparison of each pair would find.

use super::*;
use serde_json::{Value, json};

fn claim(workspace: &str, id: u128, fields: &Value) -> Claim {
    let value = fields.to_string();
    let router = RouterFlavor::TraditionalCompatible;
    Claim::of(&workspace.into(), Uuid::from_u128(id), value.as_bytes(), router).expect("a route")
}

#[test]
fn a_route_takes_calls_of_another_if_both_hold_and_it_wins() {
    for (one, other, expected) in [
        // The same, and more of the same.
        (json!({"paths": ["/pay"]}), json!({"paths": ["/pay"]}), true),
        (
            json!({"paths": ["/pay"], "methods": ["GET"]}),
            json!({"paths": ["/pay"]}),
            true,
        ),
        (
            json!({"paths": ["/"], "hosts": ["a.test"], "methods": ["GET"]}),
            json!({"paths": ["/pay"]}),
            true,
        ),
        (json!({"paths": ["/pay/card"]}), json!({"paths": ["/pay"]}), true),
        (json!({"paths": ["~/p.y$"]}), json!({"paths": ["/pay"]}), true),
        (
            json!({"headers": {"x": ["1"]}, "paths": ["/"]}),
            json!({"paths": ["/pay"]}),
            true,
        ),
        (
            json!({"paths": ["/"], "snis": ["a.test"]}),
            json!({"paths": ["/pay"]}),
            true,
        ),
        (
            json!({"hosts": ["x.a.test"]}),
            json!({"hosts": ["*.a.test"], "paths": ["/"]}),
            true,
        ),
        // What is left over takes nothing.
        (json!({"paths": ["/"]}), json!({"paths": ["/pay"]}), false),
        (
            json!({"paths": ["/"]}),
            json!({"paths": ["/"], "hosts": ["a.test"]}),
            false,
        ),
        // No call is for both.
        (json!({"paths": ["/orders"]}), json!({"paths": ["/pay"]}), false),
        (
            json!({"paths": ["/pay"], "hosts": ["a.test"]}),
            json!({"paths": ["/pay"], "hosts": ["b.test"]}),
            false,
        ),
        (
            json!({"paths": ["/pay"], "methods": ["GET"]}),
            json!({"paths": ["/pay"], "methods": ["PUT"]}),
            false,
        ),
        (
            json!({"paths": ["/pay"], "headers": {"x": ["1"]}}),
            json!({"paths": ["/pay"], "headers": {"x": ["2"]}}),
            false,
        ),
        (
            json!({"paths": ["/"], "snis": ["a.test"], "protocols": ["https"]}),
            json!({"paths": ["/"], "snis": ["b.test"], "protocols": ["https"]}),
            false,
        ),
        (
            json!({"paths": ["/"], "snis": ["a.test"], "protocols": ["https"]}),
            json!({"paths": ["/"], "protocols": ["http"]}),
            true,
        ),
        // Connections and datagrams.
        (
            json!({"protocols": ["tcp"], "destinations": [{"port": 9000}]}),
            json!({"protocols": ["tcp"], "destinations": [{"ip": "10.0.0.1", "port": 9000}]}),
            true,
        ),
        (
            json!({"protocols": ["tcp"], "destinations": [{"port": 9000}]}),
            json!({"protocols": ["tcp"], "destinations": [{"port": 9001}]}),
            false,
        ),
        (
            json!({"protocols": ["tls_passthrough"], "snis": ["a.test"]}),
            json!({"protocols": ["tls"], "snis": ["*.test"]}),
            true,
        ),
        (
            json!({"protocols": ["tcp"], "destinations": [{"port": 9000}]}),
            json!({"paths": ["/"]}),
            false,
        ),
    ] {
        let (new, known) = (claim("team", 2, &one), claim("default", 1, &other));
        assert_eq!(new.takes_from(&known), expected, "{one} {other}");
        let mut claims = Claims::default();
        claims.put(known.clone());
        let found = claims.beside(&new).any(|it| new.takes_from(it));
        assert_eq!(found, expected, "{one} {other}, by the index");
        assert!(claims.beside(&claim("default", 3, &one)).next().is_none());
        claims.remove("default", Uuid::from_u128(1));
        assert!(claims.beside(&new).next().is_none() && claims.workspaces.is_empty());
    }
}

#[test]
fn a_question_does_not_cost_a_look_at_every_route() {
    const ROUTES: u128 = 20_000;
    let mut claims = Claims::default();
    for id in 0..ROUTES {
        let fields = match id % 2 {
            0 => json!({"paths": [format!("/api/{id}")]}),
            _ => json!({"paths": ["/"], "hosts": [format!("h{id}.test")]}),
        };
        claims.put(claim("default", id, &fields));
    }
    for fields in [
        json!({"paths": ["/api/7"]}),
        json!({"paths": ["/other"], "hosts": ["h1.test"]}),
        json!({"paths": ["/api/100"], "hosts": ["*.other.test"], "methods": ["GET"]}),
    ] {
        let new = claim("team", ROUTES, &fields);
        let looked_at = claims.beside(&new).count();
        assert!(looked_at <= ROUTES as usize / 2 + 1_200, "{fields}: {looked_at}");
    }
}
