//! Who is let in, by keys and places.

use super::*;

#[test]
fn what_tells_how_a_gateway_is_doing_wants_a_key_from_elsewhere() {
    let guard = |keys: &[&str]| Guard {
        dialect: Dialect::Apisix,
        users: Users::default(),
        audit: Audit::default(),
        keys: keys.iter().map(|key| ((*key).to_owned(), Role::Admin)).collect(),
        is_open: false,
    };
    for (keys, peer, key, expected) in [
        (&[][..], "127.0.0.1:1", None, Ok(())),
        (&[], "192.0.2.1:1", None, Err(Refused::FromElsewhere)),
        (&["k"], "127.0.0.1:1", None, Ok(())),
        (&["k"], "192.0.2.1:1", None, Err(Refused::NoToken)),
        (&["k"], "192.0.2.1:1", Some("x"), Err(Refused::WrongToken)),
        (&["k"], "192.0.2.1:1", Some("k"), Ok(())),
    ] {
        let mut request = Request::builder().uri("/v1/healthcheck");
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let admitted = guard(keys).admit(&request, peer.parse().expect("an address"));
        assert_eq!(admitted.map(|_| ()), expected, "{keys:?} {peer} {key:?}");
    }
}
#[test]
fn apisix_keys_are_as_its_configuration_says() {
    const STOCK: &str = "edd1c9f034335f136f87ad84b625c8f1";
    for (keys, is_open, peer, key, expected) in [
        // `admin_key_required: false`: as the page for beginners has it.
        (&[][..], true, "127.0.0.1:1", None, Ok(())),
        (&["k"], true, "127.0.0.1:1", None, Ok(())),
        (&[], true, "192.0.2.1:1", None, Err(Refused::FromElsewhere)),
        (&["k"], true, "192.0.2.1:1", None, Err(Refused::NoToken)),
        (&["k"], true, "192.0.2.1:1", Some("k"), Ok(())),
        // `admin_key`.
        (&["k"], false, "127.0.0.1:1", None, Err(Refused::NoToken)),
        (
            &["k"],
            false,
            "127.0.0.1:1",
            Some(STOCK),
            Err(Refused::WrongToken),
        ),
        (&["k"], false, "127.0.0.1:1", Some("k"), Ok(())),
        (&[STOCK], false, "127.0.0.1:1", Some(STOCK), Ok(())),
        (
            &[STOCK],
            false,
            "192.0.2.1:1",
            Some(STOCK),
            Err(Refused::FromElsewhere),
        ),
    ] {
        let guard = Guard {
            dialect: Dialect::Apisix,
            users: Users::default(),
            audit: Audit::default(),
            keys: keys.iter().map(|key| ((*key).to_owned(), Role::Admin)).collect(),
            is_open,
        };
        let mut request = Request::builder().method("PUT").uri("/apisix/admin/routes");
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let admitted = guard.admit(&request, peer.parse().expect("an address"));
        assert_eq!(
            admitted.map(|_| ()),
            expected,
            "{keys:?} {is_open} {peer} {key:?}"
        );
    }
}
