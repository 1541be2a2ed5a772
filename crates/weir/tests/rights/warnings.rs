//! What answers say in addition to what was asked: that a plugin is not served, and what stands at `/` below a
//! workspace.

use crate::plane::Plane;
use serde_json::{Value, json};
use weir_control::access::{EVERYWHERE, Role};

#[tokio::test]
async fn a_write_says_that_a_plugin_is_not_served() {
    let plane = Plane::new().await;
    plane.add("admin", &[(EVERYWHERE, Role::Admin)]);
    plane
        .expect("admin", "POST", "/workspaces", &json!({"name": "team-a"}))
        .await;
    for (path, body, expected) in [
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000001",
            json!({"name": "ai-prompt-guard", "config": {"deny_patterns": ["s3"]}}),
            "'ai-prompt-guard'",
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000001",
            json!({"name": "ai-prompt-guard", "enabled": false, "config": {"deny_patterns": ["s3"]}}),
            "",
        ),
        (
            "/plugins/5f3e1c80-0000-4000-8000-000000000001",
            json!({"name": "cors"}),
            "",
        ),
        (
            "/apisix/admin/routes/1",
            json!({"uri": "/", "plugins": {"inspect": {}}}),
            "'inspect'",
        ),
        (
            "/apisix/admin/routes/1",
            json!({"uri": "/", "plugins": {"cors": {}}}),
            "",
        ),
    ] {
        let (status, warning, answer) = plane.call("admin", "PUT", path, &body).await;
        assert!(status < 300, "{path}: {answer}");
        assert_eq!(warning.is_empty(), expected.is_empty(), "{body}: {warning}");
        assert!(
            warning.contains(expected) && !warning.contains("s3"),
            "{body}: {warning}"
        );
    }
    // What stands at `/` is asked for so below a workspace.
    for (path, status) in [
        ("/", 200),
        ("/team-a/kong", 200),
        ("/default/kong", 200),
        ("/none/kong", 404),
    ] {
        let (found, _, answer) = plane.call("admin", "GET", path, &Value::Null).await;
        assert_eq!(found, status, "{path}");
        assert_eq!(answer.contains("\"version\""), status == 200, "{path}: {answer}");
    }
}
