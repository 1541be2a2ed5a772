//! `hmac-auth` as its users see it. The signatures of the first form were made by others.

use super::*;
use serde_json::json;
use weir_plugin::Exchange;
use weir_plugins_testkit::*;

const DATE: (&str, &str) = ("Date", "Mon, 01 Jan 2024 00:00:00 GMT");
/// Over the line `date: …`, with the secret `shh`.
const BY_DATE: &str = "xRAnyKB4jm8Q7rkzg+2/jMB03D/H2bF6egKPeYt9k28=";
const BY_DATE_384: &str = "5qTMWwyhS/GvfcRgFR9W60XIwoZ9UeCY5VTUBF62nKVzjRh8ybg36kY7NMPQafeo";
/// Over date and request target of `GET /enf/y?b`.
const BY_TARGET: &str = "cuLHv3T5ZC3XkBuPbfklbxosik5LYwXjp3+oyvaaT+M=";

fn filter(config: &Value) -> Arc<dyn Filter> {
    let credentials = [
        ("alice", Some("al"), json!({"key": "al", "secret": "shh"})),
        ("bob", None, json!({"key": "user-key", "secret": "my-secret"})),
    ];
    build_with(&HmacAuth, config, &credentials).expect("valid")
}

fn hmac(key: &str, algorithm: &str, headers: &str, signature: &str) -> String {
    format!(
        "hmac username=\"{key}\", algorithm=\"{algorithm}\", headers=\"{headers}\", signature=\"{signature}\""
    )
}

#[test]
fn signatures_in_kongs_form_are_checked() {
    let lax = json!({"clock_skew_seconds": 4_000_000_000_u64});
    let strict = json!({"clock_skew_seconds": 0, "required_headers": ["date", "@request-target"]});
    let only_512 = json!({"clock_skew_seconds": 0, "algorithms": ["hmac-sha512"]});
    let by_date = hmac("al", "hmac-sha256", "date", BY_DATE);
    for (config, line, authorization, expected) in [
        (&lax, "GET /", by_date.clone(), "continue"),
        (
            &lax,
            "GET /",
            hmac("al", "hmac-sha384", "date", BY_DATE_384),
            "continue",
        ),
        (
            &lax,
            "GET /",
            hmac("al", "hmac-sha384", "date", BY_DATE),
            "BadSignature",
        ),
        (
            &lax,
            "GET /",
            hmac("al", "hmac-sha256", "date x-missing", BY_DATE),
            "BadSignature",
        ),
        (
            &lax,
            "GET /",
            hmac("al", "hmac-sha256", "date", "!"),
            "BadSignature",
        ),
        (
            &lax,
            "GET /",
            hmac("who", "hmac-sha256", "date", BY_DATE),
            "Invalid",
        ),
        (&lax, "GET /", hmac("al", "md5", "date", BY_DATE), "Invalid"),
        (&lax, "GET /", "hmac".into(), "Malformed"),
        (&json!({}), "GET /", by_date.clone(), "Stale"),
        (
            &strict,
            "GET /enf/y?b",
            hmac("al", "hmac-sha256", "date @request-target", BY_TARGET),
            "continue",
        ),
        (
            &strict,
            "GET /enf/y?c",
            hmac("al", "hmac-sha256", "date @request-target", BY_TARGET),
            "BadSignature",
        ),
        (&strict, "GET /", by_date.clone(), "Invalid"),
        (&only_512, "GET /", by_date, "Invalid"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, line, &[DATE, ("Authorization", &authorization)]);
        let outcome = filter(config).on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{config} {line} {authorization}");
    }
    assert_eq!(word(&filter(&lax).on_request(&mut exchange())), "Missing");
}

/// A call with the signature that it should have.
fn signed(config: &Value, line: &str, headers: &[(&str, &str)], names: &str) -> Exchange {
    let config: Config = serde_json::from_value(config.clone()).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    let text = sign::Text {
        form: config.form,
        uri: config.uri,
        key: b"user-key",
        headers: names.as_bytes(),
    };
    let keys = Keys::new(b"my-secret".to_vec());
    let tag = text.sign(Algorithm::HmacSha256, &keys, &exchange.request);
    let signature = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, tag.as_ref());
    let value = format!(
        "Signature keyId=\"user-key\",algorithm=\"hmac-sha256\",headers=\"{names}\",signature=\"{signature}\""
    );
    exchange
        .request
        .headers
        .append(b"Authorization", value.as_bytes());
    exchange
}

#[test]
fn signatures_in_apisixs_form_are_checked() {
    let standard = json!({"form": "signature", "required_headers": ["date"], "x_date": false});
    let now = [("Date", "Fri, 20 Nov 2026 15:30:00 GMT")];
    let x_now = [("X-Date", "Fri, 20 Nov 2026 15:30:00 GMT")];
    for (headers, names, expected) in [
        (&now[..], "date", "continue"),
        (&now, "@request-target date", "continue"),
        (&now, "date x-nope", "continue"),
        (&now, "@request-target", "Invalid"),
        (&x_now, "date", "Stale"),
        (&[DATE], "date", "Stale"),
        (&[], "date", "Stale"),
    ] {
        let mut exchange = signed(&standard, "GET /a?b=1", headers, names);
        let outcome = filter(&standard).on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{headers:?} {names}");
    }
    // A time that is not signed does not make an old call new.
    let either = json!({"form": "signature", "required_headers": ["date"], "x_date": true});
    let mut again = signed(&either, "GET /a?b=1", &[DATE, x_now[0]], "date");
    assert_eq!(word(&filter(&either).on_request(&mut again)), "Stale");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", &[("Authorization", "Basic abc")]);
    assert_eq!(word(&filter(&standard).on_request(&mut exchange)), "Malformed");
}

#[test]
fn bodies_are_checked() {
    let config = json!({"form": "signature", "check_body": true});
    let now = ("Date", "Fri, 20 Nov 2026 15:31:00 GMT");
    // SHA-256 of `hello`.
    let digest = ("Digest", "SHA-256=LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=");
    for (headers, body, expected) in [
        (&[now, digest][..], Some("hello"), "continue"),
        (&[now, digest], Some("hellp"), "BadSignature"),
        (&[now, digest], None, "body"),
        (&[now], Some("hello"), "BadSignature"),
    ] {
        let mut exchange = signed(&config, "POST /", headers, "date");
        exchange.request.has_body = true;
        exchange.request.body = body.map(|body| body.as_bytes().to_vec());
        assert_eq!(
            word(&filter(&config).on_request(&mut exchange)),
            expected,
            "{headers:?}"
        );
    }
}

#[test]
fn the_header_is_hidden_as_configured() {
    for (strip, left) in [(false, true), (true, false)] {
        let config = json!({"form": "signature", "strip": strip, "clock_skew_seconds": 0});
        let mut exchange = signed(&config, "GET /", &[], "date");
        assert_eq!(word(&filter(&config).on_request(&mut exchange)), "continue");
        assert_eq!(exchange.request.headers.contains(b"authorization"), left);
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (
            json!({"algorithms": [], "headers": [""]}),
            &["headers[0]", "algorithms"][..],
        ),
        (json!({"algorithms": ["md5"]}), &["algorithms[0]"]),
    ] {
        assert_eq!(refused_at(&HmacAuth, &config), places, "{config}");
    }
    assert!(build(&HmacAuth, &example(include_str!("mod.rs"))).is_ok());
    let check = HmacAuth.credentials().expect("has some").check;
    assert!(check(&json!({"key": "", "secret": "s"})).is_err());
}
