//! Certificates that cannot be shown are refused from every source; those near their end are shown and reported.

use crate::support::{Call, STOCK_KEY, Weir, until};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const ANY: &str = "127.0.0.1:0";

/// A certificate for a name, good until a year begins, and its key.
fn self_signed_pem(name: &str, until: i32) -> [String; 2] {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let signed = params.self_signed(&key).expect("signed");
    [signed.pem(), key.serialize_pem()]
}

/// `weir check` of a document: its exit status, and what it says.
fn check(name: &str, document: &Value) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), document.to_string()).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["check", name])
        .current_dir(folder.path())
        .env_clear()
        .output()
        .expect("the binary runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

#[test]
fn certificates_that_cannot_be_used_are_refused_in_every_dialect() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = Weir::start(
        folder.path(),
        &[
            "--data",
            "data",
            "--kong-admin",
            ANY,
            "--apisix-admin",
            ANY,
            "--console",
            ANY,
        ],
    );
    let ([certificate, key], [_, other]) = (self_signed_pem("a.test", 2100), self_signed_pem("a.test", 2100));
    for (certificate, key, is_good, word) in [
        (&certificate, &key, true, ""),
        (&certificate, &other, false, "key"),
        (&certificate, &"nothing".to_owned(), false, "key"),
        (&"nothing".to_owned(), &key, false, "cert"),
    ] {
        let kong = json!({"cert": certificate, "key": key, "snis": ["a.test"]}).to_string();
        let answer = Call::new("POST", &weir.kong(), "/certificates")
            .body(&kong)
            .make();
        assert_eq!(answer.status == 201, is_good, "Kong: {answer:?}");
        assert!(answer.body.contains(word), "Kong: {answer:?}");
        let apisix = json!({"cert": certificate, "key": key, "snis": ["b.test"]}).to_string();
        let answer = Call::new("PUT", &weir.apisix(), "/apisix/admin/ssls/1")
            .header("X-API-KEY", STOCK_KEY)
            .body(&apisix)
            .make();
        assert_eq!(answer.status < 300, is_good, "APISIX: {answer:?}");
        assert!(answer.body.contains(word), "APISIX: {answer:?}");
        let shown = json!({"names": ["a.test"], "key_pairs": [{"certificate": certificate, "key": key}]});
        let answer = Call::new("PUT", &weir.console(), "/api/v1/resources/certificates/shop")
            .body(&shown.to_string())
            .make();
        assert_eq!(answer.status < 300, is_good, "Weir: {answer:?}");
        assert!(answer.body.contains(word), "Weir: {answer:?}");
        let native = json!({"weir": 1, "certificates": [shown]});
        let (status, stderr) = check("weir.yaml", &native);
        assert_eq!(status == Some(0), is_good, "{stderr}");
        assert!(
            stderr.contains(word) && (is_good || stderr.contains("key_pairs[0]")),
            "{stderr}"
        );
        assert!(!stderr.contains("PRIVATE KEY-----"), "{stderr}");
    }
}

#[test]
fn a_certificate_past_its_end_is_shown_and_reported() {
    let [certificate, key] = self_signed_pem("old.test", 2020);
    let document = json!({"weir": 1, "certificates": [
        {"names": ["old.test"], "key_pairs": [{"certificate": certificate, "key": key}]}]});
    let (status, stderr) = check("weir.yaml", &document);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(
        stderr.contains("certificates[0].key_pairs[0].certificate") && stderr.contains("'old.test' ended"),
        "{stderr}"
    );

    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Weir::command(folder.path(), &["--data", "data", "--kong-admin", ANY]);
    let mut weir = Weir::run(command.stderr(Stdio::piped()));
    let log: Arc<Mutex<String>> = Arc::default();
    let (written, stderr) = (Arc::clone(&log), weir.child.stderr.take().expect("piped"));
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            written.lock().expect("no panic").push_str(&line);
        }
    });
    let (kong, status) = (weir.kong(), weir.status());
    let body = json!({"cert": certificate, "key": key, "snis": ["old.test"]}).to_string();
    Call::new("POST", &kong, "/certificates")
        .body(&body)
        .make()
        .expect(201);
    let shown = || Call::get(&status, "/status").make().json()["certificates"][0].clone();
    until("it is reported", || shown()["state"] == "expired");
    assert_eq!(shown()["names"], json!(["old.test"]));
    assert!(shown()["days_left"].as_i64().is_some_and(|days| days < -365));
    let metrics = Call::get(&status, "/metrics").make().body;
    assert!(
        metrics.contains("weir_certificate_expires_seconds{name=\"old.test\"} -"),
        "{metrics}"
    );
    until("it is logged", || {
        log.lock().expect("no panic").contains("'old.test' ended")
    });
}
