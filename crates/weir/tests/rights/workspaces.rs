//! Callers who may write in one workspace take nothing of another.

use crate::plane::{Plane, certificate};
use serde_json::{Value, json};
use weir_control::access::{EVERYWHERE, Role};

/// What a writer of `team-a` tries, and how it is answered.
fn writes(
    pay: &Value,
    certificates: &dyn Fn(&str) -> Value,
) -> Vec<(&'static str, &'static str, Value, u16)> {
    vec![
        ("POST", "/team-a/routes", pay.clone(), 409),
        ("PUT", "/team-a/routes/x", pay.clone(), 409),
        ("PATCH", "/team-a/routes/own", json!({"paths": ["/pay"]}), 409),
        (
            "PATCH",
            "/team-a/routes/own",
            json!({"hosts": ["a.shop.test"], "methods": ["GET"]}),
            409,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/"], "hosts": ["pay.test"], "methods": ["GET"]}),
            409,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"protocols": ["tcp"], "sources": [{"ip": "10.0.0.0/8"}]}),
            409,
        ),
        (
            "POST",
            "/team-a/vaults",
            json!({"name": "env", "prefix": "v"}),
            409,
        ),
        ("POST", "/team-a/certificates", certificates("a.bank.test"), 409),
        ("POST", "/team-a/certificates", certificates("*.bank.test"), 409),
        // What belongs to no one else.
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/"], "hosts": ["own.test"], "methods": ["PUT"], "protocols": ["https"], "headers": {"a": ["b"]}, "name": "wide"}),
            409,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/other"], "hosts": ["own.test"], "name": "narrow"}),
            201,
        ),
        (
            "POST",
            "/team-a/routes",
            json!({"paths": ["/"], "name": "rest"}),
            201,
        ),
        ("PATCH", "/team-a/routes/own", json!({"tags": ["t"]}), 200),
        ("POST", "/team-a/certificates", certificates("a.own.test"), 201),
    ]
}

#[tokio::test]
async fn a_writer_takes_nothing_of_another_workspace() {
    let plane = Plane::new().await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane.add("mallory", &[("team-a", Role::Write)]);
    plane.add("both", &[("team-a", Role::Write), ("default", Role::Write)]);
    plane.add("peeping", &[("team-a", Role::Write), ("default", Role::Read)]);
    for name in ["team-a", "team-b"] {
        plane
            .expect("admin", "POST", "/workspaces", &json!({"name": name}))
            .await;
    }
    let (certificate, key) = certificate();
    for (path, body) in [
        ("/routes/pay", json!({"paths": ["/pay"]})),
        (
            "/team-b/routes/shop",
            json!({"hosts": ["*.shop.test"], "paths": ["/"]}),
        ),
        (
            "/routes/tcp",
            json!({"protocols": ["tcp"], "destinations": [{"port": 9000}]}),
        ),
        ("/vaults/v", json!({"name": "env", "prefix": "v"})),
        (
            "/certificates/5f3e1c80-0000-4000-8000-000000000002",
            json!({"cert": certificate, "key": key, "snis": ["*.bank.test"]}),
        ),
    ] {
        plane.expect("admin", "PUT", path, &body).await;
    }
    let pay = json!({"paths": ["/pay"], "hosts": ["pay.test"], "methods": ["GET"], "headers": {"x": ["y"]}});
    let own = json!({"name": "own", "paths": ["/own"]});
    plane.expect("mallory", "POST", "/team-a/routes", &own).await;
    let certificates = |name: &str| json!({"cert": certificate, "key": key, "snis": [name]});
    for (method, path, body, status) in writes(&pay, &certificates) {
        let (found, _, answer) = plane.call("mallory", method, path, &body).await;
        assert_eq!(found, status, "{method} {path} {body}: {answer}");
        if status == 409 {
            let document: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(document["name"], "unique constraint violation", "{answer}");
            assert!(
                !answer.contains("default") && !answer.contains("team-b"),
                "{answer}"
            );
        }
    }
    for (who, status) in [("peeping", 409), ("both", 200), ("admin", 200)] {
        let (found, _, answer) = plane.call(who, "PUT", "/team-a/routes/x", &pay).await;
        assert_eq!(found, status, "{who}: {answer}");
    }
    // What is there stays as it is; it is not made to take more.
    plane
        .expect("mallory", "PATCH", "/team-a/routes/x", &json!({"tags": ["t"]}))
        .await;
    let (found, ..) = plane
        .call(
            "mallory",
            "PATCH",
            "/team-a/routes/x",
            &json!({"methods": ["PUT"]}),
        )
        .await;
    assert_eq!(found, 409);
}
