//! Lists over documents of all dialects: what they show, how they are searched, sorted and paged, and to whom.

use crate::plane::Plane;
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime};
use weir_control::access::{EVERYWHERE, Role};
use weir_store::{Change, Key, Transaction};

/// How long anything may take. Much more than it should: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn put(plane: &Plane, documents: &[(String, Value)]) {
    for some in documents.chunks(1_000) {
        let change = |(key, value): &(String, Value)| {
            Change::put(Key::new(key).expect("a key"), value.to_string().into_bytes())
        };
        let transaction = Transaction {
            author: "test".to_owned(),
            note: String::new(),
            time: SystemTime::UNIX_EPOCH,
            changes: some.iter().map(change).collect(),
        };
        plane.store.append(transaction).await.expect("committed");
    }
}

async fn page(plane: &Plane, who: &str, list: &str, query: &str) -> Value {
    let query = query.replace(' ', "%20");
    let answer = plane
        .expect(who, "GET", &format!("/api/v1/view/{list}?{query}"), &Value::Null)
        .await;
    serde_json::from_str(&answer).expect("JSON")
}

async fn names(plane: &Plane, who: &str, query: &str) -> Vec<String> {
    let page = page(plane, who, "routes", query).await;
    let items = page["items"].as_array().expect("items");
    items
        .iter()
        .map(|it| it["name"].as_str().expect("a name").to_owned())
        .collect()
}

/// Waits until so many routes are listed: the list follows the store.
async fn until_listed(plane: &Plane, count: u64) {
    let begun = Instant::now();
    while page(plane, "reader", "routes", "limit=1").await["total"] != count {
        assert!(begun.elapsed() < TIMEOUT, "{count} routes are not listed");
        tokio::task::yield_now().await;
    }
}

async fn shop() -> Plane {
    let plane = Plane::new().await;
    plane.add("reader", &[(EVERYWHERE, Role::Viewer)]);
    let documents = [
        (
            "kong/default/services/s1",
            json!({"id": "s1", "name": "shop", "host": "pool"}),
        ),
        (
            "kong/default/routes/r1",
            json!({"id": "r1", "name": "cart", "paths": ["/cart"], "hosts": ["Shop.test"], "service": {"id": "s1"}, "tags": ["team=a"]}),
        ),
        (
            "kong/default/plugins/p1",
            json!({"id": "p1", "name": "key-auth", "route": {"id": "r1"}}),
        ),
        (
            "kong/team/routes/r2",
            json!({"id": "r2", "name": "team-cart", "paths": ["/cart"]}),
        ),
        ("kong/default/upstreams/u1", json!({"id": "u1", "name": "pool"})),
        (
            "kong/default/targets/t1",
            json!({"id": "t1", "target": "10.0.0.1:80", "upstream": {"id": "u1"}}),
        ),
        ("kong/default/consumers/c1", json!({"id": "c1", "username": "jo"})),
        (
            "kong/default/keyauth_credentials/k1",
            json!({"id": "k1", "key": "hidden", "consumer": {"id": "c1"}}),
        ),
        (
            "apisix/services/5",
            json!({"id": "5", "name": "billing", "upstream_id": "9"}),
        ),
        (
            "apisix/upstreams/9",
            json!({"id": "9", "nodes": {"10.0.0.2:80": 1}}),
        ),
        (
            "apisix/routes/1",
            json!({"id": "1", "uri": "/bills/*", "service_id": "5", "status": 0}),
        ),
        (
            "native/services/n",
            json!({"name": "n", "url": "http://u:hidden@h:1", "routes": [{"name": "nested", "paths": ["/n"]}]}),
        ),
    ];
    put(&plane, &documents.map(|(key, value)| (key.to_owned(), value))).await;
    until_listed(&plane, 4).await;
    plane
}

#[tokio::test]
async fn documents_are_joined_and_point_to_themselves() {
    let plane = shop().await;
    let routes = page(&plane, "reader", "routes", "").await;
    let row = |name: &str| {
        let items = routes["items"].as_array().expect("items");
        items.iter().find(|it| it["name"] == name).expect("a row").clone()
    };
    assert_eq!(
        row("cart"),
        json!({"id": "kong/default/routes/r1", "name": "cart", "dialect": "kong", "workspace": "default",
        "document": "kong/default/routes/r1", "hosts": ["Shop.test"], "paths": ["/cart"], "service": "shop", "plugins": ["key-auth"],
        "labels": {"team=a": ""}})
    );
    assert_eq!(row("1")["service"], "billing");
    assert_eq!(row("nested")["id"], "native/services/n#/routes/0");
    assert_eq!(row("nested")["pointer"], "/routes/0");
    let upstreams = page(&plane, "reader", "upstreams", "").await;
    assert_eq!(upstreams["items"][0]["targets"], json!(["10.0.0.2:80"]));
    assert_eq!(upstreams["items"][1]["targets"], json!(["10.0.0.1:80"]));
    let consumers = page(&plane, "reader", "consumers", "").await;
    assert_eq!(consumers["items"][0]["credentials"], json!(["key-auth"]));
    for list in [
        "routes",
        "services",
        "upstreams",
        "consumers",
        "certificates",
        "plugins",
    ] {
        let text = page(&plane, "reader", list, "").await.to_string();
        assert!(!text.contains("hidden"), "{list}: {text}");
    }
    let (status, ..) = plane
        .call("reader", "GET", "/api/v1/view/colours", &Value::Null)
        .await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn lists_are_searched_sorted_and_paged() {
    let plane = shop().await;
    for (query, expected) in [
        ("", &["1", "cart", "nested", "team-cart"][..]),
        ("sort=-name", &["team-cart", "nested", "cart", "1"]),
        ("sort=path", &["1", "cart", "team-cart", "nested"]),
        ("q=CART", &["cart", "team-cart"]),
        ("q=cart shop.test", &["cart"]),
        ("q=plugin:key-auth", &["cart"]),
        ("q=plugin:key", &[]),
        ("q=host:shop", &["cart"]),
        ("q=dialect:apisix", &["1"]),
        ("q=service:bill status:disabled", &["1"]),
        ("q=workspace:team", &["team-cart"]),
        ("q=label:team=a", &["cart"]),
        ("q=http://nowhere", &[]),
        ("limit=1", &["1"]),
    ] {
        assert_eq!(names(&plane, "reader", query).await, expected, "{query}");
    }
    for sort in ["name", "-name", "path", "-dialect"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let found = page(
                &plane,
                "reader",
                "routes",
                &format!("limit=1&sort={sort}{cursor}"),
            )
            .await;
            assert_eq!(found["total"], 4);
            seen.push(found["items"][0]["id"].to_string());
            match found["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
        assert_eq!((seen.len(), unique.len()), (4, 4), "{sort}: {seen:?}");
    }
    for wrong in ["sort=colour", "cursor=x"] {
        let path = format!("/api/v1/view/routes?{wrong}");
        let (status, _, answer) = plane.call("reader", "GET", &path, &Value::Null).await;
        assert_eq!(status, 400, "{wrong}: {answer}");
    }
}

#[tokio::test]
async fn rows_of_other_workspaces_are_not_shown() {
    let plane = shop().await;
    plane.add("teamster", &[("team", Role::Viewer)]);
    plane.add("guest", &[("default", Role::Viewer)]);
    plane.add("analyst", &[(EVERYWHERE, Role::Analyst)]);
    assert_eq!(names(&plane, "teamster", "").await, ["team-cart"]);
    assert_eq!(names(&plane, "guest", "").await, ["1", "cart"]);
    let (status, _, answer) = plane
        .call("analyst", "GET", "/api/v1/view/routes", &Value::Null)
        .await;
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("urn:weir:problem:forbidden"), "{answer}");
}

#[tokio::test]
async fn twenty_thousand_routes_are_searched_at_once() {
    let plane = Plane::new().await;
    plane.add("reader", &[(EVERYWHERE, Role::Viewer)]);
    let documents: Vec<(String, Value)> = (0..20_000)
        .map(|number| {
            let route = json!({"id": number.to_string(), "name": format!("route-{number}"), "paths": [format!("/api/{number}")]});
            (format!("kong/default/routes/{number}"), route)
        })
        .collect();
    put(&plane, &documents).await;
    until_listed(&plane, 20_000).await;
    let begun = Instant::now();
    let found = page(&plane, "reader", "routes", "q=route-1234").await;
    assert_eq!(found["total"], 11);
    // Many times what a release build takes: this is a debug build, and the machine may be busy.
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
