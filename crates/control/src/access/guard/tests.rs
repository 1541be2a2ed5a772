//! Who is let in, by keys and places.

use super::*;
use crate::sample::{STOCK_KEY, Sample};

fn guard(keys: &[&str], is_open: bool) -> Guard {
    let dialect = Sample {
        has_stock_keys: true,
        keys: keys
            .iter()
            .map(|key| ((*key).to_owned(), KeyRole::Admin))
            .collect(),
        is_open,
        ..Sample::default()
    };
    Guard::new(Arc::new(dialect), Users::default(), Audit::default())
}

#[test]
fn the_status_of_a_gateway_needs_a_key_from_elsewhere() {
    let guard = |keys: &[&str]| guard(keys, false);
    for (keys, peer, key, expected) in [
        (&[][..], "127.0.0.1:1", None, Ok(())),
        (&[], "192.0.2.1:1", None, Err(AccessError::FromElsewhere)),
        (&["k"], "127.0.0.1:1", None, Ok(())),
        (&["k"], "192.0.2.1:1", None, Err(AccessError::NoToken)),
        (&["k"], "192.0.2.1:1", Some("x"), Err(AccessError::WrongToken)),
        (&["k"], "192.0.2.1:1", Some("k"), Ok(())),
    ] {
        let mut request = Request::builder().uri("/state/health");
        if let Some(key) = key {
            request = request.header("sample-key", key);
        }
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let admitted = guard(keys).admit(&request, peer.parse().expect("an address"));
        assert_eq!(admitted.map(|_| ()), expected, "{keys:?} {peer} {key:?}");
    }
}

#[test]
fn keys_of_a_dialect_are_as_its_configuration_says() {
    const STOCK: &str = STOCK_KEY;
    for (keys, is_open, peer, key, expected) in [
        (&[][..], true, "127.0.0.1:1", None, Ok(())),
        (&["k"], true, "127.0.0.1:1", None, Ok(())),
        (&[], true, "192.0.2.1:1", None, Err(AccessError::FromElsewhere)),
        (&["k"], true, "192.0.2.1:1", None, Err(AccessError::NoToken)),
        (&["k"], true, "192.0.2.1:1", Some("k"), Ok(())),
        (&["k"], false, "127.0.0.1:1", None, Err(AccessError::NoToken)),
        (
            &["k"],
            false,
            "127.0.0.1:1",
            Some(STOCK),
            Err(AccessError::WrongToken),
        ),
        (&["k"], false, "127.0.0.1:1", Some("k"), Ok(())),
        (&[STOCK], false, "127.0.0.1:1", Some(STOCK), Ok(())),
        (
            &[STOCK],
            false,
            "192.0.2.1:1",
            Some(STOCK),
            Err(AccessError::FromElsewhere),
        ),
    ] {
        let guard = guard(keys, is_open);
        let mut request = Request::builder().method("PUT").uri("/routes");
        if let Some(key) = key {
            request = request.header("sample-key", key);
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
