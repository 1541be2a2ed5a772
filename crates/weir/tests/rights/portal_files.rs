//! A portal as files: what is read from one Weir is applied to another, whole or not at all.

use crate::portal::{Portal, URL};
use axum::http::Method;
use serde_json::{Value, json};

const FILES: &str = "/api/v1/portals/main/files";

async fn apply(portal: &Portal, body: &Value) -> Result<Value, String> {
    let done = portal.admin.call("root", Method::PUT, FILES, Some(body)).await;
    done.map_err(|problem| format!("{problem:?}"))
}

async fn export(portal: &Portal) -> Value {
    let done = portal.admin.call("root", Method::GET, FILES, None).await;
    done.expect("the portal")
}

fn page(title: &str) -> Value {
    json!({ "title": title, "body": format!("# {title}\n"), "visibility": "public", "menu": true, "published": true })
}

#[tokio::test]
async fn a_portal_is_carried_from_one_weir_to_another() {
    let (one, other) = (Portal::start().await, Portal::start().await);
    let logo = "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0h8v8z\"/></svg>";
    let document = json!({
        "display_name": "Main", "url": URL, "home": "Hello", "logo": logo,
        "theme": { "light": { "accent": "#7a1f5c" } },
    });
    one.put("/api/v1/portals/main", document).await;
    for name in ["terms", "start"] {
        one.put(&format!("/api/v1/portals/main/pages/{name}"), page(name))
            .await;
    }
    let files = export(&one).await;
    assert_eq!(files["portal"]["logo"], logo);
    assert_eq!(
        files["portal"]["name"],
        Value::Null,
        "the name is that of the place"
    );
    let made = apply(&other, &files).await.expect("applied");
    let expected = json!({ "portal": "made", "made": ["start", "terms"], "changed": [], "removed": [] });
    assert_eq!(made, expected);
    assert_eq!(export(&other).await, files);
    let again = apply(&other, &files).await.expect("applied");
    let expected = json!({ "portal": "unchanged", "made": [], "changed": [], "removed": [] });
    assert_eq!(again, expected);
    let changed =
        json!({ "portal": files["portal"], "pages": { "start": page("Begin"), "new": page("New") } });
    let done = apply(&other, &changed).await.expect("applied");
    let expected =
        json!({ "portal": "unchanged", "made": ["new"], "changed": ["start"], "removed": ["terms"] });
    assert_eq!(done, expected);
    assert_eq!(export(&other).await["pages"], changed["pages"]);
}

#[tokio::test]
async fn files_with_a_fault_change_nothing() {
    let portal = Portal::start().await;
    let good =
        json!({ "portal": { "display_name": "Main", "url": URL }, "pages": { "start": page("Start") } });
    apply(&portal, &good).await.expect("applied");
    let before = export(&portal).await;
    for (body, expected) in [
        (
            json!({ "portal": {}, "pages": { "A B": page("x") } }),
            "is not a valid name",
        ),
        (
            json!({ "portal": {}, "pages": { "start": { "title": "", "body": "" } } }),
            "pages.start.title",
        ),
        (
            json!({ "portal": {}, "pages": { "start": { "titel": "x" } } }),
            "titel",
        ),
        (
            json!({ "portal": { "theme": { "light": { "accent": "#cccccc" } } }, "pages": {} }),
            "contrast",
        ),
        (
            json!({ "portal": { "logo": "<svg onload=\"x\"></svg>" }, "pages": {} }),
            "not allowed in a logo",
        ),
        (
            json!({ "portal": { "apis": ["none"] }, "pages": {} }),
            "there is no API 'none'",
        ),
        (json!({ "pages": {} }), "expected an object in 'portal'"),
        (json!({ "portal": {}, "page": {} }), "'page' is not known"),
        (json!({ "portal": {} }), "pages: expected an object"),
        (json!({ "portal": {}, "pages": [] }), "pages: expected an object"),
        (
            json!({ "portal": {}, "pages": { "new": { "title": "New", "body": "", "api": "none", "published": true } } }),
            "none",
        ),
    ] {
        let refused = apply(&portal, &body).await.expect_err("refused");
        assert!(refused.contains(expected), "{body}: {refused}");
        assert_eq!(export(&portal).await, before, "{body} has changed something");
    }
}
