//! Writes of documents that people edit and that are no configuration: of two who edit one at once, the second one is
//! told.

use crate::Plane;
use crate::support::Answer;
use serde_json::{Value, json};

struct Admin {
    plane: Plane,
    token: String,
}

impl Admin {
    fn of(plane: Plane) -> Self {
        let made = plane.post("/api/v1/users/root", json!({"rights": [{"role": "admin"}]}));
        let token = made.expect(201).json()["token"]
            .as_str()
            .expect("a token")
            .to_owned();
        Self { plane, token }
    }

    fn ask(&self, method: &str, path: &str, body: &Value, tag: Option<&str>) -> Answer {
        let call = self.plane.call(method, path, body);
        let call = call.header("Authorization", &format!("Bearer {}", self.token));
        match tag {
            Some(tag) => call.header("If-Match", tag).make(),
            None => call.make(),
        }
    }

    /// The tag of an item of a list.
    fn tag_in(&self, list: &str, field: &str, name: &str) -> String {
        let listed = self.ask("GET", list, &json!({}), None).expect(200).json();
        let items = listed["items"].as_array().expect("items").clone();
        let item = items.iter().find(|it| it[field] == name).expect("the item");
        item["etag"].as_str().expect("a tag").to_owned()
    }
}

#[test]
fn whoever_is_second_is_told() {
    let admin = Admin::of(Plane::start());
    let panel = json!({"title": "Calls", "kind": "stat", "query": {"metrics": ["calls"]}});
    let board = |title: &str| json!({"title": title, "panels": [panel]});
    let rule = |name: &str| json!({"name": name, "metric": "calls", "operator": ">", "threshold": 5, "period": "5m"});
    let issuer = "https://id.test";
    let provider =
        |name: &str| json!({"display_name": name, "issuer": issuer, "client_id": "a", "mappings": []});
    let rights = |role: &str| json!({"rights": [{"role": role}]});
    admin
        .ask("POST", "/api/v1/users/ann", &rights("viewer"), None)
        .expect(201);
    let cases: [(&str, &str, &str, &str, [Value; 3]); 4] = [
        (
            "/api/v1/boards",
            "/api/v1/boards/mine",
            "id",
            "mine",
            ["a", "b", "c"].map(board),
        ),
        (
            "/api/v1/alerts",
            "/api/v1/alerts/mine",
            "id",
            "mine",
            ["a", "b", "c"].map(rule),
        ),
        (
            "/api/v1/identity-providers",
            "/api/v1/identity-providers/corp",
            "name",
            "corp",
            ["a", "b", "c"].map(provider),
        ),
        (
            "/api/v1/users",
            "/api/v1/users/ann/rights",
            "name",
            "ann",
            ["viewer", "operator", "analyst"].map(rights),
        ),
    ];
    for (list, path, field, name, [first, second, third]) in cases {
        let made = admin.ask("PUT", path, &first, None);
        assert!([200, 201].contains(&made.status), "{path}: {made:?}");
        let began = admin.tag_in(list, field, name);
        assert_eq!(made.header("etag").as_deref(), Some(began.as_str()), "{path}");
        let saved = admin.ask("PUT", path, &second, Some(&began)).expect(200);
        let tag = saved.header("etag").expect("a tag").to_owned();
        assert_ne!(tag, began, "{path}");
        let late = admin.ask("PUT", path, &third, Some(&began)).expect(412).json();
        assert_eq!(
            late["type"], "urn:weir:problem:changed-meanwhile",
            "{path}: {late}"
        );
        assert_eq!(admin.tag_in(list, field, name), tag, "{path}");
        // A proxy that compresses answers makes tags weak.
        admin
            .ask("PUT", path, &third, Some(&format!("W/{tag}")))
            .expect(200);
        if path.ends_with("/rights") {
            continue;
        }
        admin.ask("DELETE", path, &json!({}), Some(&tag)).expect(412);
        let last = admin.tag_in(list, field, name);
        admin.ask("DELETE", path, &json!({}), Some(&last)).expect(204);
        let gone = admin.ask("PUT", path, &first, Some(&last)).expect(412);
        assert!(gone.body.contains("does not exist"), "{path}: {}", gone.body);
    }
}

#[test]
fn whoever_is_second_with_a_developer_is_told() {
    // No mail server listens there: mails wait.
    let flags = ["--smtp", "smtp://127.0.0.1:1", "--mail-from", "weir@example.com"];
    let plane = Plane::with(&flags);
    let portal = json!({"url": "http://dev.test", "hosts": ["dev.test"]});
    plane.put("/api/v1/portals/default", portal).expect(201);
    let admin = Admin::of(plane);
    let all = "/api/v1/portals/default/developers";
    let new = json!({"mail": "ann@example.com", "name": "Ann"});
    let made = admin.ask("POST", all, &new, None).expect(201);
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    let one = format!("{all}/{id}");
    let began = admin.tag_in(all, "id", &id);
    assert_eq!(made.header("etag").as_deref(), Some(began.as_str()));
    let named = |name: &str| json!({"name": name});
    let saved = admin.ask("PUT", &one, &named("Ann B"), Some(&began)).expect(200);
    let tag = saved.header("etag").expect("a tag");
    assert_ne!(tag, began);
    for (method, path, body) in [
        ("PUT", one.clone(), named("Ann C")),
        ("POST", format!("{one}/suspend"), json!({"reason": "late"})),
        ("DELETE", one.clone(), json!({})),
    ] {
        let late = admin.ask(method, &path, &body, Some(&began)).expect(412).json();
        assert_eq!(
            late["type"], "urn:weir:problem:changed-meanwhile",
            "{path}: {late}"
        );
    }
    let read = admin.ask("GET", &one, &json!({}), None).expect(200);
    assert_eq!(read.header("etag").as_deref(), Some(tag.as_str()));
    assert_eq!(read.json()["name"], "Ann B");
    admin.ask("DELETE", &one, &json!({}), Some(&tag)).expect(204);
}

/// What was published is no secret.
#[test]
fn the_audit_log_names_the_revision_that_was_published() {
    let plane = Plane::start();
    plane.version(&crate::petstore());
    let admin = Admin::of(plane);
    let runtime = json!({"runtime": crate::runtime(crate::support::upstream("pets"))});
    let path = "/api/v1/publications/pets/1.0.0/test";
    let published = admin.ask("POST", path, &runtime, None).expect(200).json();
    let hash = published["hash"].as_str().expect("a hash");
    crate::support::until("it is in the log", || {
        let audit = admin.ask("GET", "/api/v1/audit", &json!({}), None).expect(200);
        let items = audit.json()["items"].as_array().cloned().unwrap_or_default();
        let mut changes = items
            .iter()
            .flat_map(|it| it["changes"].as_array().into_iter().flatten());
        changes.any(|it| it["document"] == "apis/publications/pets/1.0.0/test" && it["after"]["hash"] == hash)
    });
}
