//! For which server names clients are asked for a certificate, because a plugin of a route wants one. The handshake comes
//! before the route is known, so names are taken from the routes' server names, or else from their hosts.

use super::server::{ServerIdentity, ServerTls};
use crate::Route;
use crate::persistent_state::PersistentState;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use weir_model::{Certificate, HostPattern, RouteMatch};

/// The names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AskedNames {
    /// Every name.
    all: bool,
    exact: BTreeSet<String>,
    /// All names that end in a dot and this.
    below: BTreeSet<String>,
    /// All names that begin with this and a dot.
    starts: BTreeSet<String>,
}

impl AskedNames {
    /// The names of all routes with a filter that asks.
    pub(crate) fn of(routes: &[Arc<weir_model::Route>], compiled: &[Arc<Route>]) -> Self {
        let mut names = Self::default();
        let asking = routes
            .iter()
            .zip(compiled)
            .filter(|(_, made)| made.chain.asks_client_certificate);
        for (route, _) in asking {
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

    fn is_empty(&self) -> bool {
        !self.all && self.exact.is_empty() && self.below.is_empty() && self.starts.is_empty()
    }

    /// Whether some names below this one are asked.
    fn reaches_below(&self, rest: &str) -> bool {
        let mut ends = std::iter::successors(Some(rest), |it| Some(it.split_once('.')?.1));
        self.all || ends.any(|end| self.below.contains(end))
    }

    fn has(&self, name: &str) -> bool {
        let mut starts = std::iter::successors(Some(name), |it| Some(it.rsplit_once('.')?.0)).skip(1);
        self.exact.contains(name)
            || name
                .split_once('.')
                .map_or(self.all, |(_, rest)| self.reaches_below(rest))
            || starts.any(|start| self.starts.contains(start))
    }
}

impl ServerTls {
    /// Has clients of these names asked for a certificate.
    pub(crate) fn ask(&mut self, asked: &AskedNames, certificates: &[Certificate], carry: &PersistentState) {
        if asked.is_empty() {
            return;
        }
        let mut sources: HashMap<*const ServerIdentity, &Certificate> = HashMap::new();
        for certificate in certificates.iter().filter(|it| it.client.is_none()) {
            if let Ok(shown) = carry.presented(certificate, false, || Err(())) {
                sources.insert(Arc::as_ptr(&shown), certificate);
            }
        }
        let asking = |shown: &Arc<ServerIdentity>| {
            let certificate = sources.get(&Arc::as_ptr(shown))?;
            let made = carry.presented(certificate, true, || ServerIdentity::asking(certificate, carry));
            made.ok()
        };
        // Names that had no entry of their own are shown what they were, so they are looked up before anything changes.
        let entry =
            |name: &String, probe: &str| Some((name.clone(), self.find(Some(probe)).and_then(asking)?));
        let exact: Vec<_> = asked.exact.iter().filter_map(|name| entry(name, name)).collect();
        let below = asked
            .below
            .iter()
            .filter(|rest| !self.any_first.contains_key(*rest));
        let below: Vec<_> = below
            .filter_map(|rest| entry(rest, &format!("*.{rest}")))
            .collect();
        let starts = asked
            .starts
            .iter()
            .filter(|start| !self.any_last.contains_key(*start));
        let starts: Vec<_> = starts
            .filter_map(|start| entry(start, &format!("{start}.*")))
            .collect();
        let replace = |shown: &mut Arc<ServerIdentity>| {
            if let Some(made) = asking(shown) {
                *shown = made;
            }
        };
        self.exact
            .iter_mut()
            .filter(|(name, _)| asked.has(name))
            .for_each(|(_, shown)| replace(shown));
        self.any_first
            .iter_mut()
            .filter(|(rest, _)| asked.reaches_below(rest))
            .for_each(|(_, shown)| replace(shown));
        self.any_last
            .iter_mut()
            .filter(|(start, _)| asked.all || asked.starts.contains(*start))
            .for_each(|(_, shown)| replace(shown));
        if let Some(others) = self.others.as_mut().filter(|_| asked.all) {
            replace(others);
        }
        self.exact.extend(exact);
        self.any_first.extend(below);
        self.any_last.extend(starts);
        self.asks_clients = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(hosts: &[&str], snis: &[&str]) -> AskedNames {
        let mut names = AskedNames::default();
        names.add_match(&RouteMatch {
            hosts: hosts.iter().map(|it| HostPattern::parse(it).unwrap()).collect(),
            snis: snis.iter().map(|it| (*it).to_owned()).collect(),
            ..RouteMatch::default()
        });
        names
    }

    /// What certificates are there, and which of the names are asked.
    fn asks(asked: &AskedNames, shown: &[&str], names: &[&str]) -> Vec<bool> {
        let carry = PersistentState::default();
        let certificates: Vec<Certificate> = shown
            .iter()
            .map(|name| {
                let made = rcgen::generate_simple_self_signed([(*name).to_owned()]).unwrap();
                Certificate {
                    names: vec![(*name).to_owned()],
                    key_pairs: vec![weir_model::KeyPair {
                        certificate: made.cert.pem(),
                        key: made.signing_key.serialize_pem(),
                    }],
                    client: None,
                    min_version: weir_model::TlsVersion::default(),
                }
            })
            .collect();
        let mut found = Vec::new();
        let mut tls = ServerTls::compile(&certificates, &carry, &mut found);
        assert_eq!(found, []);
        tls.ask(asked, &certificates, &carry);
        let is_asked = |name: &&str| tls.find(Some(name)).is_some_and(|it| it.asks_clients);
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
            let names = asked(hosts, snis);
            assert_eq!(
                asks(&names, &["a.test", "*"], &all),
                expected,
                "{hosts:?} {snis:?}"
            );
            assert_eq!(
                asks(&names, &all, &all),
                expected,
                "{hosts:?} {snis:?}, each its own"
            );
        }
    }

    /// An entry for all names below another has one step only, so deeper names need a certificate of their own.
    #[test]
    fn names_below_others_are_asked() {
        let names = asked(&["*.test"], &[]);
        let all = ["a.test", "x.sub.test", "test"];
        assert_eq!(asks(&names, &all, &all), [true, true, false]);
        assert_eq!(asks(&names, &["*"], &all), [true, false, false]);
    }

    #[test]
    fn without_such_a_route_nothing_changes() {
        assert_eq!(asks(&AskedNames::default(), &["a.test"], &["a.test"]), [false]);
    }
}
