//! Any text as a message of SAML: XML that is read has one canonical form, and without a key no login is good.
#![no_main]

use weir_saml::{
    Document, Expected, Limits, LoginResponse, LogoutMessage, Trust, exclusive, from_form, from_query,
};

/// Canonical forms may be longer than what they are made of.
const LARGE: Limits = Limits {
    bytes: 16 << 20,
    elements: 10_000,
    depth: 40,
    attributes: 4_096,
};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let trust = Trust {
        keys: Vec::new(),
        sha1: true,
    };
    if let Ok(document) = Document::parse(text, Limits::default()) {
        let form = exclusive(&document, document.root(), &[], None);
        let form = String::from_utf8(form).expect("canonical forms are UTF-8");
        let again = Document::parse(&form, LARGE).expect("a canonical form is well-formed");
        let twice = exclusive(&again, again.root(), &[], None);
        assert_eq!(form.as_bytes(), twice, "a canonical form is its own");
        assert_eq!(document.all().count(), again.all().count());
    }
    let whole = weir_saml::Received {
        xml: text.to_owned(),
        relay_state: None,
        is_signed: false,
    };
    let posted = from_form(text.as_bytes(), None, 1 << 20).ok();
    let redirected = from_query(text, "SAMLResponse", &trust, 1 << 20).ok().flatten();
    for received in [Some(whole), posted, redirected].into_iter().flatten() {
        assert!(!received.is_signed);
        let logout = LogoutMessage::read(&received, &trust, None, "https://sp.test/", (0, 60));
        assert!(logout.is_err());
        let Ok(response) = LoginResponse::parse(&received, Limits::default()) else {
            continue;
        };
        let request_id = response.in_response_to().unwrap_or_default().to_owned();
        let login = response.login(&Expected {
            trust: &trust,
            key: None,
            audience: "urn:sp.test",
            issuer: None,
            recipient: "https://sp.test/acs",
            request_id: &request_id,
            now_s: 1_795_426_800,
            leeway_s: 60,
        });
        assert!(login.is_err());
    }
});
