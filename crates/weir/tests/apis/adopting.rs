//! Adopted services: routes of any dialect become a version of an API, and stay as they are until a publication takes
//! them over.

use crate::Plane;
use crate::support::{Call, server, until, upstream};
use serde_json::{Value, json};

fn kong(plane: &Plane, method: &str, path: &str, body: &Value) {
    let answer = Call::new(method, &plane.weir.kong(), path)
        .body(&body.to_string())
        .make();
    assert!([200, 201].contains(&answer.status), "{path}: {answer:?}");
}

/// Adopts routes, publishes next to them, and takes them over.
#[test]
fn routes_of_kong_are_adopted_and_taken_over_in_one_commit() {
    let plane = Plane::with(&["--environment", "test", "--kong-admin", "127.0.0.1:0"]);
    let shown = server(|head| (200, head.lines().next().unwrap_or_default().to_owned()));
    kong(
        &plane,
        "PUT",
        "/services/orders",
        &json!({"url": format!("http://{shown}/backend")}),
    );
    let route = json!({"service": {"name": "orders"}, "paths": ["/orders"], "methods": ["GET", "POST"]});
    kong(&plane, "PUT", "/routes/orders-all", &route);
    kong(
        &plane,
        "POST",
        "/routes/orders-all/plugins",
        &json!({"name": "cors"}),
    );
    let asked = |path: &str| plane.through(path, None).map(|it| (it.status, it.body));
    let served = Some((200, "GET /backend/7 HTTP/1.1".to_owned()));
    until("Kong's route serves", || asked("/orders/7") == served);

    plane.put("/api/v1/apis/orders", json!({})).expect(201);
    let adopt = |service: &str| {
        let body = json!({"dialect": "kong", "service": service, "version": "1"});
        plane.post("/api/v1/apis/orders/adopt", body)
    };
    let unknown = adopt("none").expect(422);
    assert!(unknown.body.contains("it has orders"), "{unknown:?}");
    let before = plane.get("/api/v1/history?limit=1").json()["items"][0]["revision"].clone();
    let adopted = adopt("orders").expect(201).json();
    assert_eq!(adopted["routes"], json!(["orders-all"]), "{adopted:#}");
    let runtime = adopted["runtime"].clone();
    assert_eq!(
        (&runtime["base_path"], &runtime["strip_base_path"]),
        (&json!("/orders"), &json!(true))
    );
    let ids: Vec<&str> = adopted["operations"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(ids, ["orders-all-get", "orders-all-post"]);
    let notes = adopted["notes"].to_string();
    assert!(notes.contains("plugins"), "{notes}");
    adopt("orders").expect(409);
    // Only the version was written.
    let history = plane.get("/api/v1/history?limit=1").json()["items"][0].clone();
    assert_ne!(history["revision"], before);
    let documents = history["changes"].to_string();
    assert!(
        documents.contains("apis/versions/orders/1") && !documents.contains("kong"),
        "{documents}"
    );
    assert_eq!(asked("/orders/7"), served);

    let publish = |environment: &str, more: Value| {
        let mut body = json!({"runtime": runtime});
        body.as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        plane.post(&format!("/api/v1/publications/orders/1/{environment}"), body)
    };
    let refused = publish("test", json!({})).expect(409);
    assert!(refused.body.contains("take_over"), "{refused:?}");
    let alone = publish("test", json!({"take_over": true})).expect(409);
    assert!(alone.body.contains("no publication in prod"), "{alone:?}");
    publish("prod", json!({"force": true})).expect(200);
    let taken = publish("test", json!({"take_over": true})).expect(200).json();
    let removed: Vec<&str> = taken["diff"]["documents"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|it| it["after"].is_null())
        .filter_map(|it| it["document"].as_str())
        .collect();
    assert_eq!(removed.len(), 2, "the route and its plugin: {taken:#}");
    assert!(removed.iter().all(|it| it.starts_with("kong/")), "{removed:?}");
    let explained = plane.post("/api/v1/explain", json!({"url": "http://localhost/orders/7"}));
    assert_eq!(explained.expect(200).json()["publication"], "orders/1/test");
    until("the gateway serves the publication", || {
        let known = plane.get("/api/v1/publications/orders/1/test").json();
        assert_eq!(
            asked("/orders/7"),
            served,
            "no call is lost, and it goes where it went"
        );
        known["rollout"]["served"] == true
    });
    assert_eq!(asked("/orders/7"), served, "it goes where it went");
    let again = publish("test", json!({"take_over": true})).expect(409);
    assert!(again.body.contains("already"), "{again:?}");
    let routes = Call::get(&plane.weir.kong(), "/routes").make().json();
    assert_eq!(routes["data"], json!([]));
}

#[test]
fn native_routes_are_adopted_with_their_operations() {
    let plane = Plane::start();
    let backend = upstream("files");
    let service = json!({"url": format!("http://{backend}"), "routes": [
        {"name": "list", "paths": ["=/files"], "methods": ["GET"]},
        {"name": "one", "paths": ["/files/{id}"], "methods": ["GET", "DELETE"]},
    ]});
    plane.put("/api/v1/resources/services/files", service).expect(201);
    plane.put("/api/v1/apis/files", json!({})).expect(201);
    let body = json!({"dialect": "native", "service": "files", "version": "1"});
    let adopted = plane.post("/api/v1/apis/files/adopt", body).expect(201).json();
    assert_eq!(
        adopted["source"]["documents"],
        json!(["native/services/files"]),
        "{adopted:#}"
    );
    let published = plane.post(
        "/api/v1/publications/files/1/prod",
        json!({"runtime": adopted["runtime"], "force": true}),
    );
    assert_ne!(published.expect(200).json()["forced"], json!([]));
    let taken = json!({"runtime": adopted["runtime"], "take_over": true});
    plane.post("/api/v1/publications/files/1/test", taken).expect(200);
    for (method, path, expected) in [
        ("GET", "/files", 200),
        ("DELETE", "/files/7", 200),
        ("POST", "/files/7", 404),
    ] {
        until("the publication serves", || {
            let call = Call::new(method, &plane.weir.proxy(), path).attempt();
            call.is_some_and(|it| it.status == expected)
        });
    }
    plane.get("/api/v1/resources/services/files").expect(404);
}

/// The routes may be another team's: the right to publish one API is not the right to remove them.
#[test]
fn taking_over_needs_the_right_to_write_the_configuration() {
    let plane = Plane::start();
    let backend = upstream("files");
    let service =
        json!({"url": format!("http://{backend}"), "routes": [{"name": "list", "paths": ["=/files"]}]});
    plane.put("/api/v1/resources/services/files", service).expect(201);
    plane.put("/api/v1/apis/files", json!({})).expect(201);
    let body = json!({"dialect": "native", "service": "files", "version": "1"});
    let adopted = plane.post("/api/v1/apis/files/adopt", body).expect(201).json();
    let ask = |token: &str, method: &str, path: &str, body: Value| {
        let call = plane.call(method, path, &body);
        call.header("Authorization", &format!("Bearer {token}")).make()
    };
    let token = |answer: crate::support::Answer| -> String {
        answer.expect(201).json()["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    let root = token(plane.post("/api/v1/users/root", json!({"rights": [{"role": "admin"}]})));
    let rights = json!({"rights": [{"role": "viewer"}, {"role": "api-owner", "api": "files"}]});
    let owner = token(ask(&root, "POST", "/api/v1/users/ann", rights));
    let publish = |token: &str, environment: &str, more: &str| {
        let mut body = json!({"runtime": adopted["runtime"]});
        body[more] = json!(true);
        ask(
            token,
            "POST",
            &format!("/api/v1/publications/files/1/{environment}"),
            body,
        )
    };
    publish(&root, "prod", "force").expect(200);
    let refused = publish(&owner, "test", "take_over").expect(403);
    assert!(
        refused.body.contains("the right to write all of it"),
        "{refused:?}"
    );
    ask(&owner, "GET", "/api/v1/resources/services/files", Value::Null).expect(200);
    publish(&root, "test", "take_over").expect(200);
}
