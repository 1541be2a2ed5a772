//! Certificates that an authority signs on demand, with a real authority. Without one, nothing is tested.

mod authority;
mod client;

use crate::cluster::Etcd;
use crate::ports::free_port;
use crate::support::{Call, Weir, until, upstream};
use authority::{Authority, EXTERNAL, Pebble};
use client::{is_signed, presented_certificate};
use serde_json::{Value, json};
use std::path::Path;

/// Long enough not to be renewed in a test, in seconds.
const LONG: u64 = 90 * 86_400;

/// Ports for HTTP and for TLS.
fn ports() -> [u16; 2] {
    [free_port(), free_port()]
}

/// Starts Weir on these ports, with what a file asks for and a folder for what it gets.
fn start(folder: &Path, [http, tls]: [u16; 2], document: &Value) -> Weir {
    std::fs::write(folder.join("weir.yaml"), document.to_string()).expect("written");
    let address = |port: u16| format!("127.0.0.1:{port}");
    let (http, tls) = (address(http), address(tls));
    Weir::start(
        folder,
        &[
            "-c",
            "weir.yaml",
            "--data",
            "data",
            "--listen",
            &http,
            "--listen-tls",
            &tls,
            "--console",
            "127.0.0.1:0",
        ],
    )
}

fn entries(weir: &Weir) -> Value {
    Call::get(&weir.status(), "/status").make().json()["acme"].clone()
}

#[track_caller]
fn signed(weir: &Weir, port: u16, name: &str) -> Vec<u8> {
    let mut found = None;
    until(&format!("a certificate for {name}"), || {
        found = presented_certificate(port, name).filter(|shown| is_signed(shown, name));
        if found.is_none() {
            assert_ne!(entries(weir)[0]["state"], "failing", "{}", entries(weir));
        }
        found.is_some()
    });
    found.expect("a certificate")
}

/// A document with a route that takes every call, so that a challenge has to go before it.
fn document(entry: &Value) -> Value {
    json!({
        "weir": 1,
        "services": [{"name": "all", "url": format!("http://{}", upstream("all")), "routes": [{"name": "all", "paths": ["/"]}]}],
        "acme": [entry],
    })
}

#[test]
fn names_are_shown_to_be_ones_own_and_certificates_outlive_the_process() {
    for challenge in ["http-01", "tls-alpn-01"] {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = ports();
        let authority = Authority {
            life: LONG,
            is_closed: true,
            ports,
        };
        let Some(pebble) = Pebble::start(folder.path(), &authority) else {
            return;
        };
        let mut entry = pebble.entry(&["a.test", "www.a.test"]);
        entry["challenge"] = json!(challenge);
        entry["external_account"] = json!({"id": EXTERNAL[0], "key": EXTERNAL[1]});
        let weir = start(folder.path(), ports, &document(&entry));
        let first = signed(&weir, ports[1], "a.test");
        assert_eq!(
            signed(&weir, ports[1], "www.a.test"),
            first,
            "{challenge}: one for both"
        );
        assert!(!is_signed(
            &presented_certificate(ports[1], "b.test").expect("one"),
            "b.test"
        ));
        until("it is told", || entries(&weir)[0]["state"] == "good");
        let status = Call::get(&weir.status(), "/status").make().json();
        assert_eq!(
            status["certificates"][0]["names"],
            json!(["a.test", "www.a.test"])
        );
        assert_eq!(status["certificates"][0]["days_left"], 89);
        let metrics = Call::get(&weir.status(), "/metrics").make().body;
        assert!(
            metrics.contains("weir_certificate_expires_seconds{name=\"a.test\"} 77"),
            "{metrics}"
        );
        let path = "/.well-known/acme-challenge/none";
        let proxy = format!("127.0.0.1:{}", ports[0]);
        assert_eq!(
            Call::get(&proxy, path).make().expect(200).body,
            "all",
            "nothing is left"
        );
        weir.kill();
        // No one signs another.
        drop(pebble);
        let weir = start(folder.path(), ports, &document(&entry));
        assert_eq!(
            signed(&weir, ports[1], "a.test"),
            first,
            "{challenge}: it is kept"
        );
    }
}

#[test]
fn a_certificate_is_renewed_before_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = ports();
    let authority = Authority {
        life: 12,
        is_closed: false,
        ports,
    };
    let Some(pebble) = Pebble::start(folder.path(), &authority) else {
        return;
    };
    let weir = start(folder.path(), ports, &document(&pebble.entry(&["a.test"])));
    let first = signed(&weir, ports[1], "a.test");
    until("another is served", || {
        presented_certificate(ports[1], "a.test")
            .is_some_and(|shown| is_signed(&shown, "a.test") && shown != first)
    });
}

#[test]
fn refusals_of_an_authority_are_reported_and_tried_again_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = ports();
    let authority = Authority {
        life: LONG,
        is_closed: false,
        // Without a listener.
        ports: self::ports(),
    };
    let Some(pebble) = Pebble::start(folder.path(), &authority) else {
        return;
    };
    let weir = start(folder.path(), ports, &document(&pebble.entry(&["a.test"])));
    until("it is told", || entries(&weir)[0]["state"] == "failing");
    let entry = &entries(&weir)[0];
    assert!(
        entry["error"].as_str().is_some_and(|it| it.contains("a.test")),
        "{entry}"
    );
    assert_eq!(entry["failures"], 1);
    assert!(
        presented_certificate(ports[1], "a.test")
            .is_some_and(|presented_certificate| !is_signed(&presented_certificate, "a.test"))
    );
}

#[test]
fn gateways_on_one_store_show_the_same_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let (asked, other) = (ports(), ports());
    let authority = Authority {
        life: LONG,
        is_closed: false,
        // One of the two is asked, whichever gets the certificate.
        ports: asked,
    };
    let (port, peers) = (free_port(), free_port());
    let (Some(pebble), Some(_etcd)) = (
        Pebble::start(folder.path(), &authority),
        Etcd::start(folder.path(), port, peers),
    ) else {
        return;
    };
    let text = document(&pebble.entry(&["a.test"])).to_string();
    std::fs::write(folder.path().join("weir.yaml"), text).expect("written");
    let store = format!("etcd://127.0.0.1:{port}");
    let gateway = |name: &str, [http, tls]: [u16; 2]| {
        let address = |port: u16| format!("127.0.0.1:{port}");
        let (http, tls) = (address(http), address(tls));
        let flags = [
            "-c",
            "weir.yaml",
            "--role",
            "gateway",
            "--store",
            &store,
            "--name",
            name,
            "--listen",
            &http,
            "--listen-tls",
            &tls,
        ];
        Weir::start(folder.path(), &flags)
    };
    let (first, second) = (gateway("one", asked), gateway("two", other));
    let shown = [
        signed(&first, asked[1], "a.test"),
        signed(&second, other[1], "a.test"),
    ];
    assert!(shown[0] == shown[1], "there is one");
    for weir in [&first, &second] {
        until("both know of it", || entries(weir)[0]["state"] == "good");
    }
}

#[test]
fn a_control_plane_gets_what_its_gateways_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let ports = ports();
    let authority = Authority {
        life: LONG,
        is_closed: false,
        ports,
    };
    let Some(pebble) = Pebble::start(folder.path(), &authority) else {
        return;
    };
    // Kong's plugin has no word for whom the authority's server is signed by.
    std::fs::write(folder.path().join("ca.pem"), &pebble.authorities).expect("written");
    let trusted = [("SSL_CERT_FILE", "ca.pem")];
    let any = "127.0.0.1:0";
    let flags = [
        "--role",
        "control",
        "--data",
        "plane",
        "--kong-admin",
        any,
        "--console",
        any,
    ];
    let plane = Weir::start_with(folder.path(), &flags, &trusted);
    let (http, tls) = (
        format!("127.0.0.1:{}", ports[0]),
        format!("127.0.0.1:{}", ports[1]),
    );
    let control = format!("http://{}", plane.console());
    let gateway = Weir::start(
        folder.path(),
        &[
            "--role",
            "gateway",
            "--control",
            &control,
            "--listen",
            &http,
            "--listen-tls",
            &tls,
        ],
    );
    let plugin = |config: Value| {
        let body = json!({"name": "acme", "config": config}).to_string();
        Call::new("POST", &plane.kong(), "/plugins").body(&body).make()
    };
    let refused =
        plugin(json!({"account_email": "ops@a.test", "tos_accepted": true, "allow_any_domain": true}));
    assert!(refused.expect(400).body.contains("allow_any_domain"));
    plugin(json!({
        "account_email": "ops@a.test",
        "tos_accepted": true,
        // The original adds what it misses at the end.
        "api_uri": format!("{}?/directory", pebble.directory()),
        "domains": ["a.test"],
        "cert_type": "ecc",
    }))
    .expect(201);
    let shown = signed(&plane, ports[1], "a.test");
    assert!(is_signed(&shown, "a.test"));
    drop(gateway);
}

#[test]
fn there_must_be_a_place_for_certificates() {
    let folder = tempfile::tempdir().expect("a folder");
    let entry = json!({"name": "a", "hosts": ["a.test"], "terms_accepted": true});
    std::fs::write(folder.path().join("weir.yaml"), document(&entry).to_string()).expect("written");
    let mut command = Weir::command(folder.path(), &["-c", "weir.yaml"]);
    let output = command
        .stderr(std::process::Stdio::piped())
        .output()
        .expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("--data"), "{stderr}");
}
