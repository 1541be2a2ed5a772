//! Writes through every dialect are served, and are there after a restart.

use crate::support::{ALL_APIS, Call, STOCK_KEY, Weir, status_of, until, upstream};

#[test]
fn writes_are_served_and_outlive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    assert_eq!(status_of(&weir.proxy(), "/kong"), Some(404));
    let service = format!("{{\"url\": \"http://{server}\"}}");
    Call::new("PUT", &weir.kong(), "/services/s")
        .body(&service)
        .make()
        .expect(200);
    Call::new("PUT", &weir.kong(), "/services/s/routes/r")
        .body("{\"paths\": [\"/kong\"]}")
        .make()
        .expect(200);
    let route = format!(
        "{{\"uri\": \"/apisix\", \"upstream\": {{\"nodes\": {{\"{server}\": 1}}, \"type\": \"roundrobin\"}}}}"
    );
    Call::new("PUT", &weir.apisix(), "/apisix/admin/routes/1")
        .header("X-API-KEY", STOCK_KEY)
        .body(&route)
        .make()
        .expect(201);
    let service = format!(
        "{{\"url\": \"http://{server}\", \"routes\": [{{\"name\": \"n\", \"paths\": [\"/native\"]}}]}}"
    );
    Call::new("PUT", &weir.console(), "/api/v1/resources/services/n")
        .body(&service)
        .make()
        .expect(201);
    let paths = ["/kong", "/apisix", "/native"];
    let is_served = |weir: &Weir| {
        paths
            .iter()
            .all(|path| status_of(&weir.proxy(), path) == Some(200))
    };
    until("all dialects' routes are served", || is_served(&weir));
    let documents = || Call::get(&weir.status(), "/status").make().json()["store"]["documents"].clone();
    until("the state tells of all", || documents() == 4);
    let hash = weir.hash();
    weir.kill();
    let weir = Weir::start(folder.path(), &ALL_APIS);
    assert!(is_served(&weir), "what is ready serves what is stored");
    assert_eq!(weir.hash(), hash);
    Call::new("DELETE", &weir.kong(), "/routes/r").make().expect(204);
    until("the route is gone", || {
        status_of(&weir.proxy(), "/kong") == Some(404)
    });
}

/// APISIX's Admin API looks at shapes. What only the gateway finds to be wrong costs the route that asks for it.
#[test]
fn a_destination_that_is_none_stops_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    let put = |weir: &Weir, id: &str, plugins: &str| {
        let route = format!(
            "{{\"uri\": \"/{id}\", \"plugins\": {{{plugins}}}, \"upstream\": {{\"nodes\": {{\"{server}\": 1}}, \"type\": \"roundrobin\"}}}}"
        );
        let call = Call::new("PUT", &weir.apisix(), &format!("/apisix/admin/routes/{id}"));
        call.header("X-API-KEY", STOCK_KEY)
            .body(&route)
            .make()
            .expect(201);
    };
    let upstream = "{\"type\": \"roundrobin\", \"pass_host\": \"rewrite\", \"upstream_host\": \"a:b\", \"nodes\": {\"127.0.0.1:1\": 1}}";
    put(
        &weir,
        "wrong",
        &format!(
            "\"traffic-split\": {{\"rules\": [{{\"weighted_upstreams\": [{{\"weight\": 1, \"upstream\": {upstream}}}]}}]}}"
        ),
    );
    put(&weir, "good", "");
    until("the other is served", || {
        status_of(&weir.proxy(), "/good") == Some(200)
    });
    until("what is wrong is named", || {
        let status = Call::get(&weir.status(), "/status").make().json();
        status["store"]["skipped"].to_string().contains("'a:b'")
    });
    weir.kill();
    let weir = Weir::start(folder.path(), &ALL_APIS);
    assert_eq!(status_of(&weir.proxy(), "/good"), Some(200));
    assert_eq!(status_of(&weir.proxy(), "/wrong"), Some(503));
}

#[test]
fn a_broken_document_does_not_stop_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let weir = Weir::start(folder.path(), &ALL_APIS);
    // What one dialect takes as good may not fit together with another's: two resources of one name.
    let service = format!(
        "{{\"url\": \"http://{server}\", \"routes\": [{{\"name\": \"n\", \"paths\": [\"/good\"]}}]}}"
    );
    Call::new("PUT", &weir.console(), "/api/v1/resources/services/n")
        .body(&service)
        .make()
        .expect(201);
    let plugin = "{\"uri\": \"/bad\", \"plugins\": {\"key-auth\": {}}, \"upstream_id\": \"none\"}";
    let answer = Call::new("PUT", &weir.apisix(), "/apisix/admin/routes/1?force=true")
        .header("X-API-KEY", STOCK_KEY)
        .body(plugin)
        .make();
    assert_eq!(answer.status, 400, "{answer:?}");
    until("the good one is served", || {
        status_of(&weir.proxy(), "/good") == Some(200)
    });
    let status = Call::get(&weir.status(), "/status").make().json();
    assert_eq!(status["store"]["skipped"], serde_json::json!([]));
}
