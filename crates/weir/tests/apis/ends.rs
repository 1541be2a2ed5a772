//! Ends that gateways carry out by themselves.

use crate::support::{Answer, Call, until, upstream};
use crate::weir::Weir;
use crate::{Plane, petstore};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The defect: the control plane's clock took the old key of a rotation, and a subscription that had ended, out of what
/// gateways serve. While it was away, they served both.
#[test]
fn gateways_carry_ends_out_while_the_control_plane_is_away() {
    let plane = Plane::start();
    plane.version(&petstore());
    let plan = json!({"state": "published", "overlap": 12});
    let path = "/api/v1/apis/pets/versions/1.0.0/plans/gold";
    plane.put(path, plan).expect(201);
    plane.publish("test", upstream("pets"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let end = now.expect("after 1970").as_secs() + 12;
    let subscribe = |application: &str, end: Option<u64>| {
        let path = format!("/api/v1/applications/{application}");
        plane.put(&path, json!({})).expect(201);
        let mut wanted =
            json!({"application": application, "publication": "pets/1.0.0/test", "plan": "gold"});
        if let Some(end) = end {
            wanted["ends"] = end.into();
        }
        plane.post("/api/v1/subscriptions", wanted).expect(201).json()
    };
    let (rotating, ending) = (subscribe("shop", None), subscribe("till", Some(end)));
    let text = |value: &Value, pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.expect("a text").to_owned()
    };
    let path = format!("/api/v1/subscriptions/{}/credentials", text(&rotating, "/id"));
    let replaces = json!({"replaces": text(&rotating, "/credential/id")});
    let fresh = text(&plane.post(&path, replaces).expect(201).json(), "/key");
    let (old, ended) = (
        text(&rotating, "/credential/key"),
        text(&ending, "/credential/key"),
    );
    let control = format!("http://{}", plane.weir.console());
    let folder = tempfile::tempdir().expect("a folder");
    let role = ["--role", "gateway", "--control", &control];
    let gateway = Weir::start(folder.path(), &[&role[..], &["--environment", "test"]].concat());
    let call = |key: &str| -> Option<Answer> {
        Call::get(&gateway.proxy(), "/v1/pets")
            .header("X-API-Key", key)
            .attempt()
    };
    let status = |key: &str| call(key).map(|it| it.status);
    until("the gateway knows the new key", || status(&fresh) == Some(200));
    plane.weir.kill();
    until("the old key has ended", || status(&old) == Some(401));
    until("the subscription has ended", || status(&ended) == Some(403));
    assert_eq!(status(&fresh), Some(200), "what does not end is served");
    let problem = |key: &str| {
        let mut problem = call(key).expect("an answer").json();
        problem["request_id"] = Value::Null;
        problem
    };
    assert_eq!(
        problem(&old),
        problem("unknown"),
        "no other answer than that of a key that is gone"
    );
    let refused = problem(&ended);
    assert_eq!(
        (&refused["type"], &refused["detail"]),
        (
            &json!("urn:weir:problem:subscription-ended"),
            &json!("The subscription has ended.")
        )
    );
}
