//! The server names whose clients are asked for a certificate, because a plugin of a route needs one. The handshake
//! comes before the route is known, so names are taken from the routes' server names, or else from their hosts.

use std::collections::BTreeSet;
use std::sync::Arc;
use weir_model::{HostPattern, Route, RouteMatch};

/// The names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CertificateRequestNames {
    /// Every name, and clients that send none.
    pub(super) all: bool,
    exact: BTreeSet<String>,
    /// All names that end in a dot and this.
    below: BTreeSet<String>,
    /// All names that begin with this and a dot.
    starts: BTreeSet<String>,
}

impl CertificateRequestNames {
    /// The names of these routes: those with a filter that asks.
    pub(crate) fn of<'r>(asking: impl IntoIterator<Item = &'r Arc<Route>>) -> Self {
        let mut names = Self::default();
        for route in asking {
            match route.matches.as_slice() {
                [] => names.all = true,
                matches => matches.iter().for_each(|it| names.add_match(it)),
            }
        }
        names
    }

    fn add_match(&mut self, it: &RouteMatch) {
        if !it.snis.is_empty() {
            for name in &it.snis {
                self.add(&HostPattern::parse(name.trim_end_matches('.')).unwrap_or(HostPattern::Any));
            }
        } else if it.hosts.is_empty() {
            self.all = true;
        } else {
            it.hosts.iter().for_each(|host| self.add(host));
        }
    }

    fn add(&mut self, pattern: &HostPattern) {
        match pattern {
            HostPattern::Any => self.all = true,
            HostPattern::Exact { host, .. } => {
                self.exact.insert(host.clone());
            }
            HostPattern::Suffix { suffix, .. } => {
                self.below.insert(suffix.trim_start_matches('.').to_owned());
            }
            HostPattern::Prefix { prefix, .. } => {
                self.starts.insert(prefix.trim_end_matches('.').to_owned());
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.all && self.exact.is_empty() && self.below.is_empty() && self.starts.is_empty()
    }

    /// Whether some names below this one are asked.
    fn reaches_below(&self, rest: &str) -> bool {
        let mut ends = std::iter::successors(Some(rest), |it| Some(it.split_once('.')?.1));
        self.all || ends.any(|end| self.below.contains(end))
    }

    /// Whether a certificate's name may be that of an asked one. Patterns may always: they are few.
    pub(super) fn may_meet(&self, name: &str) -> bool {
        name.contains('*') || self.has(&name.to_ascii_lowercase())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        let mut starts = std::iter::successors(Some(name), |it| Some(it.rsplit_once('.')?.0)).skip(1);
        self.exact.contains(name)
            || name
                .split_once('.')
                .map_or(self.all, |(_, rest)| self.reaches_below(rest))
            || starts.any(|start| self.starts.contains(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::server::{ServerTls, ServerTlsState};
    use weir_model::{Certificate, ClientCertificate};

    fn request_names(hosts: &[&str], snis: &[&str]) -> CertificateRequestNames {
        let mut names = CertificateRequestNames::default();
        names.add_match(&RouteMatch {
            hosts: hosts.iter().map(|it| HostPattern::parse(it).unwrap()).collect(),
            snis: snis.iter().map(|it| (*it).to_owned()).collect(),
            ..RouteMatch::default()
        });
        names
    }

    /// What is shown, with a certificate of each of these names. Those that begin with `!` demand certificates.
    fn served(asked: CertificateRequestNames, shown: &[&str]) -> ServerTls {
        let state = ServerTlsState::default();
        let certificates: Vec<Certificate> = shown
            .iter()
            .map(|shown| {
                let name = shown.trim_start_matches('!').to_owned();
                let made = rcgen::generate_simple_self_signed([name.clone()]).unwrap();
                let client = shown.starts_with('!').then(|| ClientCertificate {
                    authorities: made.cert.pem(),
                    optional: false,
                    exempt_paths: Vec::new(),
                });
                Certificate {
                    names: vec![name],
                    key_pairs: vec![weir_model::KeyPair {
                        certificate: made.cert.pem(),
                        key: made.signing_key.serialize_pem(),
                    }],
                    client,
                    min_version: weir_model::TlsVersion::default(),
                    ocsp_stapling: None,
                }
            })
            .collect();
        let mut found = Vec::new();
        let mut tls = ServerTls::compile(&certificates, &state, &mut found);
        assert_eq!(found, []);
        tls.ask(asked, &certificates, &state);
        tls
    }

    /// What certificates are there, and which of the names are asked.
    fn asks(asked: CertificateRequestNames, shown: &[&str], names: &[&str]) -> Vec<bool> {
        let tls = served(asked, shown);
        let is_asked = |name: &&str| {
            tls.find(Some(name))
                .is_some_and(|it| it.requests_client_certificate)
        };
        names.iter().map(is_asked).collect()
    }

    #[test]
    fn only_the_names_of_routes_that_want_one_are_asked() {
        let all = ["a.test", "b.test", "x.sub.test", "sub.test", "a.other"];
        for (hosts, snis, expected) in [
            (&["a.test"][..], &[][..], [true, false, false, false, false]),
            (&[], &["b.test"], [false, true, false, false, false]),
            // Server names go before hosts.
            (&["a.test"], &["b.test"], [false, true, false, false, false]),
            (&["*.sub.test"], &[], [false, false, true, false, false]),
            (&["a.*"], &[], [true, false, false, false, true]),
            (&[], &[], [true, true, true, true, true]),
        ] {
            let names = || request_names(hosts, snis);
            assert_eq!(
                asks(names(), &["a.test", "*"], &all),
                expected,
                "{hosts:?} {snis:?}"
            );
            assert_eq!(
                asks(names(), &all, &all),
                expected,
                "{hosts:?} {snis:?}, each its own"
            );
        }
    }

    /// A certificate's pattern has one step, that of a host any number of them.
    #[test]
    fn names_below_others_are_asked() {
        let names = || request_names(&["*.test"], &[]);
        let all = ["a.test", "x.sub.test", "test"];
        assert_eq!(asks(names(), &all, &all), [true, true, false]);
        assert_eq!(asks(names(), &["*"], &all), [true, true, false]);
    }

    #[test]
    fn names_are_asked_whatever_pattern_their_certificate_has() {
        let names = ["shop.example.com", "a.example.com", "shop.test", "shop"];
        for (host, certificate, expected) in [
            ("shop.*", "*.example.com", [true, false, false, false]),
            ("*.test", "shop.*", [false, false, true, false]),
            ("shop.*", "*", [true, false, true, false]),
            ("a.example.com", "*.example.com", [false, true, false, false]),
        ] {
            let found = asks(request_names(&[host], &[]), &[certificate], &names);
            assert_eq!(found, expected, "{host} {certificate}");
        }
    }

    /// What demands certificates stays as it is, and goes on to be found first.
    #[test]
    fn asked_names_never_change_which_certificate_a_name_has() {
        for (host, certificates, name) in [
            ("*.test", ["!a.*", "*"], "a.test"),
            ("a.*", ["!*.test", "*"], "a.test"),
            ("*.sub.test", ["!*.sub.test", "*"], "x.sub.test"),
            ("a.test", ["!a.test", "*"], "a.test"),
        ] {
            let tls = served(request_names(&[host], &[]), &certificates);
            let found = tls.find(Some(name)).unwrap();
            assert!(found.verifies_clients(), "{host} {certificates:?}");
            let other = tls.find(Some("b.other")).unwrap();
            assert!(!other.requests_client_certificate, "{host} {certificates:?}");
        }
    }

    #[test]
    fn without_such_a_route_nothing_changes() {
        assert_eq!(
            asks(CertificateRequestNames::default(), &["a.test"], &["a.test"]),
            [false]
        );
    }
}
