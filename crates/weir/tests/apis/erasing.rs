//! Erasing a developer: what is kept about one person goes, from the command line, and what others have stays.

use crate::support::{until, upstream};
use crate::{Plane, petstore};
use serde_json::{Value, json};

const ALL: &str = "/api/v1/portals/default/developers";
const MAIL: &str = "ann@example.com";

/// A developer who has signed up, with an application that has a key; and an application of the provider.
fn with_developer(plane: &Plane) -> (String, String) {
    let portal = json!({"url": "http://portal.test"});
    plane.put("/api/v1/portals/default", portal).expect(201);
    let made = plane
        .post(ALL, json!({"mail": MAIL, "name": "Ann"}))
        .expect(201)
        .json();
    let id = made["id"].as_str().expect("an id").to_owned();
    plane.version(&petstore());
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    plane.publish("test", upstream("pets"));
    let mut key = String::new();
    for (name, owner) in [("anns-shop", format!("developer/{id}")), ("other", String::new())] {
        let application = json!({"owner": owner});
        plane
            .put(&format!("/api/v1/applications/{name}"), application)
            .expect(201);
        let wanted = json!({"application": name, "publication": "pets/1.0.0/test", "plan": "gold"});
        let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
        if name == "anns-shop" {
            key = made["credential"]["key"].as_str().expect("a key").to_owned();
        }
    }
    (id, key)
}

fn applications(plane: &Plane) -> Vec<String> {
    let asked =
        json!({"metrics": ["calls"], "from": "-1h", "group_by": ["application"], "filter": {"api": "pets"}});
    let answer = plane.post("/api/v1/analytics/query", asked).expect(200).json();
    let frames = answer["frames"].as_array().expect("a list").iter();
    let names = frames.filter_map(|it| it["group"]["application"].as_str().map(str::to_owned));
    names.filter(|it| !it.is_empty()).collect()
}

/// What erasing changes: the store, the account, messages, and names in analytics.
fn all_that_may_change(plane: &Plane, id: &str) -> Vec<Value> {
    let get = |path: &str| plane.get(path).expect(200).json();
    let deliveries = get("/api/v1/deliveries");
    let deliveries = deliveries["items"].as_array().expect("a list").iter();
    let mut seen = vec![
        get("/api/v1/history?limit=1")["items"].clone(),
        get(&format!("{ALL}/{id}")),
        get("/api/v1/applications/anns-shop/webhooks"),
        json!(applications(plane)),
    ];
    // They are tried again and again meanwhile.
    seen.extend(deliveries.map(|it| json!([it["id"], it["to"], it["kind"]])));
    seen
}

#[test]
fn a_developer_is_erased_with_all_that_is_ones_own() {
    // No mail server listens there: the mail with the link waits.
    let flags = [
        "--environment",
        "test",
        "--analytics-interval",
        "1",
        "--smtp",
        "smtp://127.0.0.1:1",
        "--mail-from",
        "weir@example.com",
    ];
    let plane = Plane::with(&flags);
    let (id, key) = with_developer(&plane);
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    until("the call is counted", || applications(&plane) == ["anns-shop"]);
    let webhooks = "/api/v1/applications/anns-shop/webhooks";
    let hook = json!({"url": "https://hooks.example.com/ann"});
    plane.put(&format!("{webhooks}/mine"), hook).expect(201);
    let messages = |plane: &Plane| {
        plane
            .get("/api/v1/deliveries")
            .expect(200)
            .body
            .matches(MAIL)
            .count()
    };
    assert!(messages(&plane) > 0);

    let url = format!("http://{}", plane.weir.console());
    let weir = |more: &[&str]| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["developer", "erase", MAIL, "--url", &url])
            .args(more)
            .output()
            .expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (out.status.code(), text(out.stdout), text(out.stderr))
    };
    let before = all_that_may_change(&plane, &id);
    let (code, output, stderr) = weir(&["--dry-run"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        output.contains("would be erased: the account\napplications: anns-shop\nsubscriptions: 1\nkeys: 1\n"),
        "{output}"
    );
    assert_eq!(
        all_that_may_change(&plane, &id),
        before,
        "a dry run writes nothing"
    );
    assert_eq!(plane.status("/v1/pets", Some(&key)), Some(200));

    let (code, output, stderr) = weir(&[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        output.contains("erased: the account") && output.contains("names in analytics: 2\n"),
        "{output}"
    );
    plane.get(&format!("{ALL}/{id}")).expect(404);
    plane.get("/api/v1/applications/anns-shop").expect(404);
    plane.get("/api/v1/applications/other").expect(200);
    until("the key is refused", || {
        plane.status("/v1/pets", Some(&key)) == Some(401)
    });
    assert_eq!(messages(&plane), 0);
    // An application of that name has nothing of the one before.
    plane.put("/api/v1/applications/anns-shop", json!({})).expect(201);
    let hooks = plane.get(webhooks).expect(200).json();
    assert_eq!(hooks["items"], json!([]));
    let left = plane.get("/api/v1/subscriptions").expect(200).json();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1), "{left:#}");
    let names = applications(&plane);
    assert!(names.iter().any(|it| it.starts_with("removed-")), "{names:?}");

    let (code, _, stderr) = weir(&[]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("there is no developer with the address"),
        "{stderr}"
    );
    // The address is free again.
    let again = plane
        .post(ALL, json!({"mail": MAIL, "name": "Ann"}))
        .expect(201)
        .json();
    assert_ne!(again["id"], Value::from(id));
}

/// Another portal may have a developer with the same address.
#[test]
fn messages_of_another_portal_stay() {
    // No mail server listens there: mails wait.
    let flags = ["--smtp", "smtp://127.0.0.1:1", "--mail-from", "weir@example.com"];
    let plane = Plane::with(&flags);
    let developers = |portal: &str| format!("/api/v1/portals/{portal}/developers");
    let ids = ["default", "other"].map(|portal| {
        let host = format!("{portal}.test");
        let document = json!({"url": format!("http://{host}"), "hosts": [host]});
        plane
            .put(&format!("/api/v1/portals/{portal}"), document)
            .expect(201);
        let new = json!({"mail": MAIL, "name": "Ann"});
        let made = plane.post(&developers(portal), new).expect(201).json();
        made["id"].as_str().expect("an id").to_owned()
    });
    let portals = || {
        let listed = plane.get("/api/v1/deliveries").expect(200).json();
        let items = listed["items"].as_array().expect("a list").clone();
        let of_ann = items.iter().filter(|it| it["to"] == MAIL);
        let mut portals: Vec<String> = of_ann
            .filter_map(|it| it["portal"].as_str().map(str::to_owned))
            .collect();
        portals.sort();
        portals
    };
    assert_eq!(portals(), ["default", "other"]);
    let erase = format!("{}/{}/erase", developers("default"), ids[0]);
    let report = plane.post(&erase, json!({})).expect(200).json();
    assert_eq!(report["messages"], 1, "{report:#}");
    assert_eq!(portals(), ["other"]);
    plane
        .get(&format!("{}/{}", developers("other"), ids[1]))
        .expect(200);
}
