//! Reviews of drafts: who asks, who decides, and that an edit ends both the review and the approvals of what was there.

use crate::approving::Users;
use crate::support::upstream;
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};

const VERSION: &str = "/api/v1/apis/pets/versions/1.0.0";
const REVIEW: &str = "/api/v1/apis/pets/versions/1.0.0/review";
const DECISION: &str = "/api/v1/apis/pets/versions/1.0.0/review/decision";

fn titled(title: &str) -> Value {
    let mut document = petstore();
    document["info"]["title"] = title.into();
    json!({"spec": document})
}

#[test]
fn a_review_by_another_person_counts_until_the_draft_changes() {
    let plane = Plane::start();
    plane.version(&petstore());
    let people = Users::of(&plane);
    let both = || json!([{"role": "api-owner"}, {"role": "approver"}]);
    let (ann, bob) = (people.add("ann", both()), people.add("bob", both()));
    let viewer = people.add("vic", json!([{"role": "viewer"}]));
    let elsewhere = people.add("eve", json!([{"api": "cats", "role": "approver"}]));
    let state = || people.ask(&ann, "GET", REVIEW, Value::Null).expect(200).json()["state"].clone();
    people.ask(&ann, "PUT", VERSION, titled("second")).expect(200);
    let early = people
        .ask(&bob, "POST", DECISION, json!({"state": "approved"}))
        .expect(409);
    assert!(early.body.contains("expected"), "{early:?}");
    people.ask(&viewer, "POST", REVIEW, json!({})).expect(403);
    let asked = people
        .ask(&ann, "POST", REVIEW, json!({"reason": "paging"}))
        .expect(200)
        .json();
    assert_eq!(
        (
            &asked["state"],
            &asked["review"]["requested_by"],
            &asked["review"]["reason"]
        ),
        (&json!("in-review"), &json!("ann"), &json!("paging"))
    );
    people
        .ask(&elsewhere, "POST", DECISION, json!({"state": "approved"}))
        .expect(403);
    people.ask(&bob, "DELETE", REVIEW, Value::Null).expect(403);
    let own = people
        .ask(&ann, "POST", DECISION, json!({"state": "approved"}))
        .expect(403);
    assert!(own.body.contains("another person"), "{own:?}");
    people
        .ask(&bob, "POST", DECISION, json!({"state": "changes-asked"}))
        .expect(422);
    people
        .ask(&bob, "POST", DECISION, json!({"state": "clean"}))
        .expect(422);
    let asked = json!({"state": "changes-asked", "reason": "no 'limit' without a maximum"});
    let answer = people.ask(&bob, "POST", DECISION, asked).expect(200).json();
    assert_eq!(
        (
            &answer["state"],
            &answer["review"]["decided_by"],
            &answer["review"]["decision"]
        ),
        (
            &json!("changes-asked"),
            &json!("bob"),
            &json!("no 'limit' without a maximum")
        )
    );
    people.ask(&ann, "PUT", VERSION, titled("third")).expect(200);
    assert_eq!(state(), "changed");
    people.ask(&ann, "POST", REVIEW, json!({})).expect(200);
    people.ask(&ann, "DELETE", REVIEW, Value::Null).expect(204);
    assert_eq!(state(), "changed");
    people.ask(&ann, "DELETE", REVIEW, Value::Null).expect(409);

    // A revision for a first environment does not end a review: its content is the same.
    people.ask(&ann, "POST", REVIEW, json!({})).expect(200);
    people
        .ask(&ann, "POST", &format!("{VERSION}/revisions"), json!({}))
        .expect(201);
    assert_eq!(state(), "in-review");
    let own = people
        .ask(&ann, "POST", DECISION, json!({"state": "approved"}))
        .expect(403);
    assert!(own.body.contains("ann edited a part"), "{own:?}");
    let stale = json!({"state": "approved", "hash": "0"});
    people.ask(&bob, "POST", DECISION, stale).expect(409);
    people
        .ask(&bob, "POST", DECISION, json!({"state": "approved"}))
        .expect(200);
    assert_eq!(state(), "approved");
    people
        .ask(
            &ann,
            "PUT",
            VERSION,
            json!({"description": "no part of a revision"}),
        )
        .expect(200);
    assert_eq!(state(), "approved", "for one content, which is the same");
    people.ask(&ann, "PUT", VERSION, titled("fourth")).expect(200);
    assert_eq!(state(), "changed");
    people.ask(&ann, "POST", REVIEW, json!({})).expect(200);
    people
        .ask(&bob, "POST", DECISION, json!({"state": "approved"}))
        .expect(200);
    let made = people
        .ask(&ann, "POST", &format!("{VERSION}/revisions"), json!({}))
        .expect(201)
        .json();
    assert_eq!((&made["reviewed_by"], state()), (&json!("bob"), json!("clean")));
}

/// Who has made a part is told even after a revision was made of it, and lists of versions tell who asks.
#[test]
fn who_cannot_approve_is_told_and_who_asks() {
    let plane = Plane::start();
    plane.version(&petstore());
    let people = Users::of(&plane);
    let ann = people.add("ann", json!([{"role": "api-owner"}]));
    people.ask(&ann, "PUT", VERSION, titled("second")).expect(200);
    people.ask(&ann, "POST", REVIEW, json!({})).expect(200);
    people
        .ask(&ann, "POST", &format!("{VERSION}/revisions"), json!({}))
        .expect(201);
    let known = people.ask(&ann, "GET", REVIEW, Value::Null).expect(200).json();
    assert_eq!(
        (&known["state"], &known["authors"]),
        (&json!("in-review"), &json!(["ann", "anonymous"]))
    );
    let all = people.ask(&ann, "GET", "/api/v1/versions", Value::Null).json();
    assert_eq!(all["items"][0]["draft"]["review"]["requested_by"], "ann");
}

/// 8: an approval of what a draft held is outdated with the next edit, whether it was granted or is open.
#[test]
fn an_edit_makes_approvals_outdated_that_were_not_used() {
    let plane = Plane::start();
    plane
        .put(
            "/api/v1/environments/prod",
            json!({"kind": "production", "protected": true}),
        )
        .expect(200);
    plane.version(&petstore());
    let people = Users::of(&plane);
    let (ann, bob) = (
        people.add("ann", json!([{"role": "api-owner"}])),
        people.add("bob", json!([{"role": "approver"}])),
    );
    let publication = "/api/v1/publications/pets/1.0.0/prod";
    let ask = || {
        let wish = json!({"publication": "pets/1.0.0/prod", "runtime": runtime(upstream("pets"))});
        people
            .ask(&ann, "POST", "/api/v1/approvals", wish)
            .expect(201)
            .json()
    };
    let of = |id: &Value| {
        let all = people.ask(&ann, "GET", "/api/v1/approvals", Value::Null).json();
        let items = all["items"].as_array().expect("a list").clone();
        items
            .into_iter()
            .find(|it| it["id"] == *id)
            .expect("the approval")
    };
    let path = |approval: &Value| format!("/api/v1/approvals/{}", approval["id"].as_str().expect("an id"));
    let (granted, open) = (ask(), ask());
    assert_ne!(granted["id"], open["id"]);
    people.decide(&bob, &path(&granted), "granted").expect(200);
    people.ask(&ann, "PUT", VERSION, titled("second")).expect(200);
    for approval in [&granted, &open] {
        let now = of(&approval["id"]);
        assert_eq!(now["state"], "outdated", "{now}");
        assert!(
            now["decision"]
                .as_str()
                .is_some_and(|it| it.contains("ann has changed the draft")),
            "{now}"
        );
    }
    people.decide(&bob, &path(&open), "granted").expect(409);
    let body = json!({"revision": 1, "runtime": granted["runtime"], "approval": granted["id"]});
    let refused = people.ask(&ann, "POST", publication, body).expect(409);
    assert!(refused.body.contains("approval-outdated"), "{refused:?}");

    // One that was used stays what it was.
    let used = ask();
    people.decide(&bob, &path(&used), "granted").expect(200);
    let body = json!({"runtime": used["runtime"], "approval": used["id"]});
    people.ask(&ann, "POST", publication, body).expect(200);
    people.ask(&ann, "PUT", VERSION, titled("third")).expect(200);
    assert_eq!(of(&used["id"])["state"], "granted");
}

#[test]
fn a_review_is_asked_for_and_decided_from_a_terminal() {
    let plane = Plane::start();
    plane.version(&petstore());
    let review = |more: &[&str]| plane.api(&[&["review", "pets", "1.0.0"], more].concat());
    let (code, stdout, stderr) = review(&["--reason", "paging"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "draft of pets 1.0.0: in review\n"),
        "{stderr}"
    );
    let (code, stdout, _) = review(&["--withdraw"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "draft of pets 1.0.0: no longer in review\n")
    );
    assert_eq!(review(&["--ask-changes"]).0, Some(2), "without a reason");
    assert_eq!(review(&["--approve"]).0, Some(1), "no review was asked for");
}

/// The defect: who had made an earlier revision of a draft approved the draft, as it was another person's by then.
#[test]
fn authors_of_earlier_revisions_do_not_approve_what_is_not_published() {
    let plane = Plane::start();
    plane.version(&petstore());
    let people = Users::of(&plane);
    let both = || json!([{"role": "api-owner"}, {"role": "approver"}]);
    let (ann, bob) = (people.add("ann", both()), people.add("bob", both()));
    let cyd = people.add("cyd", json!([{"role": "approver"}]));
    let approve = |token: &str| people.ask(token, "POST", DECISION, json!({"state": "approved"}));
    let write = |token: &str, title: &str| {
        people.ask(token, "PUT", VERSION, titled(title)).expect(200);
        people.ask(token, "POST", REVIEW, json!({})).expect(200);
    };
    people.ask(&ann, "PUT", VERSION, titled("second")).expect(200);
    people
        .ask(&ann, "POST", &format!("{VERSION}/revisions"), json!({}))
        .expect(201);
    write(&bob, "third");
    let own = approve(&ann).expect(403);
    assert!(own.body.contains("ann edited a part"), "{own:?}");
    approve(&cyd).expect(200);

    // What is published in all places where the version is, is no longer what a review is about.
    let body = json!({"runtime": runtime(upstream("pets"))});
    people
        .ask(&bob, "POST", "/api/v1/publications/pets/1.0.0/test", body)
        .expect(200);
    write(&bob, "fourth");
    approve(&ann).expect(200);
}
