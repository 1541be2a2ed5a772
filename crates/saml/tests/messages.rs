//! Messages that a service provider sends, and those of single logout.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_saml::{
    AuthnRequest, Document, Hash, Limits, LogoutMessage, NameId, SigningKey, Trust, VerifyingKey, form_page,
    from_form, from_query, logout_request, logout_response, redirect_url,
};

fn data(name: &str) -> String {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{path} is there"))
}

fn key(name: &str) -> SigningKey {
    SigningKey::new(&data(name), None, Hash::Sha256, Hash::Sha256).expect("a key")
}

fn trust() -> Trust {
    Trust {
        keys: vec![VerifyingKey::of_certificate(&data("idp.crt.pem")).expect("a certificate")],
        sha1: false,
    }
}

#[test]
fn requests_say_what_the_profile_asks_for() {
    let request = AuthnRequest {
        id: "_1",
        now_s: 0,
        destination: "https://idp.test/sso?a=1&b=\"2\"",
        callback: "https://sp.test/acs",
        by_redirect: false,
        issuer: "urn:<sp>",
        name_id_format: Some("urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"),
    };
    let xml = request.xml();
    let document = Document::parse(&xml, Limits::default()).expect("well-formed");
    let attribute = |name: &str| {
        document
            .attribute(document.root(), name)
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(attribute("Destination"), request.destination);
    assert_eq!(attribute("AssertionConsumerServiceURL"), request.callback);
    assert_eq!(attribute("IssueInstant"), "1970-01-01T00:00:00Z");
    assert!(attribute("ProtocolBinding").ends_with(":HTTP-POST"));
    let issuer = document.children(document.root()).next().expect("an issuer");
    assert_eq!(document.text(issuer).as_deref(), Some("urn:<sp>"));
    assert!(xml.contains("AllowCreate=\"true\""));
    let url = redirect_url("https://idp.test/sso?a=1", "SAMLRequest", &xml, None, None);
    assert!(url.starts_with("https://idp.test/sso?a=1&SAMLRequest="), "{url}");
}

#[test]
fn forms_post_signed_messages_and_run_one_script() {
    let xml = logout_request("_1", 0, "https://idp.test/\"><script>", "urn:sp", (&user(), None));
    let (page, policy) = form_page(
        "https://idp.test/\"><script>",
        "SAMLRequest",
        &xml,
        Some("s'"),
        Some(&key("idp.key.pem")),
    )
    .expect("an own message");
    assert_eq!(page.matches("<script>").count(), 1, "{page}");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
    let value = page
        .split("name=\"SAMLRequest\" value=\"")
        .nth(1)
        .and_then(|it| it.split('"').next());
    let received = from_form(value.expect("a message").as_bytes(), None, 64 << 10).expect("a message");
    assert!(received.xml.contains("<ds:Signature"));
    // What is signed here is good there.
    let read = LogoutMessage::read(&received, &trust(), None, "https://idp.test/\"><script>", (0, 60));
    assert!(matches!(read, Ok(LogoutMessage::Request(_))), "{read:?}");
}

fn user() -> NameId {
    NameId {
        value: "ada & co".into(),
        format: Some("urn:x".into()),
        qualifier: None,
        service_qualifier: None,
    }
}

fn read(xml: &str, signed_by: Option<&str>, now_s: i64) -> Result<LogoutMessage, String> {
    let key = signed_by.map(key);
    let url = redirect_url("https://sp.test/sls", "SAMLRequest", xml, None, key.as_ref());
    let (_, query) = url.split_once('?').expect("a query");
    let received = from_query(query, "SAMLRequest", &trust(), 64 << 10);
    let received = received.map_err(|it| it.to_string())?.expect("a message");
    LogoutMessage::read(
        &received,
        &trust(),
        Some("urn:idp"),
        "https://sp.test/sls",
        (now_s, 60),
    )
    .map_err(|it| it.to_string())
}

#[test]
fn only_the_provider_ends_sessions() {
    let place = "https://sp.test/sls";
    let good = logout_request("_1", 1_000, place, "urn:idp", (&user(), Some("_s1")));
    let Ok(LogoutMessage::Request(request)) = read(&good, Some("idp.key.pem"), 1_000) else {
        panic!("it is good");
    };
    assert_eq!((request.id.as_str(), &request.name_id), ("_1", &user()));
    assert_eq!(request.session_indexes, ["_s1"]);
    let answer = logout_response("_2", 1_000, place, "urn:idp", "_1");
    assert_eq!(
        read(&answer, Some("idp.key.pem"), 1_000),
        Ok(LogoutMessage::Response)
    );
    let other = logout_request("_1", 1_000, place, "urn:other", (&user(), None));
    let elsewhere = logout_request("_1", 1_000, "https://evil.test/", "urn:idp", (&user(), None));
    // However long it says that it is good: as long as it is, its use must be remembered.
    let lasting = good.replace(
        " Destination=",
        " NotOnOrAfter=\"2100-01-01T00:00:00Z\" Destination=",
    );
    assert_ne!(good, lasting);
    assert_eq!(request.ends_s, 1_660);
    let late = "the message is not good yet or not any more";
    for (xml, by, now_s, expected) in [
        (&good, None, 1_000, "the message is not signed"),
        (&answer, None, 1_000, "the message is not signed"),
        (
            &good,
            Some("other.key.pem"),
            1_000,
            "the signature is not one of the configured certificates",
        ),
        (
            &other,
            Some("idp.key.pem"),
            1_000,
            "the message is one of another identity provider",
        ),
        (
            &elsewhere,
            Some("idp.key.pem"),
            1_000,
            "the message was sent to another place",
        ),
        (&good, Some("idp.key.pem"), 1_660, late),
        (&lasting, Some("idp.key.pem"), 1_660, late),
        (&good, Some("idp.key.pem"), 939, late),
    ] {
        assert_eq!(read(xml, by, now_s), Err(expected.to_owned()), "{xml}");
    }
}

#[test]
fn messages_in_forms_are_bounded_and_checked() {
    for (message, expected) in [
        (vec![b'A'; 40], "the message is too long"),
        (b"!".to_vec(), "the message is not Base64"),
        (Vec::new(), "the message is not Base64"),
        (STANDARD.encode([0xff]).into_bytes(), "the message is not UTF-8"),
        (vec![0xff; 4], "the message is not Base64"),
    ] {
        let fault = from_form(&message, None, 20).expect_err("refused");
        assert_eq!(fault.to_string(), expected);
    }
}
