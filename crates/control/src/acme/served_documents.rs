//! The documents that gateways read from the store and serve: issued certificates, and the responses to challenges.

use super::documents::{CERTIFICATES, CHALLENGES, ChallengeResponse, IssuedCertificate};
use std::borrow::Cow;
use std::collections::BTreeMap;
use weir_model::{
    Acme, Certificate, ChainStep, Comparison, KeyPair, Model, Operator, PathPattern, PluginInstance,
    Predicate, Route, RouteMatch, TlsVersion,
};

/// The path of challenges over HTTP (RFC 8555, section 8.3).
const PATH: &str = "/.well-known/acme-challenge/";
/// The name of the route that answers them.
const ROUTE: &str = ".well-known/acme-challenge";

/// The documents, read.
#[derive(Default)]
pub struct ServedDocuments {
    issued: BTreeMap<String, IssuedCertificate>,
    answers: BTreeMap<String, ChallengeResponse>,
}

impl ServedDocuments {
    /// Takes over one document; `None`: it is gone. One that cannot be read is as good as none.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        if let Some(entry) = key.strip_prefix(CERTIFICATES) {
            apply(&mut self.issued, entry, value);
        } else if let Some(entry) = key.strip_prefix(CHALLENGES) {
            apply(&mut self.answers, entry, value);
        }
    }

    /// Adds what is there to a model. A certificate is served for an entry that still asks for it; one that the
    /// configuration brings itself for the same name goes before.
    pub fn finish(&self, model: &mut Cow<'_, Model>) {
        let certificates = model.acme.iter().flat_map(|entry| self.of_entry(entry));
        let certificates: Vec<Certificate> = certificates.collect();
        if !certificates.is_empty() {
            model.to_mut().certificates.splice(0..0, certificates);
        }
        if !self.answers.is_empty() {
            self.answer(model.to_mut());
        }
    }

    /// The certificate that was issued for an entry. If its clients must show one, handshakes for the other names are
    /// refused: another certificate could ask clients for none.
    fn of_entry(&self, entry: &Acme) -> Vec<Certificate> {
        let issued = self.issued.get(&entry.name);
        let issued_hosts = issued.map(|it| it.hosts.as_slice()).unwrap_or_default();
        let is_issued = |host: &String| issued_hosts.iter().any(|it| it.eq_ignore_ascii_case(host));
        let (names, missing): (Vec<String>, Vec<String>) = entry.hosts.iter().cloned().partition(is_issued);
        let named = |names: Vec<String>| Certificate {
            names,
            key_pairs: Vec::new(),
            client: entry.client.clone(),
            min_version: entry.min_version,
            ocsp_stapling: None,
        };
        let mut certificates = Vec::new();
        if entry.client.is_some() && !missing.is_empty() {
            let mut refusing = named(missing);
            refusing.refuse_handshakes();
            certificates.push(refusing);
        }
        if let Some(issued) = issued
            && !names.is_empty()
        {
            let pair = KeyPair {
                certificate: issued.certificate.clone(),
                key: issued.key.clone(),
            };
            certificates.push(Certificate {
                key_pairs: vec![pair],
                ..named(names)
            });
        }
        certificates
    }

    fn answer(&self, model: &mut Model) {
        let (mut matches, mut plugins) = (Vec::new(), Vec::new());
        for answer in self.answers.values() {
            match answer {
                ChallengeResponse::Http01 { token, body } => {
                    let path = format!("{PATH}{token}");
                    plugins.push(ChainStep::inline(reply(&path, body)));
                    matches.push(RouteMatch {
                        path: PathPattern::Exact(path),
                        // Before all that the configuration has.
                        precedence: Some(u64::MAX),
                        ..RouteMatch::default()
                    });
                }
                ChallengeResponse::TlsAlpn01 {
                    host,
                    certificate,
                    key,
                } => model.tls_challenges.push(Certificate {
                    names: vec![host.clone()],
                    key_pairs: vec![KeyPair {
                        certificate: certificate.clone(),
                        key: key.clone(),
                    }],
                    client: None,
                    min_version: TlsVersion::default(),
                    ocsp_stapling: None,
                }),
            }
        }
        if matches.is_empty() {
            return;
        }
        let plain = serde_json::json!({"name": ROUTE, "match": [], "to": {"respond": {"status": 404}}});
        let route: Route = serde_json::from_value(plain).expect("invariant: a route's text form");
        let route = Route {
            // The table that is asked first.
            dialect: model.routes.first().map_or(model.dialect, |route| route.dialect),
            matches,
            plugins,
            upgrade: false,
            ..route
        };
        model.routes.push(route.into());
    }
}

/// The reply to a call for one path.
fn reply(path: &str, body: &str) -> PluginInstance {
    PluginInstance {
        id: String::new(),
        name: "request-termination".to_owned(),
        config: serde_json::json!({
            "status": 200,
            "content_type": "application/octet-stream",
            "body": body,
        }),
        when: Some(Predicate::Compare(Comparison {
            variable: "uri".to_owned(),
            operator: Operator::Equal,
            value: path.into(),
        })),
        on_refusal: None,
        workspace: None,
        state: None,
        placeholder_for: None,
    }
}

fn apply<T: serde::de::DeserializeOwned>(map: &mut BTreeMap<String, T>, entry: &str, value: Option<&[u8]>) {
    match value.and_then(|value| serde_json::from_slice(value).ok()) {
        Some(read) => {
            map.insert(entry.to_owned(), read);
        }
        None => {
            map.remove(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::compile_reduced;
    use serde_json::json;
    use weir_snapshot::PersistentState;

    fn model() -> Model {
        let document = json!({"weir": 1,
            "services": [{"name": "a", "url": "http://127.0.0.1:1", "routes": [{"name": "all", "paths": ["/"]}]}],
            "acme": [{"name": "main", "hosts": ["a.test", "b.test"], "terms_accepted": true}]});
        weir_native::translate(&document).expect("a model").0
    }

    fn finished(served: &ServedDocuments) -> Model {
        let model = model();
        let mut model = Cow::Borrowed(&model);
        served.finish(&mut model);
        model.into_owned()
    }

    fn apply(served: &mut ServedDocuments, key: &str, value: &serde_json::Value) {
        served.apply(key, Some(value.to_string().as_bytes()));
    }

    #[test]
    fn what_was_signed_is_served_for_the_names_that_are_still_asked_for() {
        let mut served = ServedDocuments::default();
        assert_eq!(finished(&served), model(), "nothing is there");
        let issued = json!({"directory": "https://ca.test", "hosts": ["A.test", "c.test"], "kind": "ecdsa-p256",
            "certificate": "x", "key": "y", "from": 0, "until": 1});
        apply(&mut served, "acme/certificates/main", &issued);
        apply(&mut served, "acme/certificates/gone", &issued);
        let found = finished(&served).certificates;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].names, ["a.test"]);
        apply(&mut served, "acme/certificates/main", &json!({}));
        assert_eq!(
            finished(&served),
            model(),
            "what cannot be read is as good as none"
        );
    }

    /// Names whose clients must show a certificate never go to another certificate.
    #[test]
    fn names_without_a_certificate_are_refused_if_clients_must_show_one() {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let issued = json!({"directory": "https://ca.test", "hosts": ["a.test"], "kind": "ecdsa-p256",
            "certificate": pem, "key": key, "from": 0, "until": 1});
        for (authorities, is_issued, expected) in [
            (None, false, vec![("*.test", false)]),
            (None, true, vec![("a.test", false), ("*.test", false)]),
            (
                Some(pem.as_str()),
                false,
                vec![("a.test b.test", true), ("*.test", false)],
            ),
            (
                Some(pem.as_str()),
                true,
                vec![("b.test", true), ("a.test", false), ("*.test", false)],
            ),
            (
                Some("none"),
                false,
                vec![("a.test b.test", true), ("*.test", false)],
            ),
            (
                Some("none"),
                true,
                vec![("b.test", true), ("a.test", true), ("*.test", false)],
            ),
        ] {
            let mut entry = json!({"name": "main", "hosts": ["a.test", "b.test"], "terms_accepted": true});
            if let Some(authorities) = authorities {
                entry["client"] = json!({"authorities": authorities});
            }
            let beside = json!({"names": ["*.test"], "key_pairs": [{"certificate": pem, "key": key}]});
            let model: Model =
                serde_json::from_value(json!({"weir": 1, "certificates": [beside], "acme": [entry]}))
                    .expect("a model");
            let mut served = ServedDocuments::default();
            if is_issued {
                apply(&mut served, "acme/certificates/main", &issued);
            }
            let mut model = Cow::Borrowed(&model);
            served.finish(&mut model);
            let (registry, persistent) = (weir_plugins::registry(), PersistentState::default());
            let reduced = compile_reduced(&model, &registry, &persistent)
                .unwrap_or_else(|found| panic!("{authorities:?} {is_issued}: {found:?}"));
            let left = reduced.model.certificates.iter();
            let left: Vec<(String, bool)> = left
                .map(|it| (it.names.join(" "), it.refuses_handshakes()))
                .collect();
            let left: Vec<(&str, bool)> = left.iter().map(|(names, it)| (names.as_str(), *it)).collect();
            assert_eq!(left, expected, "{authorities:?} {is_issued}");
            let identity = reduced.snapshot.tls.find(Some("b.test")).expect("an identity");
            let asks = identity.requests_client_certificate;
            assert_eq!(asks, authorities.is_some(), "{authorities:?} {is_issued}");
            let is_explained = reduced.skipped.iter().any(|it| {
                it.name == "acme 'main'" && it.reason.ends_with("calls that come to it are refused")
            });
            assert_eq!(is_explained, authorities == Some("none"), "{:?}", reduced.skipped);
        }
    }

    #[test]
    fn answers_come_and_go_with_their_documents() {
        let mut served = ServedDocuments::default();
        let over_http = |token: &str| json!({"type": "http-01", "token": token, "body": "answer"});
        let over_tls = json!({"type": "tls-alpn-01", "host": "a.test", "certificate": "x", "key": "y"});
        apply(&mut served, "acme/challenges/main/0", &over_http("one"));
        apply(&mut served, "acme/challenges/main/1", &over_http("two"));
        apply(&mut served, "acme/challenges/main/2", &over_tls);
        let found = finished(&served);
        let route = found.routes.last().expect("a route");
        let paths: Vec<&PathPattern> = route.matches.iter().map(|it| &it.path).collect();
        let path = |token: &str| PathPattern::Exact(format!("/.well-known/acme-challenge/{token}"));
        assert_eq!(paths, [&path("one"), &path("two")]);
        assert_eq!((route.plugins.len(), found.tls_challenges.len()), (2, 1));
        let registry = weir_plugins::registry();
        let compiled = weir_snapshot::compile(
            &Model {
                tls_challenges: Vec::new(),
                ..found
            },
            &registry,
            &PersistentState::default(),
        );
        assert!(compiled.is_ok(), "{:?}", compiled.err());
        for number in 0..3 {
            served.apply(&format!("acme/challenges/main/{number}"), None);
        }
        assert_eq!(finished(&served), model());
    }
}
