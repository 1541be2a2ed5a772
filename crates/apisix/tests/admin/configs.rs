//! The whole configuration at once.

use crate::api::Api;
use serde_json::json;

#[tokio::test]
async fn the_whole_is_put_and_read() {
    let api = Api::open().await;
    let nothing = api.call("GET configs", "", &[]).await;
    assert_eq!(
        (nothing.status, &nothing.json()["routes_conf_version"]),
        (200, &json!(0))
    );
    let body = json!({
        "routes": [{"id": "r", "uri": "/a", "upstream_id": "u", "modifiedIndex": 1}],
        "upstreams": [{"id": "u", "nodes": {"127.0.0.1:80": 1}}],
        "consumers": [
            {"username": "jack"},
            {"id": "jack/credentials/c", "plugins": {"key-auth": {"key": "k"}}},
        ],
        "routes_conf_version": 5,
    });
    for (headers, body, status, words) in [
        (&[][..], body.to_string(), 400, "missing digest header"),
        (
            &["x-digest: 1"],
            String::new(),
            400,
            "invalid request body: empty request body",
        ),
        (
            &["x-digest: 1"],
            "{".to_owned(),
            400,
            "invalid request body: Expected object key string but found T_END at character 2",
        ),
        (
            &["x-digest: 1"],
            json!({"routes": [{"id": "r"}]}).to_string(),
            400,
            "",
        ),
        (
            &["x-digest: 1"],
            json!({"routes_conf_version": "x"}).to_string(),
            400,
            "routes_conf_version must be a number",
        ),
        (&["x-digest: 1"], body.to_string(), 202, ""),
        (&["x-digest: 1"], "{}".to_owned(), 204, ""),
        (
            &["x-digest: 2"],
            json!({"routes_conf_version": 4}).to_string(),
            400,
            "routes_conf_version must be greater than or equal to (5)",
        ),
    ] {
        let answer = api.call("PUT configs", &body, headers).await;
        assert_eq!(answer.status, status, "{body} {}", answer.text);
        if !words.is_empty() {
            assert_eq!(answer.json()["error_msg"], words);
        }
    }
    let whole = api.call("GET configs", "", &[]).await;
    assert_eq!(whole.header("x-digest"), Some("1"));
    assert_eq!(whole.header("x-last-modified"), Some("1700000000"));
    let found = whole.json();
    for (field, wanted) in [
        ("routes", &body["routes"]),
        ("upstreams", &body["upstreams"]),
        ("consumers", &body["consumers"]),
        ("routes_conf_version", &json!(5)),
        ("upstreams_conf_version", &json!(1)),
        ("X-Digest", &json!("1")),
    ] {
        assert_eq!(&found[field], wanted, "{field}");
    }
    assert_eq!(api.call("GET routes/r", "", &[]).await.status, 200);
    // A list of the same version stays as it is; one without a version is another one.
    let body = json!({"routes": [], "routes_conf_version": 5}).to_string();
    let answer = api.call("PUT configs", &body, &["x-digest: 3"]).await;
    assert_eq!(answer.status, 202);
    let found = api.call("GET configs", "", &[]).await.json();
    assert_eq!(
        (found["routes"].is_null(), found["upstreams"].is_null()),
        (false, true)
    );
    // A single write takes the whole's digest away, so that the same whole can be put again.
    assert_eq!(api.call("DELETE routes/r", "", &[]).await.status, 200);
    let head = api.call("HEAD configs", "", &[]).await;
    assert_eq!(
        (head.status, head.header("x-digest"), head.text.as_str()),
        (200, None, "")
    );
    assert_eq!(
        api.call("GET configs", "", &[]).await.json()["routes_conf_version"],
        6
    );
}

#[tokio::test]
async fn yaml_is_taken_too() {
    let api = Api::open().await;
    let body = "routes:\n- id: r\n  uri: /a\n  plugins: {}\n";
    let headers = ["x-digest: 1", "content-type: application/yaml"];
    assert_eq!(api.call("PUT configs", body, &headers).await.status, 202);
    let answer = api.call("GET configs", "", &["accept: application/yaml"]).await;
    assert_eq!(answer.header("content-type"), Some("application/yaml"));
    assert_eq!(answer.json()["routes"][0]["id"], "r");
}

#[tokio::test]
async fn all_faults_are_reported_at_once() {
    let api = Api::open().await;
    let body = json!({
        "routes": [
            {"id": "1", "uri": "/", "plugins": {}},
            {"id": "1", "uri": "/", "plugins": {"limit-count": {"count": 1}}},
            {"id": "2", "uri": "/", "upstream_id": "not-there"},
        ],
        "consumers": [{"username": "a"}, {"username": "a"}],
        "secrets": [{"id": "x"}],
        "services_conf_version": "1",
    });
    let answer = api.call("POST configs/validate", &body.to_string(), &[]).await;
    assert_eq!(answer.status, 400);
    let shown_config = answer.json();
    assert_eq!(shown_config["error_msg"], "Configuration validation failed");
    let errors = shown_config["errors"].as_array().expect("a list");
    let short: Vec<_> = errors
        .iter()
        .map(|error| {
            (
                error["resource_type"].as_str().expect("text"),
                error["index"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            ("routes", Some(1)),
            ("routes", Some(1)),
            ("services", None),
            ("consumers", Some(1)),
            ("secrets", Some(0)),
        ],
        "{shown_config}"
    );
    assert_eq!(errors[1]["error"], "found duplicate id 1 in routes");
    assert_eq!(
        errors[2]["error"],
        "services_conf_version must be a number, got string"
    );
    assert_eq!(errors[3]["error"], "found duplicate username a in consumers");
    assert_eq!(errors[4]["error"], "invalid secret id: x");
    let answer = api.call("POST configs/validate", "{}", &[]).await;
    assert_eq!((answer.status, answer.text.trim_end()), (200, "{}"));
}
