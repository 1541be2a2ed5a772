//! Which certificate a client is shown, and which configurations are refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rcgen::generate_simple_self_signed;
use serde_json::{Value, json};
use weir_model::Model;
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot, compile};

fn pair() -> Value {
    let made = generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    json!({"certificate": made.cert.pem(), "key": made.signing_key.serialize_pem()})
}

fn compiled(certificates: Value) -> Result<Snapshot, Vec<String>> {
    let model: Model = serde_json::from_value(json!({"certificates": certificates})).unwrap();
    match compile(&model, &Registry::default(), &PersistentState::default()) {
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

#[test]
fn acme_checks_are_shown_the_answer_and_other_clients_are_not() {
    let model: Model = serde_json::from_value(json!({
        "certificates": [{"names": ["a.test"], "key_pairs": [pair()]}],
    }))
    .unwrap();
    let mut checked = model.clone();
    let mut params = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
    params.custom_extensions = vec![rcgen::CustomExtension::new_acme_identifier(&[7; 32])];
    let key = rcgen::KeyPair::generate().unwrap();
    let answer = params.self_signed(&key).unwrap();
    let answer = json!({"certificate": answer.pem(), "key": key.serialize_pem()});
    checked.tls_challenges =
        serde_json::from_value(json!([{"names": ["A.test"], "key_pairs": [answer]}])).unwrap();
    let compiled = |model: &Model| {
        compile(model, &Registry::default(), &PersistentState::default())
            .unwrap()
            .0
    };
    let (usual, checked) = (compiled(&model), compiled(&checked));
    let acme: &[&[u8]] = &[b"acme-tls/1"];
    let both: &[&[u8]] = &[b"acme-tls/1", b"h2"];
    let http: &[&[u8]] = &[b"h2", b"http/1.1"];
    for (snapshot, name, protocols, is_shown) in [
        (&checked, Some("a.test"), Some(acme), true),
        (&checked, Some("b.test"), Some(acme), false),
        (&checked, None, Some(acme), false),
        (&checked, Some("a.test"), Some(both), false),
        (&checked, Some("a.test"), Some(http), false),
        (&checked, Some("a.test"), None, false),
        (&usual, Some("a.test"), Some(acme), false),
    ] {
        let offered = protocols.map(|protocols| protocols.iter().copied());
        let found = snapshot.tls.challenge(name, offered);
        assert_eq!(found.is_some(), is_shown, "{name:?} {protocols:?}");
        assert!(found.is_none_or(|config| config.alpn_protocols == [b"acme-tls/1"]));
    }
    let shown = checked.tls.find(Some("a.test")).unwrap();
    assert!(!shown.config.alpn_protocols.contains(&b"acme-tls/1".to_vec()));
}

#[test]
fn every_certificate_reports_its_end() {
    let made = |year: i32| {
        let mut params = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let signed = params.self_signed(&key).unwrap();
        json!({"certificate": signed.pem(), "key": key.serialize_pem()})
    };
    let snapshot = compiled(json!([
        {"names": ["a.test"], "key_pairs": [made(2001), made(2002)]},
        {"names": ["b.test", "c.test"], "key_pairs": [made(2100)]},
    ]))
    .unwrap();
    let ends = snapshot.tls.ends().iter();
    let found: Vec<(usize, usize, &str, i64)> = ends
        .map(|end| {
            (
                end.certificate,
                end.pair,
                end.names[0].as_str(),
                end.validity.until,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, 0, "a.test", 978_307_200),
            (0, 1, "a.test", 1_009_843_200),
            (1, 0, "b.test", 4_102_444_800),
        ]
    );
}

#[test]
fn authorities_of_certificates_to_come_are_checked() {
    for (field, value) in [
        ("authorities", json!("nothing")),
        ("client", json!({"authorities": "nothing"})),
    ] {
        let mut entry = json!({"name": "a", "hosts": ["a.test"], "terms_accepted": true});
        entry[field] = value;
        let model: Model = serde_json::from_value(json!({"acme": [entry]})).unwrap();
        let found = compile(&model, &Registry::default(), &PersistentState::default())
            .err()
            .unwrap();
        let place = found[0].path.to_string();
        assert!(place.starts_with(&format!("acme[0].{field}")), "{place}");
    }
}
