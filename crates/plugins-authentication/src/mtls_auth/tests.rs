//! `mtls-auth` as its users see it: certificates of an authority of its own, good and bad ones.

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CrlDistributionPoint,
    CrlIssuingDistributionPoint, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use serde_json::json;
use weir_plugin::{ClientCertificates, Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

const LIST: &str = "http://pki.test/list";

/// An authority, of its own or signed by another one.
struct Authority {
    parameters: CertificateParams,
    key: KeyPair,
    der: Vec<u8>,
    pem: String,
}

impl Authority {
    fn new(name: &str, parent: Option<&Self>) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let made = match parent {
            None => parameters.self_signed(&key),
            Some(parent) => parameters.signed_by(&key, &parent.issuer()),
        };
        let made = made.expect("good");
        Self {
            der: made.der().to_vec(),
            pem: made.pem(),
            parameters,
            key,
        }
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.parameters, &self.key)
    }

    /// A client's certificate.
    fn client(&self, common_name: &str, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut parameters = CertificateParams::default();
        parameters
            .distinguished_name
            .push(DnType::CommonName, common_name);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        parameters.serial_number = Some(SerialNumber::from(7));
        change(&mut parameters);
        let key = KeyPair::generate().expect("a key");
        parameters
            .signed_by(&key, &self.issuer())
            .expect("good")
            .der()
            .to_vec()
    }

    /// A certificate revocation list (CRL).
    fn list(&self, serials: &[u64]) -> Vec<u8> {
        self.list_until(serials, (2036, 1, 1), None)
    }

    /// A list that ends at a day, and may be about the certificates that name a place only.
    fn list_until(&self, serials: &[u64], (year, month, day): (i32, u8, u8), place: Option<&str>) -> Vec<u8> {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2026, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(year, month, day),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: place.map(|place| CrlIssuingDistributionPoint {
                distribution_point: CrlDistributionPoint {
                    uris: vec![place.to_owned()],
                },
                scope: None,
            }),
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        }
        .signed_by(&self.issuer())
        .expect("good")
        .der()
        .to_vec()
    }
}

/// A value in DER.
fn der(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [high, low] = u16::try_from(content.len()).expect("a short one").to_be_bytes();
    let length = match (high, low) {
        (0, 0..=0x7f) => vec![low],
        (0, _) => vec![0x81, low],
        _ => vec![0x82, high, low],
    };
    [&[kind], length.as_slice(), &content].concat()
}

impl Authority {
    /// A list without extensions, as some authorities write them. `version`: that of the list, and of its end if there is one.
    fn crl_without_extensions(&self, serials: &[u8], version: Option<u8>, ends: Option<&str>) -> Vec<u8> {
        use rcgen::SigningKey as _;
        // ecdsa-with-SHA256
        let algorithm = der(
            0x30,
            &[&der(0x06, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]])],
        );
        let begun = der(0x17, &[b"260101000000Z"]);
        let entries = serials
            .iter()
            .map(|it| der(0x30, &[&der(0x02, &[&[*it]]), &begun]));
        let issuer = weir_model::x509_crl::CertificateFields::of_der(&self.der).expect("good");
        let parts = [
            version.map_or_else(Vec::new, |it| der(0x02, &[&[it]])),
            algorithm.clone(),
            der(0x30, &[issuer.subject]),
            begun.clone(),
            ends.map_or_else(Vec::new, |at| der(0x17, &[at.as_bytes()])),
            der(0x30, &[&entries.collect::<Vec<_>>().concat()]),
        ];
        let body = der(0x30, &[&parts.concat()]);
        let signature = self.key.sign(&body).expect("signed");
        der(0x30, &[&body, &algorithm, &der(0x03, &[&[0], &signature])])
    }
}

fn filter(authority: &Authority, change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
    let mut config = Config::new(vec![authority.pem.clone()]);
    config.revocation = Revocation::Skip;
    change(&mut config);
    build(&MtlsAuth::default(), &serde_json::to_value(config).expect("JSON")).expect("valid")
}

fn call(chain: &[&[u8]]) -> Exchange {
    with_chain(exchange(), chain)
}

fn with_chain(mut call: Exchange, chain: &[&[u8]]) -> Exchange {
    call.request.client_certificates = (!chain.is_empty()).then(|| {
        Arc::new(ClientCertificates {
            chain: chain.iter().map(|it| it.to_vec()).collect(),
            is_verified: false,
        })
    });
    call
}

fn judged(filter: &Arc<dyn Filter>, chain: &[&[u8]]) -> (String, Option<String>) {
    let mut call = call(chain);
    let outcome = word(&filter.on_request(&mut call));
    (outcome, call.identity.map(|it| it.consumer.id.clone()))
}

#[test]
fn certificates_lead_to_consumers_by_alternative_names_and_then_by_the_common_name() {
    let authority = Authority::new("root", None);
    let filter_made = filter(&authority, |_| {});
    assert!(filter_made.requests_client_certificate());
    let with_names = |names: &[&str]| {
        let names = names.iter().map(|it| (*it).to_owned());
        CertificateParams::new(names.collect::<Vec<_>>())
            .expect("good")
            .subject_alt_names
    };
    for (common_name, alternative, expected) in [
        ("BOB", &[][..], Some("bob")),
        ("cid", &[], Some("alice")),
        ("mallory", &[], None),
        ("mallory", &["BOB"], Some("bob")),
        ("BOB", &["cid"], Some("alice")),
    ] {
        let client = authority.client(common_name, |it| it.subject_alt_names = with_names(alternative));
        let (outcome, consumer) = judged(&filter_made, &[&client]);
        let wanted = if expected.is_some() {
            "continue"
        } else {
            "ConsumerMissing"
        };
        assert_eq!(
            (outcome.as_str(), consumer.as_deref()),
            (wanted, expected),
            "{common_name} {alternative:?}"
        );
    }
    let mallory = authority.client("mallory", |_| {});
    let open = filter(&authority, |config| config.consumer_required = false);
    let mut seen = call(&[&mallory]);
    seen.request.headers.append(b"X-Consumer-Username", b"forged");
    assert_eq!(word(&open.on_request(&mut seen)), "continue");
    assert_eq!(
        lines(&seen.request.headers),
        ["X-Credential-Identifier: CN=mallory"]
    );
    assert!(seen.has_fingerprint());
    let with_default = filter(&authority, |config| {
        config.default_consumer = Some("guest".into())
    });
    assert_eq!(
        judged(&with_default, &[&mallory]),
        ("continue".into(), Some("guest".into()))
    );
}

#[test]
fn only_certificates_of_the_authority_are_good() {
    let authority = Authority::new("root", None);
    // The same name, another key.
    let other = Authority::new("root", None);
    let filter_made = filter(&authority, |_| {});
    let good = authority.client("BOB", |_| {});
    let cases: [(&str, Vec<Vec<u8>>, &str); 7] = [
        ("good", vec![good.clone()], "continue"),
        ("none", vec![], "Missing"),
        (
            "of another authority",
            vec![other.client("BOB", |_| {})],
            "Invalid",
        ),
        (
            "that brings its own authority",
            vec![other.client("BOB", |_| {}), other.der.clone()],
            "Invalid",
        ),
        (
            "expired",
            vec![authority.client("BOB", |it| {
                it.not_before = date_time_ymd(2020, 1, 1);
                it.not_after = date_time_ymd(2021, 1, 1);
            })],
            "Invalid",
        ),
        (
            "of a server",
            vec![authority.client("BOB", |it| {
                it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            })],
            "Invalid",
        ),
        ("rubbish", vec![b"rubbish".to_vec()], "Invalid"),
    ];
    for (what, chain, expected) in &cases {
        let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
        assert_eq!(judged(&filter_made, &chain).0, *expected, "{what}");
        // Once more, from what was found.
        assert_eq!(judged(&filter_made, &chain).0, *expected, "{what}, again");
    }
    // A client's certificate signs no other one.
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "BOB");
    let issuer_parameters = {
        let mut it = CertificateParams::default();
        it.distinguished_name.push(DnType::CommonName, "cid");
        it
    };
    let issuer = Issuer::from_params(&issuer_parameters, &key);
    let own = KeyPair::generate().expect("a key");
    let forged = parameters.signed_by(&own, &issuer).expect("good").der().to_vec();
    let leaf = issuer_parameters
        .signed_by(&key, &authority.issuer())
        .expect("good")
        .der()
        .to_vec();
    assert_eq!(judged(&filter_made, &[&leaf]).0, "continue");
    assert_eq!(judged(&filter_made, &[&forged, &leaf]).0, "Invalid");
}

/// Certificates that are known one by one need no signature, except that of an authority if there is one.
#[test]
fn registered_certificates_are_good_in_their_scope() {
    let (known, other) = (Authority::new("known", None), Authority::new("other", None));
    let own = known.client("app", |_| {});
    let elsewhere = other.client("app", |_| {});
    let over = known.client("app", |it| it.not_after = date_time_ymd(2020, 1, 1));
    let print = |der: &[u8]| -> String {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let credential = |der: &[u8]| json!({"scope": "gold", "fingerprint": print(der)});
    let credentials = [
        ("alice", Some("c1"), credential(&own)),
        ("bob", Some("c2"), credential(&elsewhere)),
        ("alice", Some("c3"), credential(&over)),
    ];
    let filter = |scope: &str, authorities: &[&str]| {
        let config = json!({"registered": scope, "authorities": authorities});
        build_with(&MtlsAuth::default(), &config, &credentials).expect("valid")
    };
    let unknown = known.client("app", |_| {});
    for (scope, authorities, certificate, expected, who) in [
        ("gold", &[][..], &own, "continue", Some("alice")),
        ("gold", &[], &elsewhere, "continue", Some("bob")),
        ("gold", &[known.pem.as_str()], &own, "continue", Some("alice")),
        ("gold", &[known.pem.as_str()], &elsewhere, "Invalid", None),
        ("gold", &[], &unknown, "Invalid", None),
        ("gold", &[], &over, "Invalid", None),
        ("silver", &[], &own, "Invalid", None),
    ] {
        let mut call = call(&[certificate]);
        let outcome = word(&filter(scope, authorities).on_request(&mut call));
        let found = call.identity.map(|it| it.consumer.id.clone());
        assert_eq!(
            (outcome.as_str(), found.as_deref()),
            (expected, who),
            "{scope} {authorities:?}"
        );
    }
    assert!(filter("gold", &[]).requests_client_certificate());
    let check = MtlsAuth::default().credentials().expect("has some").check;
    assert!(check(&credential(&own)).is_ok());
    assert!(check(&json!({"fingerprint": "AB"})).is_err());
}

#[test]
fn chains_lead_over_others_to_a_root() {
    let root = Authority::new("root", None);
    let between = Authority::new("between", Some(&root));
    let client = between.client("BOB", |_| {});
    let of_root = filter(&root, |_| {});
    assert_eq!(judged(&of_root, &[&client]).0, "Invalid");
    assert_eq!(judged(&of_root, &[&client, &between.der]).0, "continue");
    let both = filter(&root, |config| config.authorities.push(between.pem.clone()));
    assert_eq!(judged(&both, &[&client]).0, "continue");
    for (partial_chain, expected) in [(true, "continue"), (false, "Invalid")] {
        let partial = filter(&between, |config| config.partial_chain = partial_chain);
        assert_eq!(judged(&partial, &[&client]).0, expected, "{partial_chain}");
    }
}

fn names_list(it: &mut CertificateParams) {
    it.crl_distribution_points = vec![CrlDistributionPoint {
        uris: vec![LIST.to_owned()],
    }];
}

/// A call with a certificate that names a list, and what the list's server says.
fn check_call(filter: &Arc<dyn Filter>, chain: &[&[u8]], answer: Option<(u16, Vec<u8>)>) -> (String, usize) {
    check_call_in(exchange(), filter, chain, answer)
}

/// The same in a call at another time.
fn check_call_in(
    call: Exchange,
    filter: &Arc<dyn Filter>,
    chain: &[&[u8]],
    answer: Option<(u16, Vec<u8>)>,
) -> (String, usize) {
    let mut call = with_chain(call, chain);
    let mut asked = 0;
    loop {
        match filter.on_request(&mut call) {
            Outcome::Subrequest(sent) => {
                asked += 1;
                assert_eq!((sent.host.as_str(), sent.port), ("pki.test", 80));
                call.subrequest_response = Some(answer.clone().map(|(status, body)| SubrequestResponse {
                    status,
                    body,
                    ..SubrequestResponse::default()
                }));
            }
            outcome => return (word(&outcome), asked),
        }
    }
}

#[test]
fn revoked_certificates_are_refused() {
    let authority = Authority::new("root", None);
    let other = Authority::new("root", None);
    let client = authority.client("BOB", names_list);
    let silent = authority.client("BOB", |_| {});
    for (answer, lenient, strict, what) in [
        (
            Some((200, authority.list(&[7]))),
            "Invalid",
            "Invalid",
            "on the list",
        ),
        (
            Some((200, authority.list(&[8]))),
            "continue",
            "continue",
            "not on it",
        ),
        (
            Some((200, other.list(&[8]))),
            "continue",
            "Invalid",
            "a list of another one",
        ),
        (Some((200, b"rubbish".to_vec())), "continue", "Invalid", "rubbish"),
        (
            Some((500, authority.list(&[8]))),
            "continue",
            "Invalid",
            "an error",
        ),
        (None, "continue", "Invalid", "no answer"),
    ] {
        for (mode, expected) in [(Revocation::Lenient, lenient), (Revocation::Strict, strict)] {
            let filter = filter(&authority, |config| config.revocation = mode);
            let (found, count) = check_call(&filter, &[&client], answer.clone());
            assert_eq!((found.as_str(), count), (expected, 1), "{what} {mode:?}");
            let (found, count) = check_call(&filter, &[&client], answer.clone());
            assert_eq!((found.as_str(), count), (expected, 0), "{what} {mode:?}, again");
        }
    }
    let strict = filter(&authority, |config| config.revocation = Revocation::Strict);
    assert_eq!(check_call(&strict, &[&silent], None), ("Invalid".into(), 0));
    // Nothing is fetched for a certificate that is not good.
    let forged = other.client("BOB", names_list);
    assert_eq!(check_call(&strict, &[&forged], None), ("Invalid".into(), 0));
}

/// The defect: lists without extensions were taken for none, so certificates on them were let in.
#[test]
fn lists_without_extensions_are_read() {
    let authority = Authority::new("root", None);
    let other = Authority::new("root", None);
    let client = authority.client("BOB", names_list);
    let (later, before) = (Some("360101000000Z"), Some("260201000000Z"));
    let pem = |der: Vec<u8>| {
        let base64 = data_encoding::BASE64.encode(&der);
        format!("-----BEGIN X509 CRL-----\n{base64}\n-----END X509 CRL-----\n").into_bytes()
    };
    let mut forged = authority.crl_without_extensions(&[8], None, later);
    let last = forged.len() - 1;
    forged[last] ^= 1;
    let version_2 = Some(1);
    for (list, lenient, strict, what) in [
        (
            authority.crl_without_extensions(&[7], None, later),
            "Invalid",
            "Invalid",
            "on the list",
        ),
        (
            authority.crl_without_extensions(&[1, 7], version_2, later),
            "Invalid",
            "Invalid",
            "on a list of version 2",
        ),
        (
            pem(authority.crl_without_extensions(&[7], None, later)),
            "Invalid",
            "Invalid",
            "in PEM",
        ),
        (
            authority.crl_without_extensions(&[8], None, later),
            "continue",
            "continue",
            "not on it",
        ),
        (
            authority.crl_without_extensions(&[8], None, before),
            "continue",
            "Invalid",
            "an old list",
        ),
        (
            authority.crl_without_extensions(&[7], None, before),
            "Invalid",
            "Invalid",
            "on an old list",
        ),
        (
            authority.crl_without_extensions(&[8], None, None),
            "continue",
            "Invalid",
            "a list without an end",
        ),
        (
            other.crl_without_extensions(&[7], None, later),
            "continue",
            "Invalid",
            "a list of another one",
        ),
        (forged, "continue", "Invalid", "a forged list"),
    ] {
        for (mode, expected) in [(Revocation::Lenient, lenient), (Revocation::Strict, strict)] {
            let filter = filter(&authority, |config| config.revocation = mode);
            let (found, count) = check_call(&filter, &[&client], Some((200, list.clone())));
            assert_eq!((found.as_str(), count), (expected, 1), "{what} {mode:?}");
        }
    }
}

/// A list that another instance was given, or one that says nothing about the certificate, does not stay in the way.
#[test]
fn lists_are_shared_by_instances_with_the_same_rules_only() {
    let authority = Authority::new("root", None);
    let other = Authority::new("root", None);
    let [client, sibling, of_other] =
        [&authority, &authority, &other].map(|authority| authority.client("BOB", names_list));
    let plugin = MtlsAuth::default();
    let made = |authority: &Authority, proxy: Option<&str>| {
        let mut config = Config::new(vec![authority.pem.clone()]);
        config.cache_seconds = 0;
        config.http.proxy = proxy.map(str::to_owned);
        build(&plugin, &serde_json::to_value(config).expect("JSON")).expect("valid")
    };
    let revoked = Some((200, authority.list(&[7])));
    let foreign = Some((200, other.list(&[8])));
    let steps = [
        (
            "another authority",
            made(&other, None),
            &of_other,
            &foreign,
            ("continue", 1),
        ),
        (
            "its own list",
            made(&authority, None),
            &client,
            &revoked,
            ("Invalid", 1),
        ),
        (
            "the same rules",
            made(&authority, None),
            &sibling,
            &foreign,
            ("Invalid", 0),
        ),
    ];
    for (what, filter, client, answer, expected) in steps {
        let (found, count) = check_call(&filter, &[client], answer.clone());
        assert_eq!((found.as_str(), count), expected, "{what}");
    }
    // Through a proxy of its own.
    let mut proxied = call(&[&client]);
    let outcome = made(&authority, Some("http://proxy.test:3128")).on_request(&mut proxied);
    assert!(
        matches!(outcome, Outcome::Subrequest(_)),
        "it fetches the list itself"
    );
}

#[test]
fn lists_that_say_nothing_are_kept_for_a_short_time() {
    let authority = Authority::new("root", None);
    let other = Authority::new("root", None);
    let client = authority.client("BOB", names_list);
    let own = || Some((200, authority.list(&[7])));
    for (first, outcome, asked_again) in [
        // A list of another one is looked for again, so that the good one is found.
        (other.list(&[8]), "continue", ("Invalid", 1)),
        (authority.list(&[8]), "continue", ("continue", 0)),
        (authority.list(&[7]), "Invalid", ("Invalid", 0)),
    ] {
        let filter = filter(&authority, |config| {
            config.revocation = Revocation::Lenient;
            config.cache_seconds = 0;
        });
        let found = check_call(&filter, &[&client], Some((200, first)));
        assert_eq!(found, (outcome.to_owned(), 1));
        let soon = Exchange::new(|| NOW_MS + 9_000, 7);
        let found = check_call_in(soon, &filter, &[&client], own());
        assert_eq!(found, (outcome.to_owned(), 0));
        let later = Exchange::new(|| NOW_MS + 11_000, 7);
        let found = check_call_in(later, &filter, &[&client], own());
        assert_eq!((found.0.as_str(), found.1), asked_again);
    }
}

/// The defect: a list was used for an hour, and what was found with it for the cache's time, after its authority had written
/// a newer one.
#[test]
fn lists_are_not_used_after_their_end() {
    // The first moment of 2026-11-21, when the list ends.
    const END_MS: u64 = 1_795_219_200_000;
    let authority = Authority::new("root", None);
    let client = authority.client("BOB", names_list);
    for mode in [Revocation::Lenient, Revocation::Strict] {
        let filter = filter(&authority, |config| {
            config.revocation = mode;
            config.cache_seconds = 3_600;
        });
        let first = authority.list_until(&[8], (2026, 11, 21), None);
        let next = authority.list(&[7]);
        let before = || Exchange::new(|| END_MS - 60_000, 7);
        let old = match mode {
            Revocation::Strict => "Invalid",
            _ => "continue",
        };
        for (call, answer, expected, what) in [
            (before(), &first, ("continue", 1), "the first call"),
            (before(), &next, ("continue", 0), "another call"),
            (Exchange::new(|| END_MS, 7), &first, (old, 1), "the same list"),
            (
                Exchange::new(|| END_MS + 10_000, 7),
                &next,
                ("Invalid", 1),
                "the next list",
            ),
        ] {
            let (found, count) = check_call_in(call, &filter, &[&client], Some((200, answer.clone())));
            assert_eq!((found.as_str(), count), expected, "{what}, {mode:?}");
        }
    }
}

#[test]
fn lists_are_used_after_their_end_if_there_is_no_newer_one() {
    const END_MS: u64 = 1_795_219_200_000;
    let authority = Authority::new("root", None);
    let client = authority.client("BOB", names_list);
    let filter = filter(&authority, |config| config.revocation = Revocation::Lenient);
    let list = authority.list_until(&[7], (2026, 11, 21), None);
    for (call, answer, expected) in [
        (
            Exchange::new(|| END_MS - 1_000, 7),
            Some((200, list)),
            ("Invalid", 1),
        ),
        (Exchange::new(|| END_MS, 7), None, ("Invalid", 1)),
    ] {
        let (found, count) = check_call_in(call, &filter, &[&client], answer);
        assert_eq!((found.as_str(), count), expected);
    }
}

/// What is kept of a list says the same of all certificates as the list does.
#[test]
fn a_kept_list_says_what_it_said() {
    let authority = Authority::new("root", None);
    let other = Authority::new("root", None);
    let listed: Vec<u64> = (1..200).rev().map(|it| it * 3).collect();
    let numbered = |authority: &Authority, serial: u64| {
        authority.client("BOB", |it| {
            names_list(it);
            it.serial_number = Some(SerialNumber::from(serial));
        })
    };
    for place in [None, Some(LIST)] {
        let filter = filter(&authority, |config| config.revocation = Revocation::Strict);
        let list = authority.list_until(&listed, (2036, 1, 1), place);
        for (serial, expected, asked) in [
            (599, "continue", 1),
            (3, "Invalid", 0),
            (4, "continue", 0),
            (300, "Invalid", 0),
            (597, "Invalid", 0),
        ] {
            let client = numbered(&authority, serial);
            let found = check_call(&filter, &[&client], Some((200, list.clone())));
            assert_eq!(found, (expected.to_owned(), asked), "{serial} {place:?}");
        }
    }
    // One that is about the certificates of another place says nothing.
    let strict = filter(&authority, |config| config.revocation = Revocation::Strict);
    let elsewhere = authority.list_until(&[8], (2036, 1, 1), Some("http://pki.test/other"));
    let found = check_call(&strict, &[&numbered(&authority, 9)], Some((200, elsewhere)));
    assert_eq!(found, ("Invalid".to_owned(), 1));
    // Nor does the list of an authority say anything about the certificates of another one with its name.
    let both = filter(&authority, |config| {
        config.revocation = Revocation::Strict;
        config.authorities.push(other.pem.clone());
    });
    let own = Some((200, authority.list(&[3])));
    for (client, expected, asked) in [
        (numbered(&authority, 4), "continue", 1),
        (numbered(&other, 4), "Invalid", 0),
        (numbered(&authority, 3), "Invalid", 0),
    ] {
        let found = check_call(&both, &[&client], own.clone());
        assert_eq!(found, (expected.to_owned(), asked));
    }
}

#[test]
fn the_longest_cache_time_is_no_overflow() {
    let authority = Authority::new("root", None);
    let client = authority.client("BOB", |_| {});
    let filter = filter(&authority, |config| config.cache_seconds = u64::MAX);
    for _ in 0..2 {
        assert_eq!(judged(&filter, &[&client]).0, "continue");
    }
}

#[test]
fn a_certificate_in_a_header_is_believed_from_trusted_peers_only() {
    use base64::Engine as _;
    let authority = Authority::new("root", None);
    let der = authority.client("BOB", |_| {});
    let base64 = base64::engine::general_purpose::STANDARD.encode(&der);
    let pem = format!("-----BEGIN%20CERTIFICATE-----%0A{base64}%0A-----END%20CERTIFICATE-----%0A");
    let made = |encoding, trusted: &str| {
        filter(&authority, |config| {
            config.source = Source::Header(HeaderSource {
                name: "X-Cert".into(),
                encoding,
                trusted: vec![trusted.parse().expect("a network")],
            });
        })
    };
    for (encoding, trusted, values, expected) in [
        (
            HeaderEncoding::Base64,
            "10.0.0.1/32",
            vec![base64.as_str()],
            "continue",
        ),
        (
            HeaderEncoding::Base64,
            "10.0.0.1/32",
            vec![&format!(":{base64}:")],
            "continue",
        ),
        (HeaderEncoding::Url, "10.0.0.0/8", vec![&pem], "continue"),
        (HeaderEncoding::Url, "10.0.0.2/32", vec![&pem], "Missing"),
        (HeaderEncoding::Url, "10.0.0.1/32", vec![&base64], "Malformed"),
        (HeaderEncoding::Url, "10.0.0.1/32", vec![&pem, &pem], "Malformed"),
        (HeaderEncoding::Base64, "10.0.0.1/32", vec!["*"], "Malformed"),
        (HeaderEncoding::Base64, "10.0.0.1/32", vec![], "Missing"),
    ] {
        let filter = made(encoding, trusted);
        assert!(!filter.requests_client_certificate());
        let mut call = exchange();
        // The certificate of the connection is the proxy's own.
        call.request.client_certificates = Some(Arc::default());
        for value in &values {
            call.request.headers.append(b"X-Cert", value.as_bytes());
        }
        assert_eq!(
            word(&filter.on_request(&mut call)),
            expected,
            "{encoding:?} {trusted} {values:?}"
        );
        let is_believed = trusted != "10.0.0.2/32";
        assert_eq!(
            call.request.headers.get(b"X-Cert").is_some(),
            is_believed && !values.is_empty()
        );
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let pem = Authority::new("root", None).pem;
    for (config, place) in [
        (json!({"authorities": ["x"]}), "authorities[0]"),
        (json!({"authorities": [pem, "x"]}), "authorities[1]"),
        (
            json!({"authorities": [pem], "source": {"header": {"name": "a b", "encoding": "url", "trusted": []}}}),
            "source.header.name",
        ),
        (
            json!({"authorities": [pem], "default_consumer": "mallory"}),
            "default_consumer",
        ),
        (
            json!({"authorities": [pem], "http": {"timeout_ms": 0}}),
            "http.timeout_ms",
        ),
    ] {
        assert_eq!(refused_at(&MtlsAuth::default(), &config), [place], "{config}");
    }
}
