//! What holds whatever is called in which order: a refused call changes nothing, references lead somewhere, and all
//! who look at one store see the same.

use crate::conversation::Conversation;
use axum::body::to_bytes;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_kong::admin::{Admin, AdminOptions};

const LISTS: [&str; 10] = [
    "services",
    "routes",
    "consumers",
    "plugins",
    "upstreams",
    "key-auths",
    "acls",
    "certificates",
    "snis",
    "key-sets",
];

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

async fn dump(conversation: &Conversation) -> BTreeMap<&'static str, Value> {
    let mut lists = BTreeMap::new();
    for list in LISTS {
        let response = conversation.call(&format!("GET /{list}?size=1000"), "").await;
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        lists.insert(list, serde_json::from_slice(&body).expect("JSON"));
    }
    lists
}

fn assert_references(lists: &BTreeMap<&'static str, Value>) {
    let members = |list: &str| lists[list]["data"].as_array().expect("a list").clone();
    let ids: BTreeSet<String> = LISTS
        .iter()
        .flat_map(|list| members(list))
        .map(|member| member["id"].as_str().expect("an id").to_owned())
        .collect();
    for list in LISTS {
        for member in members(list) {
            for (field, value) in member.as_object().expect("fields") {
                if let Some(id) = value.get("id").and_then(Value::as_str) {
                    assert!(ids.contains(id), "{list}: {field} of {member}");
                }
            }
        }
    }
}

fn call(numbers: &mut Numbers) -> (String, String) {
    let name = numbers.one_of(&["a", "b", "c", "bad name!"]);
    let other = numbers.one_of(&["a", "b", "nobody"]);
    let id = numbers.one_of(&["1", "2"]);
    let id = format!("{id}0000000-0000-5000-8000-000000000000");
    match numbers.below(16) {
        0 => (
            format!("PUT /services/{name}"),
            "{\"host\":\"x.test\"}".to_owned(),
        ),
        1 => (
            format!("PUT /services/{id}"),
            format!("{{\"name\":\"{name}\",\"host\":\"x.test\"}}"),
        ),
        2 => (
            format!("PATCH /services/{name}"),
            format!("{{\"name\":\"{other}\",\"retries\":99999}}"),
        ),
        3 => (
            format!("PATCH /services/{name}"),
            format!("{{\"name\":\"{other}\"}}"),
        ),
        4 => (format!("DELETE /services/{name}"), String::new()),
        5 => (
            format!("PUT /routes/{name}"),
            format!("{{\"paths\":[\"/\"],\"service\":{{\"name\":\"{other}\"}}}}"),
        ),
        6 => (format!("DELETE /routes/{name}"), String::new()),
        7 => (
            format!("POST /routes/{name}/plugins"),
            "{\"name\":\"key-auth\"}".to_owned(),
        ),
        8 => (
            format!("POST /consumers/{name}/plugins"),
            "{\"name\":\"cors\"}".to_owned(),
        ),
        9 => (
            format!("PUT /consumers/{name}"),
            format!("{{\"custom_id\":\"{other}\"}}"),
        ),
        10 => (format!("DELETE /consumers/{name}"), String::new()),
        11 => (
            format!("POST /consumers/{name}/key-auth"),
            format!("{{\"key\":\"{other}\"}}"),
        ),
        12 => (format!("PUT /consumers/{name}/acls/{other}"), "{}".to_owned()),
        13 => (
            "POST /config".to_owned(),
            format!("{{\"_format_version\":\"3.0\",\"services\":[{{\"name\":\"{name}\",\"host\":\"x\"}}]}}"),
        ),
        14 => (
            format!("POST /services/{name}/plugins"),
            "{\"name\":\"rate-limiting\",\"config\":{\"minute\":1}}".to_owned(),
        ),
        _ => (
            format!("PUT /routes/{name}/service"),
            "{\"host\":\"via.test\"}".to_owned(),
        ),
    }
}

#[tokio::test]
async fn refused_calls_change_nothing_and_references_lead_somewhere() {
    let conversation = Conversation::open().await;
    let mut numbers = Numbers(11);
    let mut before = dump(&conversation).await;
    let (mut done, mut refused) = (0, 0);
    for _ in 0..600 {
        let (line, body) = call(&mut numbers);
        let line = line.replace("bad name!", "bad%20name!");
        let status = conversation.call(&line, &body).await.status();
        let after = dump(&conversation).await;
        assert!(!status.is_server_error(), "{line} {body}: {status}");
        if status.is_success() {
            done += 1;
        } else {
            refused += 1;
            assert_eq!(before, after, "{line} {body}: {status}");
        }
        assert_references(&after);
        before = after;
    }
    assert!(done > 100 && refused > 100, "{done} done, {refused} refused");
    let mut other = Conversation::open().await;
    other.admin = Admin::open(Arc::clone(&conversation.store), AdminOptions::default())
        .await
        .expect("opened");
    assert_eq!(dump(&other).await, before);
}

#[tokio::test]
async fn of_two_writers_with_the_same_precondition_one_wins() {
    let one = Conversation::open().await;
    let mut other = Conversation::open().await;
    other.admin = Admin::open(Arc::clone(&one.store), AdminOptions::default())
        .await
        .expect("opened");
    for round in 0..20 {
        let name = format!("s{round}");
        let line = format!("PUT /services/{name}");
        let created = one.call(&line, "{\"host\":\"x.test\"}").await;
        let tag = created.headers()["etag"].to_str().expect("a text").to_owned();
        let line = format!("PATCH /services/{name} If-Match={tag}");
        // The other one catches up by itself: its first attempt may be worked out on what was there before.
        let (first, second) = tokio::join!(
            one.call(&line, "{\"retries\":1}"),
            other.call(&line, "{\"retries\":2}")
        );
        let won = [&first, &second]
            .iter()
            .filter(|it| it.status().is_success())
            .count();
        assert!(
            won <= 1,
            "round {round}: {} and {}",
            first.status(),
            second.status()
        );
        assert!(
            first.status().is_success() || second.status().is_success(),
            "round {round}"
        );
    }
}

#[tokio::test]
async fn writers_of_two_processes_lose_nothing() {
    let one = Conversation::open().await;
    let mut other = Conversation::open().await;
    other.admin = Admin::open(Arc::clone(&one.store), AdminOptions::default())
        .await
        .expect("opened");
    for number in 0..50 {
        let (first, second) = (
            format!("PUT /services/a{number}"),
            format!("PUT /services/b{number}"),
        );
        let (first, second) = tokio::join!(
            one.call(&first, "{\"host\":\"x.test\"}"),
            other.call(&second, "{\"host\":\"x.test\"}")
        );
        assert!(first.status().is_success() && second.status().is_success());
    }
    let fresh = Admin::open(Arc::clone(&one.store), AdminOptions::default())
        .await
        .expect("opened");
    other.admin = fresh;
    let services = &dump(&other).await["services"]["data"];
    assert_eq!(services.as_array().expect("a list").len(), 100);
}
