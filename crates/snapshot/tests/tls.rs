//! Which certificate a client is shown, and which configurations are refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};
use weir_model::Model;
use weir_plugin::Registry;
use weir_snapshot::{Carry, Snapshot, compile};

fn pair() -> Value {
    let made = generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    json!({"certificate": made.cert.pem(), "key": made.signing_key.serialize_pem()})
}

fn compiled(certificates: Value) -> Result<Snapshot, Vec<String>> {
    let model: Model = serde_json::from_value(json!({"certificates": certificates})).unwrap();
    match compile(&model, &Registry::default(), &Carry::default()) {
        Ok((snapshot, _)) => Ok(snapshot),
        Err(found) => Err(found
            .iter()
            .map(|it| format!("{}: {}", it.path, it.message))
            .collect()),
    }
}

#[test]
fn the_more_exact_name_counts() {
    let names = [
        json!(["api.example.org", "API.other.org"]),
        json!(["*.example.org"]),
        json!(["api.*", "www.example.*"]),
        json!(["*"]),
    ];
    let certificates: Vec<Value> = names
        .iter()
        .map(|names| json!({"names": names, "key_pairs": [pair()]}))
        .collect();
    let snapshot = compiled(json!(certificates)).unwrap();
    let without_others = compiled(json!(certificates[..3])).unwrap();
    let shown = |snapshot: &Snapshot, name: Option<&str>| {
        let found = snapshot.tls.find(name).map(std::sync::Arc::as_ptr);
        let of = |probe: &str| snapshot.tls.find(Some(probe)).map(std::sync::Arc::as_ptr);
        let probes = ["api.example.org", "x.example.org", "www.example.net"];
        found.map(|found| {
            probes
                .iter()
                .position(|probe| of(probe) == Some(found))
                .unwrap_or(3)
        })
    };
    for (name, wanted) in [
        (Some("api.example.org"), Some(0)),
        (Some("api.other.org"), Some(0)),
        (Some("x.example.org"), Some(1)),
        (Some("www.example.org"), Some(1)),
        (Some("x.y.example.org"), None),
        (Some("example.org"), None),
        (Some("api.net"), Some(2)),
        (Some("www.example.net"), Some(2)),
        (Some("api.example.net"), None),
        (Some("localhost"), None),
        (None, None),
    ] {
        assert_eq!(shown(&without_others, name), wanted, "{name:?}");
        assert_eq!(shown(&snapshot, name), wanted.or(Some(3)), "{name:?}");
    }
}

#[test]
fn what_cannot_be_shown_is_refused_with_its_place() {
    let (one, other) = (pair(), pair());
    let mixed = json!({"certificate": one["certificate"], "key": other["key"]});
    let with = |field: &str, text: &str| {
        let mut pair = one.clone();
        pair[field] = json!(text);
        json!([{"names": ["a.test"], "key_pairs": [pair]}])
    };
    let client = |authorities: &str| json!([{"names": ["a.test"], "key_pairs": [one], "client": {"authorities": authorities}}]);
    for (certificates, place, word) in [
        (with("certificate", "nothing"), "key_pairs[0].certificate", "PEM"),
        (with("key", "nothing"), "key_pairs[0].key", "private key"),
        (
            json!([{"names": ["a.test"], "key_pairs": [mixed]}]),
            "key_pairs[0].key",
            "not that of",
        ),
        (
            json!([{"names": ["a.test"], "key_pairs": []}]),
            "key_pairs",
            "expected",
        ),
        (
            json!([{"names": ["*.a.*"], "key_pairs": [one]}]),
            "names[0]",
            "server name",
        ),
        (
            json!([{"names": [""], "key_pairs": [one]}]),
            "names[0]",
            "server name",
        ),
        (client("nothing"), "client.authorities", "PEM"),
    ] {
        let found = compiled(certificates).err().expect("a refusal");
        assert!(
            found.iter().any(|it| it.contains(place) && it.contains(word)),
            "{place}: {found:?}"
        );
        let key = one["key"].as_str().unwrap();
        assert!(!found.concat().contains(key), "a key is quoted");
    }
}
