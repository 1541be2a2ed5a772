//! Weir's own API: validation, ETags, history, roll back, OpenAPI; and the commands that talk to it.

use crate::support::{Call, Weir, status_of, until, upstream};

const FLAGS: [&str; 4] = ["--data", "data", "--console", "127.0.0.1:0"];

fn service(server: &str, path: &str) -> String {
    format!("{{\"url\": \"http://{server}\", \"routes\": [{{\"name\": \"r\", \"paths\": [\"{path}\"]}}]}}")
}

fn put(weir: &Weir, body: &str) -> Call {
    Call::new("PUT", &weir.console(), "/api/v1/resources/services/s").body(body)
}

#[track_caller]
fn says(weir: &Weir, arguments: &[&str]) -> String {
    let output = weir.ask(None, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_is_invalid_is_refused_and_nothing_is_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &FLAGS);
    for (body, status, part) in [
        ("{", 400, ""),
        ("[]", 400, "expected a map"),
        ("{\"name\": \"t\", \"url\": \"http://h\"}", 422, "expected 's'"),
        ("{\"urll\": \"http://h\"}", 422, "url"),
        ("{\"upstream\": \"gone\"}", 422, "no upstream is named 'gone'"),
        (
            "{\"url\": \"http://h\", \"routes\": [{\"name\": \"r\", \"paths\": [\"~/(\"]}]}",
            422,
            "regular expression",
        ),
    ] {
        let answer = put(&weir, body).make().expect(status);
        assert_eq!(
            answer.header("content-type").as_deref(),
            Some("application/problem+json")
        );
        assert!(answer.body.contains(part), "{body}: {answer:?}");
    }
    Call::get(&weir.console(), "/api/v1/resources/services/s")
        .make()
        .expect(404);
    Call::get(&weir.console(), "/api/v1/resources/cats")
        .make()
        .expect(404);
    let history = Call::get(&weir.console(), "/api/v1/history").make().json();
    assert_eq!(history["items"], serde_json::json!([]));
    let dry = put(&weir, &service("127.0.0.1:1", "/a"))
        .header("Weir-Dry-Run", "true")
        .make()
        .expect(201);
    assert_eq!(dry.header("weir-dry-run").as_deref(), Some("true"));
    Call::get(&weir.console(), "/api/v1/resources/services/s")
        .make()
        .expect(404);
}

#[test]
fn of_two_writers_with_one_etag_one_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(folder.path(), &FLAGS);
    put(&weir, &service("127.0.0.1:1", "/0")).make().expect(201);
    for round in 0..10 {
        let tag = Call::get(&weir.console(), "/api/v1/resources/services/s")
            .make()
            .header("etag");
        let tag = tag.expect("a tag");
        let write = |path: String| {
            let call = put(&weir, &service("127.0.0.1:1", &path)).header("If-Match", &tag);
            std::thread::spawn(move || call.make().status)
        };
        let writers: Vec<_> = (0..4).map(|writer| write(format!("/{round}/{writer}"))).collect();
        let mut statuses: Vec<u16> = writers
            .into_iter()
            .map(|it| it.join().expect("a status"))
            .collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 412, 412, 412]);
    }
}

#[test]
fn history_diff_and_roll_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a").to_string();
    let weir = Weir::start(folder.path(), &FLAGS);
    let first = put(&weir, &service(&server, "/one")).make().expect(201);
    let first = first.header("etag").expect("a tag").trim_matches('"').to_owned();
    put(&weir, &service(&server, "/two")).make().expect(200);
    let other = Call::new("PUT", &weir.console(), "/api/v1/resources/consumers/c").body("{}");
    other.make().expect(201);
    until("the newest is served", || {
        status_of(&weir.proxy(), "/two") == Some(200)
    });

    let history = says(&weir, &["history"]);
    assert!(history.contains("created native/consumers/c"), "{history}");
    assert!(
        history.contains("by anonymous (PUT /api/v1/resources/services/s)"),
        "{history}"
    );
    let diff = says(&weir, &["diff", &first]);
    assert!(diff.contains("+ native/consumers/c"), "{diff}");
    assert!(diff.contains("~ native/services/s"), "{diff}");
    let dry = says(&weir, &["rollback", &first, "--dry-run"]);
    assert!(dry.contains("- native/consumers/c"), "{dry}");
    assert_eq!(says(&weir, &["diff", &first]), diff, "a dry run changes nothing");

    says(&weir, &["rollback", &first]);
    assert_eq!(says(&weir, &["diff", &first]), "no difference\n");
    until("what was is served", || {
        status_of(&weir.proxy(), "/one") == Some(200)
    });
    assert_eq!(status_of(&weir.proxy(), "/two"), Some(404));
    Call::get(&weir.console(), "/api/v1/resources/consumers/c")
        .make()
        .expect(404);
    let output = weir.ask(None, &["rollback", "999999"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn a_second_import_is_a_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = upstream("a");
    let weir = Weir::start(folder.path(), &FLAGS);
    let document = folder.path().join("openapi.yaml");
    let write = |paths: &str| {
        let text = format!(
            "openapi: 3.0.3\ninfo: {{title: Pets, version: '1'}}\nservers: [{{url: 'http://{server}'}}]\npaths: {paths}\n"
        );
        std::fs::write(&document, text).expect("a file");
    };
    write("{/pets: {get: {operationId: list}}, '/pets/{id}': {get: {operationId: one}}}");
    let file = document.to_str().expect("text");
    let output = says(&weir, &["import", file]);
    assert_eq!(
        output,
        "service pets created\n+ route pets.list\n+ route pets.one\n"
    );
    until("operations are served", || {
        status_of(&weir.proxy(), "/pets/7") == Some(200)
    });
    assert_eq!(says(&weir, &["import", file]), "service pets: no difference\n");
    write("{/pets: {get: {operationId: list}}, /cats: {get: {operationId: cats}}}");
    assert_eq!(
        says(&weir, &["import", file]),
        "service pets changed\n+ route pets.cats\n- route pets.one\n"
    );
    until("the difference is served", || {
        status_of(&weir.proxy(), "/cats") == Some(200)
    });
    until("what is gone is not", || {
        status_of(&weir.proxy(), "/pets/7") == Some(404)
    });
}
