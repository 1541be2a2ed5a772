//! Responses to logins that other programs have made and signed (`data/README.md`), as they are, and as attackers change them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_saml::{
    DecryptionKey, Expected, Hash, Limits, Login, LoginResponse, Received, SamlError, SigningKey, Trust,
    VerifyingKey, from_form, from_query, parse_instant, redirect_url,
};

fn data(name: &str) -> String {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{path} is there"))
}

fn trust(names: &[&str]) -> Trust {
    let key = |name: &&str| VerifyingKey::of_certificate(&data(name)).expect("a certificate");
    Trust {
        keys: names.iter().map(key).collect(),
        sha1: false,
    }
}

const NOW: &str = "2026-11-23T09:40:00Z";

/// What is different from what the files were made for.
struct Case<'c> {
    trust: Trust,
    key: Option<DecryptionKey>,
    audience: &'c str,
    issuer: Option<&'c str>,
    recipient: &'c str,
    request_id: &'c str,
    now: &'c str,
}

fn case() -> Case<'static> {
    Case {
        trust: trust(&["idp.crt.pem"]),
        key: None,
        audience: "urn:sp.test",
        issuer: Some("urn:idp.test"),
        recipient: "https://sp.test/acs",
        request_id: "_request1",
        now: NOW,
    }
}

fn read(received: &Received, case: &Case<'_>) -> Result<Login, SamlError> {
    LoginResponse::parse(received, Limits::default())?.login(&Expected {
        trust: &case.trust,
        key: case.key.as_ref(),
        audience: case.audience,
        issuer: case.issuer,
        recipient: case.recipient,
        request_id: case.request_id,
        now_s: parse_instant(case.now).expect("an instant"),
        leeway_s: 60,
    })
}

fn posted(xml: &str, case: &Case<'_>) -> Result<Login, SamlError> {
    let message = STANDARD.encode(xml);
    read(&from_form(message.as_bytes(), None, 256 << 10)?, case)
}

/// The name of the user, or what is wrong.
fn describe_login(result: Result<Login, SamlError>) -> String {
    match result {
        Ok(login) => format!("user {}", login.name_id.value),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn responses_of_other_programs_are_read() {
    let opens = || DecryptionKey::new(&data("sp.key.pem")).ok();
    let not_signed = "the assertion is not signed";
    for (name, key, expected) in [
        ("assertion_signed", None, "user ada"),
        ("response_signed", None, "user ada"),
        ("both_signed", None, "user ada"),
        ("unsigned", None, not_signed),
        ("sha1", None, "the message is signed with SHA-1"),
        (
            "other_key",
            None,
            "the signature is not one of the configured certificates",
        ),
        ("encrypted_gcm", opens(), "user ada"),
        (
            "encrypted_gcm",
            DecryptionKey::new(&data("sp.pkcs1.pem")).ok(),
            "user ada",
        ),
        (
            "encrypted_gcm",
            None,
            "the assertion is encrypted, and there is no key to open it with",
        ),
        (
            "encrypted_gcm",
            DecryptionKey::new(&data("other.key.pem")).ok(),
            "the encrypted assertion cannot be opened with the key",
        ),
        (
            "encrypted_cbc",
            opens(),
            "an assertion that is encrypted with AES-CBC is only read in a signed response",
        ),
        ("encrypted_cbc_signed_response", opens(), "user ada"),
        ("encrypted_unsigned", opens(), not_signed),
        (
            "hmac",
            None,
            "the signature is made with an algorithm that is not allowed",
        ),
    ] {
        let case = Case { key, ..case() };
        assert_eq!(
            describe_login(posted(&data(&format!("{name}.xml")), &case)),
            expected,
            "{name}"
        );
    }
    let old = Case {
        trust: Trust {
            sha1: true,
            ..trust(&["idp.crt.pem"])
        },
        ..case()
    };
    assert_eq!(describe_login(posted(&data("sha1.xml"), &old)), "user ada");
}

#[test]
fn all_that_an_assertion_says_is_read() {
    let login = posted(&data("assertion_signed.xml"), &case()).expect("good");
    assert_eq!(login.session_index.as_deref(), Some("_session1"));
    let groups = login
        .attributes
        .iter()
        .find(|it| it.name.ends_with("/groups"))
        .expect("groups");
    assert_eq!(groups.values, ["admins", "developers"]);
    let name = login
        .attributes
        .iter()
        .find(|it| it.name.ends_with("/name"))
        .expect("a name");
    assert_eq!(name.values, ["Ada & <Co>"]);
    // Two certificates: while the provider changes its key.
    let case = Case {
        trust: trust(&["other.crt.pem", "idp.crt.pem", "ec.crt.pem"]),
        issuer: None,
        ..case()
    };
    let login = posted(&data("elliptic.xml"), &case).expect("good");
    assert_eq!(login.name_id.value, "gr\u{fc}n&<blau>");
    assert_eq!(login.name_id.service_qualifier.as_deref(), Some("urn:sp.test"));
    assert_eq!(login.session_ends_s, parse_instant("2026-11-23T17:32:08Z"));
    // A value with elements is no text.
    assert_eq!(login.attributes[0].values, ["a\tb\nc"]);
    assert_eq!(login.attributes[0].friendly_name.as_deref(), Some("Mail"));
}

#[test]
fn what_is_not_for_this_request_place_and_time_is_refused() {
    let expired = "the assertion is not good yet or not any more";
    for (change, expected) in [
        (
            Case {
                audience: "urn:other",
                ..case()
            },
            "the assertion is for another audience",
        ),
        (
            Case {
                recipient: "https://sp.test/other",
                ..case()
            },
            "the response was sent to another place",
        ),
        (
            Case {
                request_id: "_request2",
                ..case()
            },
            "the response answers another request",
        ),
        (
            Case {
                issuer: Some("urn:other"),
                ..case()
            },
            "the message is one of another identity provider",
        ),
        (
            Case {
                issuer: None,
                ..case()
            },
            "user ada",
        ),
        (
            Case {
                now: "2026-11-23T10:33:07Z",
                ..case()
            },
            "user ada",
        ),
        (
            Case {
                now: "2026-11-23T10:33:08Z",
                ..case()
            },
            expired,
        ),
        (
            Case {
                now: "2026-11-23T09:31:09Z",
                ..case()
            },
            "user ada",
        ),
        (
            Case {
                now: "2026-11-23T09:31:00Z",
                ..case()
            },
            "the message was made in the future",
        ),
        (
            Case {
                trust: trust(&["other.crt.pem", "ec.crt.pem"]),
                ..case()
            },
            "the signature is not one of the configured certificates",
        ),
        (
            Case {
                trust: trust(&[]),
                ..case()
            },
            "the signature is not one of the configured certificates",
        ),
    ] {
        assert_eq!(
            describe_login(posted(&data("assertion_signed.xml"), &change)),
            expected
        );
    }
}

/// An element with all that is in it, as it stands in the text.
fn element<'t>(xml: &'t str, name: &str) -> &'t str {
    let from = xml.find(&format!("<{name}")).expect("a start");
    let end = format!("</{name}>");
    let to = xml[from..].rfind(&end).expect("an end") + from + end.len();
    &xml[from..to]
}

/// The assertion of an attacker who poses as another user: without a signature, and with another id.
fn forged(xml: &str) -> String {
    let assertion = element(xml, "saml:Assertion");
    let signature = element(assertion, "Signature");
    let id = assertion
        .split("ID=\"")
        .nth(1)
        .and_then(|it| it.split('"').next())
        .expect("an id");
    let plain = assertion
        .replace(signature, "")
        .replace(">ada</saml:NameID>", ">admin</saml:NameID>");
    plain.replace(id, "_forged")
}

/// Wrapped signatures: the attacks of Somorovsky and others (2012, on breaking SAML), and others of the kind.
#[test]
fn wrapped_assertions_are_refused() {
    let xml = data("assertion_signed.xml");
    let assertion = element(&xml, "saml:Assertion");
    let forged = forged(&xml);
    let signature = element(assertion, "Signature");
    let several = "the response has several assertions";
    let inside =
        |outer: &str, inner: &str| outer.replace("</saml:Assertion>", &format!("{inner}</saml:Assertion>"));
    let object = |inner: &str| {
        let object = format!("<Object>{inner}</Object></Signature>");
        signature.replace("</Signature>", &object)
    };
    let with_signature =
        |signature: &str| forged.replacen("</saml:Issuer>", &format!("</saml:Issuer>{signature}"), 1);
    let extensions = |inner: &str| format!("<samlp:Extensions>{inner}</samlp:Extensions>");
    let attacks = [
        (
            "forged first",
            xml.replace(assertion, &format!("{forged}{assertion}")),
            several,
        ),
        (
            "forged last",
            xml.replace(assertion, &format!("{assertion}{forged}")),
            several,
        ),
        (
            "original in the forged one",
            xml.replace(assertion, &inside(&forged, assertion)),
            several,
        ),
        (
            "forged in the original one",
            xml.replace(assertion, &inside(assertion, &forged)),
            several,
        ),
        (
            "original in the object of the signature",
            xml.replace(assertion, &with_signature(&object(assertion))),
            several,
        ),
        (
            "original in extensions",
            xml.replace(assertion, &format!("{}{forged}", extensions(assertion))),
            several,
        ),
        (
            "signature of the original in the forged one",
            xml.replace(assertion, &with_signature(signature)),
            "the signature is one of another element",
        ),
        (
            "the same id",
            xml.replace(
                assertion,
                &with_signature(signature).replace("_forged", &id_of(assertion)),
            ),
            "what is signed was changed",
        ),
        (
            "original in the subject",
            xml.replace(
                assertion,
                &forged.replace("</saml:Subject>", &format!("{assertion}</saml:Subject>")),
            ),
            several,
        ),
    ];
    refuse(&xml, &attacks);
    // A signature of the whole response does not help: it covers what was wrapped, too.
    let xml = data("response_signed.xml");
    let assertion = element(&xml, "saml:Assertion");
    let forged = assertion.replace(">ada</saml:NameID>", ">admin</saml:NameID>");
    assert_eq!(
        describe_login(posted(&xml.replace(assertion, &forged), &case())),
        "what is signed was changed"
    );
}

/// Signatures in other places, and messages with parts missing or doubled.
#[test]
fn signatures_in_other_places_are_refused() {
    let xml = data("assertion_signed.xml");
    let assertion = element(&xml, "saml:Assertion");
    let signature = element(assertion, "Signature");
    let forged = forged(&xml);
    let elsewhere = "a signature is in a place where none is allowed";
    let extensions = |inner: &str| format!("<samlp:Extensions>{inner}</samlp:Extensions>");
    let attacks = [
        (
            "signature beside the assertion",
            xml.replace(assertion, &format!("{signature}{forged}")),
            "the signature is one of another element",
        ),
        (
            "signature in the status",
            xml.replace("<samlp:Status>", &format!("<samlp:Status>{signature}")),
            elsewhere,
        ),
        (
            "not signed",
            xml.replace(signature, ""),
            "the assertion is not signed",
        ),
        (
            "two signatures",
            xml.replace(signature, &format!("{signature}{signature}")),
            "an element that may be there once is there twice",
        ),
        (
            "two names",
            xml.replace(
                "</saml:Subject>",
                "<saml:NameID>admin</saml:NameID></saml:Subject>",
            ),
            "what is signed was changed",
        ),
        (
            "no assertion",
            xml.replace(assertion, ""),
            "the response has no assertion",
        ),
        (
            "deep in another element",
            xml.replace(assertion, &extensions(&extensions(assertion))),
            "the response has no assertion",
        ),
    ];
    refuse(&xml, &attacks);
}

/// Each attack changes the message, and is refused for its reason.
fn refuse(xml: &str, attacks: &[(&str, String, &str)]) {
    for (name, attack, expected) in attacks {
        assert_ne!(attack, xml, "{name} is an attack");
        assert_eq!(describe_login(posted(attack, &case())), *expected, "{name}");
    }
}

fn id_of(assertion: &str) -> String {
    let id = assertion
        .split("ID=\"")
        .nth(1)
        .and_then(|it| it.split('"').next());
    id.expect("an id").to_owned()
}

#[test]
fn changed_messages_are_refused() {
    let xml = data("assertion_signed.xml");
    let changed = "what is signed was changed";
    let not_one = "the signature is not one of the configured certificates";
    let bad_parts = "the signature has parts that it may not have";
    let bad_transforms = "the signature has transforms that are not allowed";
    let sha256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
    let digest = "http://www.w3.org/2001/04/xmlenc#sha256";
    let enveloped = "<Transform Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"/>";
    let attacks: Vec<(&str, String, &str)> = [
        ("another name", ">ada</saml:NameID>", ">admin</saml:NameID>", changed),
        ("another audience", "urn:sp.test", "urn:other.test", changed),
        ("a longer life", "T10:32:08.", "T23:32:08.", changed),
        ("a document type", "<samlp:Response", "<!DOCTYPE x [<!ENTITY a 'ada'>]><samlp:Response", "the XML has a document type or entities"),
        ("an entity", ">ada</saml:NameID>", ">&ada;</saml:NameID>", "the XML uses an entity"),
        ("another algorithm", sha256, "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512", not_one),
        ("a shared secret", sha256, "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256", "the signature is made with an algorithm that is not allowed"),
        ("no algorithm", sha256, "none", "the signature is made with an algorithm that is not allowed"),
        ("an empty algorithm", sha256, "", "the signature is made with an algorithm that is not allowed"),
        ("SHA-1", sha256, "http://www.w3.org/2000/09/xmldsig#rsa-sha1", "the message is signed with SHA-1"),
        ("a hash with SHA-1", digest, "http://www.w3.org/2000/09/xmldsig#sha1", "the message is signed with SHA-1"),
        ("an unknown hash", digest, "http://www.w3.org/2001/04/xmldsig-more#md5", "the signature has a hash that is not allowed"),
        ("another canonical form", "<CanonicalizationMethod Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"", "<CanonicalizationMethod Algorithm=\"http://www.w3.org/TR/2001/REC-xml-c14n-20010315\"", "the signature has another canonical form than the exclusive one"),
        ("with comments", "<CanonicalizationMethod Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"", "<CanonicalizationMethod Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#WithComments\"", "the signature has another canonical form than the exclusive one"),
        ("a transform more", enveloped, "<Transform Algorithm=\"http://www.w3.org/TR/1999/REC-xpath-19991116\"><XPath>ancestor</XPath></Transform>", bad_transforms),
        ("no transform", enveloped, "", bad_transforms),
        ("an empty reference", "<Reference URI=\"#", "<Reference URI=\"\" x=\"#", "the signature is one of another element"),
        ("a reference with XPointer", "<Reference URI=\"#", "<Reference URI=\"#xpointer(/)", "the signature is one of another element"),
        ("two references", "<Reference URI", "<Reference/><Reference URI", "the signature has not one reference"),
        ("an object", "<KeyInfo>", "<Object/><KeyInfo>", bad_parts),
        ("another status", "status:Success", "status:Responder", "the identity provider did not log the user in"),
        ("no destination, not signed", " Destination=\"https://sp.test/acs\"", "", "user ada"),
        ("another destination", "Destination=\"https://sp.test/acs\"", "Destination=\"https://evil.test/acs\"", "the response was sent to another place"),
        ("another request", "InResponseTo=\"_request1\"  Version", "InResponseTo=\"_request2\"  Version", "the response answers another request"),
        ("not asked for", "InResponseTo=\"_request1\"  Version", "Version", "the response answers another request"),
        ("another version", "Version=\"2.0\" IssueInstant", "Version=\"1.1\" IssueInstant", "the response is not of version 2.0"),
        ("no response", "samlp:Response", "samlp:Answer", "the message is not a response to a login"),
    ]
    .into_iter()
    .map(|(name, from, to, expected)| (name, xml.replace(from, to), expected))
    .collect();
    for (name, attack, expected) in attacks {
        assert_ne!(attack, xml, "{name} is an attack");
        assert_eq!(describe_login(posted(&attack, &case())), expected, "{name}");
    }
}

#[test]
fn comments_cut_no_name_short() {
    let xml = data("assertion_signed.xml");
    // A comment is no part of what is signed, so the signature stays good: the name is the whole text, as it was signed.
    let name = xml.replace(">ada</saml:NameID>", ">a<!-- x -->da</saml:NameID>");
    assert_eq!(describe_login(posted(&name, &case())), "user ada");
    let element = xml.replace(">ada</saml:NameID>", ">a<x xmlns=\"urn:x\"/>da</saml:NameID>");
    assert_eq!(
        describe_login(posted(&element, &case())),
        "what is signed was changed"
    );
    let audience = xml.replace(">urn:sp.test<", ">urn:sp.<!---->test<");
    assert_eq!(describe_login(posted(&audience, &case())), "user ada");
}

/// Computing the canonical form of a message is work. Only the provider may cause it: the signature is checked before.
#[test]
fn signatures_are_checked_before_what_they_sign() {
    let xml = data("assertion_signed.xml");
    let changed = xml.replace(">ada</saml:NameID>", ">admin</saml:NameID>");
    let strangers = Case {
        trust: trust(&["other.crt.pem"]),
        ..case()
    };
    assert_eq!(
        describe_login(posted(&changed, &strangers)),
        "the signature is not one of the configured certificates"
    );
    assert_eq!(
        describe_login(posted(&changed, &case())),
        "what is signed was changed"
    );
}

/// A provider may have users whose names differ in a blank only.
#[test]
fn names_keep_the_blanks_that_are_theirs() {
    let key = SigningKey::new(&data("idp.key.pem"), None, Hash::Sha256, Hash::Sha256).expect("a key");
    for (name, expected) in [
        ("\n   ada\t", "ada"),
        ("ada\u{a0}", "ada\u{a0}"),
        ("\u{2003}ada", "\u{2003}ada"),
        ("ada b", "ada b"),
    ] {
        let xml = data("unsigned.xml").replace(">ada</saml:NameID>", &format!(">{name}</saml:NameID>"));
        let url = redirect_url("https://sp.test/acs", "SAMLResponse", &xml, None, Some(&key));
        let (_, query) = url.split_once('?').expect("a query");
        let received = from_query(query, "SAMLResponse", &case().trust, 64 << 10);
        let received = received.expect("signed").expect("a message");
        assert_eq!(
            describe_login(read(&received, &case())),
            format!("user {expected}")
        );
    }
}

#[test]
fn doubled_ids_are_refused_whatever_their_attribute_is_called() {
    let xml = data("both_signed.xml");
    let id = id_of(element(&xml, "saml:Assertion"));
    for attribute in ["ID", "Id", "id", "xml:id"] {
        let attack = xml.replace("<samlp:Status>", &format!("<samlp:Status {attribute}=\"{id}\">"));
        assert_eq!(
            describe_login(posted(&attack, &case())),
            "two elements have the same ID",
            "{attribute}"
        );
    }
}

#[test]
fn redirects_carry_signed_responses() {
    let key = SigningKey::new(&data("idp.key.pem"), None, Hash::Sha256, Hash::Sha256).expect("a key");
    let xml = data("unsigned.xml");
    let url = redirect_url(
        "https://sp.test/acs",
        "SAMLResponse",
        &xml,
        Some("a b"),
        Some(&key),
    );
    let (_, query) = url.split_once('?').expect("a query");
    let read_query = |query: &str| {
        let received = from_query(query, "SAMLResponse", &trust(&["idp.crt.pem"]), 64 << 10)?;
        received
            .map(|it| (it.relay_state.clone(), describe_login(read(&it, &case()))))
            .ok_or(SamlError("nothing"))
    };
    assert_eq!(
        read_query(query),
        Ok((Some("a b".to_owned()), "user ada".to_owned()))
    );
    let bare = redirect_url("https://sp.test/acs", "SAMLResponse", &xml, None, None);
    let (_, bare) = bare.split_once('?').expect("a query");
    assert_eq!(
        read_query(bare),
        Ok((None, "the assertion is not signed".to_owned()))
    );
    let not_one = "the signature is not one of the configured certificates";
    let signature = query.split("&Signature=").nth(1).expect("a signature");
    for (name, attack, expected) in [
        (
            "another state",
            query.replace("RelayState=a%20b", "RelayState=c"),
            not_one,
        ),
        (
            "without the state",
            query.replace("&RelayState=a%20b", ""),
            not_one,
        ),
        (
            "another algorithm",
            query.replace("rsa-sha256", "rsa-sha512"),
            not_one,
        ),
        (
            "half a signature",
            query.replace(&format!("&Signature={signature}"), ""),
            "the query has half a signature",
        ),
        (
            "twice",
            format!("{query}&SAMLResponse=x"),
            "the query has a parameter twice",
        ),
        (
            "not Base64",
            "SAMLResponse=%ff".to_owned(),
            "the query is not UTF-8",
        ),
        (
            "not packed",
            format!("SAMLResponse={}", "QUFBQQ%3D%3D"),
            "the message cannot be unpacked",
        ),
        ("nothing", "a=b".to_owned(), "nothing"),
    ] {
        assert_eq!(read_query(&attack), Err(SamlError(expected)), "{name}");
    }
    // A small query that becomes large.
    let large = redirect_url(
        "https://sp.test/acs",
        "SAMLResponse",
        &" ".repeat(1 << 20),
        None,
        None,
    );
    let (_, large) = large.split_once('?').expect("a query");
    assert!(large.len() < 3_000);
    assert_eq!(read_query(large), Err(SamlError("the message is too long")));
}

#[test]
fn keys_are_checked_when_they_are_configured() {
    for (name, expected) in [
        ("idp.crt.pem", None),
        ("ec.crt.pem", None),
        ("short.crt.pem", Some("expected an RSA key of at least 2048 bits")),
        ("idp.key.pem", Some("expected a certificate in PEM")),
    ] {
        let fault = VerifyingKey::of_certificate(&data(name)).err().map(|it| it.0);
        assert_eq!(fault, expected, "{name}");
    }
    // Some configurations leave the lines around a certificate out.
    let bare: String = data("idp.crt.pem")
        .lines()
        .filter(|it| !it.starts_with('-'))
        .collect();
    assert!(VerifyingKey::of_certificate(&bare).is_ok());
    let key = |name: &str, certificate: Option<&str>| {
        let certificate = certificate.map(data);
        let made = SigningKey::new(&data(name), certificate.as_deref(), Hash::Sha256, Hash::Sha256);
        made.err().map(|it| it.0)
    };
    let expected = "expected an RSA private key in PEM (not encrypted, at least 2048 bits)";
    for (name, certificate, fault) in [
        ("sp.key.pem", Some("sp.crt.pem"), None),
        ("sp.pkcs1.pem", None, None),
        (
            "sp.key.pem",
            Some("idp.crt.pem"),
            Some("the certificate is not that of the key"),
        ),
        ("ec.key.pem", None, Some(expected)),
        ("sp.crt.pem", None, Some(expected)),
    ] {
        assert_eq!(key(name, certificate), fault, "{name}");
    }
}
