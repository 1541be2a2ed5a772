//! Who decides approvals: rights in one API or one environment hold there and nowhere else, and authors do not approve
//! their own changes.

use crate::support::{Answer, upstream};
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

const APPROVALS: &str = "/api/v1/approvals";

/// People with their tokens.
pub(super) struct Users<'p> {
    plane: &'p Plane,
    root: String,
}

impl<'p> Users<'p> {
    pub(super) fn of(plane: &'p Plane) -> Self {
        let made = plane.post("/api/v1/users/root", json!({"rights": [{"role": "admin"}]}));
        let root = token(&made.expect(201));
        Self { plane, root }
    }

    pub(super) fn add(&self, name: &str, rights: Value) -> String {
        let path = format!("/api/v1/users/{name}");
        token(
            &self
                .ask(&self.root, "POST", &path, json!({"rights": rights}))
                .expect(201),
        )
    }

    pub(super) fn ask(&self, token: &str, method: &str, path: &str, body: Value) -> Answer {
        let call = self.plane.call(method, path, &body);
        call.header("Authorization", &format!("Bearer {token}")).make()
    }

    /// Asks for an approval. Gives the path of the approval.
    fn wish(&self, token: &str, publication: &str) -> String {
        let asked = self.ask(token, "POST", APPROVALS, json!({"publication": publication}));
        let approval = asked.expect(201).json();
        format!("{APPROVALS}/{}", approval["id"].as_str().expect("an id"))
    }

    pub(super) fn decide(&self, token: &str, approval: &str, state: &str) -> Answer {
        let path = format!("{approval}/decision");
        self.ask(token, "POST", &path, json!({"state": state}))
    }

    /// The publications whose approvals this user sees.
    fn visible_approvals(&self, token: &str) -> Vec<String> {
        let listed = self.ask(token, "GET", APPROVALS, Value::Null).expect(200).json();
        let items = listed["items"].as_array().expect("a list").iter();
        let mut seen: Vec<String> = items
            .filter_map(|it| it["publication"].as_str().map(str::to_owned))
            .collect();
        seen.sort();
        seen
    }
}

fn token(made: &Answer) -> String {
    made.json()["token"].as_str().expect("a token").to_owned()
}

/// Two APIs with a version each.
fn two_apis() -> Plane {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.put("/api/v1/apis/orders", json!({})).expect(201);
    plane
        .post("/api/v1/apis/orders/versions?version=1.0.0", petstore())
        .expect(201);
    plane
}

#[test]
fn an_approver_of_one_api_decides_there_and_nowhere_else() {
    let plane = two_apis();
    plane.put("/api/v1/portals/default", json!({})).expect(201);
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner"}]));
    let of_pets = people.add("pia", json!([{"api": "pets", "role": "approver"}]));
    let of_prod = people.add("eva", json!([{"environment": "prod", "role": "approver"}]));
    let of_test = people.add("tess", json!([{"environment": "test", "role": "approver"}]));
    let of_portal = people.add("paul", json!([{"portal": "default", "role": "approver"}]));
    let everywhere = people.add("bob", json!([{"role": "approver"}]));
    let (pets, orders) = (
        people.wish(&ann, "pets/1.0.0/prod"),
        people.wish(&ann, "orders/1.0.0/prod"),
    );
    let both = ["orders/1.0.0/prod", "pets/1.0.0/prod"];
    for (who, expected) in [
        (&ann, &both[..]),
        (&of_pets, &both[1..]),
        (&of_prod, &both[..]),
        (&of_test, &[]),
        (&of_portal, &[]),
        (&everywhere, &both[..]),
    ] {
        assert_eq!(people.visible_approvals(who), expected);
    }
    for who in [&of_test, &of_portal, &ann] {
        people.decide(who, &pets, "granted").expect(403);
    }
    let refused = people.decide(&of_pets, &orders, "granted").expect(403);
    assert!(
        refused
            .body
            .contains("'approvals:decide' in api:orders or environment:prod"),
        "{refused:?}"
    );
    let granted = people.decide(&of_pets, &pets, "granted").expect(200).json();
    assert_eq!(
        (&granted["state"], &granted["decided_by"]),
        (&json!("granted"), &json!("pia"))
    );
    people.decide(&of_prod, &orders, "refused").expect(200);
    // The console asks what it may show.
    let can = people
        .ask(&of_pets, "GET", "/api/v1/me/can", Value::Null)
        .expect(200);
    assert!(can.body.contains("approvals:decide"), "{can:?}");
}

/// The defect: who had got one approval could publish the same again and again, whatever came in between.
#[test]
fn an_approval_is_for_one_publish() {
    const PROD: &str = "/api/v1/publications/pets/1.0.0/prod";
    let plane = two_apis();
    plane
        .put("/api/v1/environments/prod", json!({"protected": true}))
        .expect(200);
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner", "api": "pets"}]));
    let bob = people.add("bob", json!([{"role": "approver"}]));
    let body = json!({"publication": "pets/1.0.0/prod", "runtime": runtime(upstream("pets"))});
    let asked = people
        .ask(&ann, "POST", APPROVALS, body.clone())
        .expect(201)
        .json();
    let id = asked["id"].as_str().expect("an id");
    people
        .decide(&bob, &format!("{APPROVALS}/{id}"), "granted")
        .expect(200);
    let publish = json!({"revision": 1, "runtime": body["runtime"], "approval": id});
    people.ask(&ann, "POST", PROD, publish.clone()).expect(200);
    let again = people.ask(&ann, "POST", PROD, publish.clone()).expect(200).json();
    assert_eq!(
        again["unchanged"], true,
        "who repeats it gets the same answer: {again}"
    );
    // Somebody else publishes another runtime.
    let mut other = json!({"revision": 1, "runtime": body["runtime"]});
    other["runtime"]["base_path"] = "/v2".into();
    people.ask(&people.root, "POST", PROD, other).expect(200);
    let used = people.ask(&ann, "POST", PROD, publish).expect(409);
    assert!(used.body.contains("is already used"), "{used:?}");
}

#[test]
fn one_takes_back_what_one_has_asked_for_and_agrees_to_nothing_of_ones_own() {
    let plane = two_apis();
    let people = Users::of(&plane);
    let of_pets = people.add("ann", json!([{"api": "pets", "role": "api-owner"}]));
    let other = people.add("olga", json!([{"role": "api-owner"}]));
    let approver = people.add("bob", json!([{"role": "approver"}]));
    let both = people.add("max", json!([{"role": "api-owner"}, {"role": "approver"}]));

    // An owner of one API asks for it, and not for another one.
    let asked = people.wish(&of_pets, "pets/1.0.0/prod");
    people
        .ask(
            &of_pets,
            "POST",
            APPROVALS,
            json!({"publication": "orders/1.0.0/prod"}),
        )
        .expect(403);
    people.ask(&approver, "DELETE", &asked, Value::Null).expect(403);
    people.ask(&other, "DELETE", &asked, Value::Null).expect(403);
    people.ask(&of_pets, "DELETE", &asked, Value::Null).expect(204);
    people.decide(&approver, &asked, "granted").expect(409);
    let listed = people.ask(&of_pets, "GET", APPROVALS, Value::Null).json();
    assert_eq!(listed["items"][0]["state"], "withdrawn", "{listed:#}");

    // Max has made the revision. That Olga asks for it does not make it hers.
    let made = people
        .ask(
            &both,
            "POST",
            "/api/v1/apis/orders/versions/1.0.0/revisions",
            json!({}),
        )
        .expect(201)
        .json();
    let wish = json!({"publication": "orders/1.0.0/prod", "revision": made["number"]});
    let asked = people.ask(&other, "POST", APPROVALS, wish).expect(201).json();
    let asked = format!("{APPROVALS}/{}", asked["id"].as_str().expect("an id"));
    let refused = people.decide(&both, &asked, "granted").expect(403);
    assert!(refused.body.contains("max has edited a part"), "{refused:?}");
    people.decide(&approver, &asked, "granted").expect(200);
}

/// Four eyes: neither who asks nor who has changed something since the revision that is published agrees to it.
#[test]
fn who_has_made_a_change_agrees_to_none_of_it() {
    let plane = two_apis();
    let people = Users::of(&plane);
    let both = || json!([{"role": "api-owner"}, {"role": "approver"}]);
    let [ann, bob, eve, tim] = ["ann", "bob", "eve", "tim"].map(|name| people.add(name, both()));
    let version = "/api/v1/apis/pets/versions/1.0.0";
    let change = |token: &str, title: &str| {
        let mut document = petstore();
        document["info"]["title"] = title.into();
        people
            .ask(token, "PUT", version, json!({"spec": document}))
            .expect(200);
    };
    // What is published is Ann's, and of no interest any more.
    change(&ann, "first");
    let publish = json!({"runtime": runtime(upstream("pets"))});
    people
        .ask(
            &people.root,
            "POST",
            "/api/v1/publications/pets/1.0.0/prod",
            publish,
        )
        .expect(200);
    // Bob and Eve change the draft, and a revision is between.
    change(&bob, "second");
    people
        .ask(&tim, "POST", &format!("{version}/revisions"), json!({}))
        .expect(201);
    change(&eve, "third");
    // One who changes nothing is no author.
    people
        .ask(&ann, "PUT", version, json!({"description": "the third one"}))
        .expect(200);
    let asked = people.ask(&eve, "POST", APPROVALS, json!({"publication": "pets/1.0.0/prod"}));
    let asked = asked.expect(201).json();
    assert_eq!(asked["authors"], json!(["bob", "eve", "tim"]), "{asked:#}");
    let asked = format!("{APPROVALS}/{}", asked["id"].as_str().expect("an id"));
    for (who, token) in [("bob", &bob), ("eve", &eve), ("tim", &tim)] {
        let refused = people.decide(token, &asked, "granted").expect(403);
        let expected = format!("{who} has edited a part of this content");
        assert!(refused.body.contains(&expected), "{who}: {refused:?}");
    }
    people.decide(&ann, &asked, "granted").expect(200);
}

/// Who may test an API sees no routes of other APIs by that.
#[test]
fn a_test_reveals_nothing_of_routes_of_others() {
    let plane = two_apis();
    let people = Users::of(&plane);
    let owner = people.add("ann", json!([{"api": "pets", "role": "api-owner"}]));
    let root = people.root.clone();
    let hidden = json!({"url": "http://10.9.8.7:6543", "routes": [{"name": "secret-route", "hosts": ["other.test"], "paths": ["/v1/secret"]}]});
    people
        .ask(&root, "PUT", "/api/v1/resources/services/hidden", hidden)
        .expect(201);
    let path = "/api/v1/apis/pets/versions/1.0.0/tests";
    let request = json!({"host": "other.test", "path": "/secret"});
    for (name, expected) in [
        ("guess", json!({"target": "10.9.8.7:6543"})),
        ("forwarded", json!({"end": "forwarded"})),
        ("not-mine", json!({"operation": ""})),
        ("mine", json!({"operation": "listPets"})),
    ] {
        let test = json!({"request": request, "expected": expected});
        people
            .ask(&owner, "PUT", &format!("{path}/{name}"), test)
            .expect(201);
    }
    let server = upstream("pets");
    let run = |token: &str| {
        let body = json!({"environment": "test", "runtime": runtime(server)});
        people
            .ask(token, "POST", &format!("{path}/run"), body)
            .expect(200)
    };
    let passed = |report: &Value| {
        let results = report["results"].as_array().expect("a list").iter();
        let passed = results.filter(|it| it["passed"] == true);
        let mut names: Vec<String> = passed
            .filter_map(|it| it["name"].as_str().map(str::to_owned))
            .collect();
        names.sort();
        names
    };
    let output = run(&owner);
    assert_eq!(passed(&output.json()), ["not-mine"], "{output:?}");
    assert!(!output.body.contains("secret-route"), "{output:?}");
    assert_eq!(
        output.body.matches("10.9.8.7").count(),
        1,
        "only what the test itself expects: {output:?}"
    );
    assert_eq!(passed(&run(&root).json()), ["forwarded", "guess", "not-mine"]);
}
