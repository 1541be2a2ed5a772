//! An instance of `mtls-auth` at work: judges the certificate of a call, and says who calls.

use super::presented_certificates::{self, PresentedCertificates};
use super::revocation_list::{RevocationList, read_crl};
use super::verify::{self, Authorities};
use super::{CertificateGroup, Config, Revocation, Source};
use crate::authenticated_groups;
use crate::consumer_names::{ConsumerNames, scoped_key};
use crate::identity::Gate;
use crate::shared_fetch::{FetchRequest, FetchResult};
use aws_lc_rs::digest;
use data_encoding::HEXLOWER;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_model::x509_details::CertificateDetails;
use weir_plugin::{
    AuthFailure, ConsumerIdentity, CredentialIndex, Exchange, Filter, Identity, Outcome, Phases,
};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// How long a list that could not be had, or that says nothing about the certificate, is not fetched again.
const RETRY_MS: u64 = 10_000;
/// The longest that a list is used before it is fetched again. One that ends earlier is fetched again then.
const LIST_MS: u64 = 3_600_000;

/// What was found about certificates: the names of the good ones.
pub(super) type Verdicts = ExpiringMap<Option<Arc<CertificateHolder>>>;
/// Certificate revocation lists (CRLs), by the rules of their instance and their address.
pub(super) type Crls = ExpiringMap<RevocationList>;

/// Whose a certificate is.
#[derive(Debug)]
pub(super) struct CertificateHolder {
    /// By what the consumer is found, in order.
    names: Vec<String>,
    subject: String,
    common_name: Option<String>,
    fingerprint: String,
}

/// An instance of `mtls-auth`.
pub(super) struct CertificateFilter {
    pub(super) config: Config,
    pub(super) gate: Gate,
    pub(super) authorities: Authorities,
    /// The accepted certificates, if they are listed one by one.
    pub(super) registered: Option<Arc<CredentialIndex<()>>>,
    pub(super) names: Arc<ConsumerNames>,
    pub(super) default_consumer: Option<Arc<ConsumerIdentity>>,
    pub(super) verdicts: Arc<Verdicts>,
    pub(super) lists: Arc<Crls>,
    pub(super) rules: ServerCallRules,
    /// Tells its verdicts and lists from those of instances with other rules.
    pub(super) key: Vec<u8>,
}

/// What verdicts depend on besides the certificate, and lists besides their address. An instance of another workspace may
/// fetch a list through a proxy of its own: what it finds is for itself only.
pub(super) fn key(config: &Config) -> Vec<u8> {
    let rules = (
        &config.authorities,
        config.partial_chain,
        &config.registered,
        config.revocation,
        config.cache_seconds,
        &config.http,
    );
    let text = serde_json::to_vec(&rules).unwrap_or_default();
    digest::digest(&digest::SHA256, &text).as_ref().to_vec()
}

/// How long something is used that a list says, in milliseconds. A list that has ended, or that could not be had, is fetched
/// again soon.
fn usable_ms(ends_ms: u64, now_ms: u64) -> u64 {
    match ends_ms.saturating_sub(now_ms) {
        0 => RETRY_MS,
        left_ms => left_ms,
    }
}

impl CertificateFilter {
    /// Whose the certificates are; `None`: they are not good.
    fn evaluate(
        &self,
        exchange: &mut Exchange,
        chain: &[Vec<u8>],
    ) -> Result<Option<Arc<CertificateHolder>>, Outcome> {
        let now_ms = exchange.unix_ms();
        let key = self.verdict_key(chain);
        if let Some(known) = self.verdicts.get(&key, now_ms) {
            return Ok(known);
        }
        let is_pinned = self.registered.is_some() && self.config.authorities.is_empty();
        let is_good = match is_pinned {
            true => verify::is_current(chain, now_ms),
            false => self.authorities.accept(chain, now_ms),
        };
        let mut lasts_ms = self.config.cache_seconds.saturating_mul(1_000);
        let holder = match is_good {
            false => None,
            true => self.holder(exchange, chain, &mut lasts_ms)?,
        };
        let bytes = 256 + key.len();
        let lifetime = Lifetime::fresh(lasts_ms.max(1));
        self.verdicts
            .insert(&key, holder.clone(), bytes, lifetime, now_ms);
        Ok(holder)
    }

    fn verdict_key(&self, chain: &[Vec<u8>]) -> Vec<u8> {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&self.key);
        for certificate in chain {
            context.update(&(certificate.len() as u64).to_be_bytes());
            context.update(certificate);
        }
        context.finish().as_ref().to_vec()
    }

    /// Whose a certificate with a good signature is, unless it was revoked. What was found lasts no longer than the list.
    fn holder(
        &self,
        exchange: &mut Exchange,
        chain: &[Vec<u8>],
        lasts_ms: &mut u64,
    ) -> Result<Option<Arc<CertificateHolder>>, Outcome> {
        let own = chain.first().map_or(&[][..], Vec::as_slice);
        let Some(details) = CertificateDetails::of_der(own) else {
            return Ok(None);
        };
        // There are no revocation lists of certificates that are good by themselves.
        if self.config.revocation != Revocation::Skip && !self.config.authorities.is_empty() {
            let list = self.list(exchange, chain, &details)?;
            let now_ms = exchange.unix_ms();
            let mode = self.config.revocation;
            if !details.revocation_lists.is_empty() {
                let ends_ms = list.as_ref().map_or(0, RevocationList::ends_ms);
                *lasts_ms = usable_ms(ends_ms, now_ms).min(*lasts_ms);
            }
            if self.authorities.is_revoked(chain, now_ms, list.as_ref(), mode) {
                return Ok(None);
            }
        }
        let fingerprint = digest::digest(&digest::SHA256, own);
        let mut names = details.alternative_names;
        names.extend(details.common_name.clone());
        Ok(Some(Arc::new(CertificateHolder {
            names,
            subject: details.subject,
            common_name: details.common_name,
            fingerprint: HEXLOWER.encode(fingerprint.as_ref()),
        })))
    }

    /// The list that a certificate names, once for all calls.
    fn list(
        &self,
        exchange: &mut Exchange,
        chain: &[Vec<u8>],
        details: &CertificateDetails,
    ) -> Result<Option<RevocationList>, Outcome> {
        let lists = details.revocation_lists.iter();
        let Some((url, server)) = lists
            .filter_map(|url| Some((url, HttpServer::parse(url)?)))
            .next()
        else {
            return Ok(None);
        };
        let key = [&self.key, url.as_bytes()].concat();
        let wanted = FetchRequest {
            map: &self.lists,
            key: &key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        let found = wanted.find(
            self,
            exchange,
            |_| {
                let request = HttpRequest {
                    accept: "application/pkix-crl, */*",
                    ..HttpRequest::GET
                };
                Outcome::Subrequest(Box::new(server.request(request, &self.rules)))
            },
            |exchange| {
                let Some(answer) = exchange.subrequest_response.take().flatten() else {
                    tracing::warn!(url, "the server of a certificate revocation list does not answer");
                    return None;
                };
                let Some(der) = read_crl(&answer.body).filter(|_| answer.status == 200) else {
                    let status = answer.status;
                    tracing::warn!(url, status, "a certificate revocation list cannot be read");
                    return None;
                };
                let list = RevocationList::of(&der, &self.authorities, chain);
                let now_ms = exchange.unix_ms();
                let is_its = list.names(&self.authorities, chain, now_ms).is_some();
                let lifetime = match is_its {
                    // If there is no newer one, an old one is better than none.
                    true => Lifetime {
                        fresh_ms: usable_ms(list.ends_ms(), now_ms).min(LIST_MS),
                        stale_ms: LIST_MS,
                    },
                    false => Lifetime::fresh(RETRY_MS),
                };
                let bytes = list.bytes();
                Some((list, bytes, lifetime))
            },
        );
        match found {
            FetchResult::Value(list) => Ok(Some(list)),
            FetchResult::Nothing => Ok(None),
            FetchResult::Wait(outcome) => Err(outcome),
        }
    }

    fn accept(&self, exchange: &mut Exchange, holder: &CertificateHolder) -> Outcome {
        let config = &self.config;
        if let (Some(index), Some(scope)) = (&self.registered, &config.registered) {
            exchange.add_fingerprint(holder.fingerprint.as_bytes());
            return match index.get(&scoped_key(scope, &holder.fingerprint), || exchange.now_ms()) {
                Some(entry) => self.gate.accept(exchange, &entry.identity),
                None => self.gate.reject(exchange, AuthFailure::Invalid, None),
            };
        }
        let found = holder
            .names
            .iter()
            .find_map(|name| self.names.find(name, &config.consumer_by));
        let consumer = found.or(self.default_consumer.as_ref());
        exchange.add_fingerprint(holder.fingerprint.as_bytes());
        match consumer {
            Some(consumer) => {
                let identity = Identity {
                    consumer: Arc::clone(consumer),
                    credential_id: Some(holder.fingerprint.as_str().into()),
                };
                self.gate.accept(exchange, &identity)
            }
            None if config.consumer_required => {
                self.gate.reject(exchange, AuthFailure::ConsumerMissing, None)
            }
            None => {
                self.gate.accept_unknown(exchange, &holder.subject);
                let group = match config.group {
                    Some(CertificateGroup::CommonName) => holder.common_name.as_ref(),
                    Some(CertificateGroup::Subject) => Some(&holder.subject),
                    None => None,
                };
                if let Some(group) = group {
                    authenticated_groups::note(exchange, [group.clone()]);
                }
                Outcome::Continue
            }
        }
    }
}

impl Filter for CertificateFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn requests_client_certificate(&self) -> bool {
        self.config.source == Source::Handshake
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let failure = match presented_certificates::of(&self.config.source, exchange) {
            PresentedCertificates::Chain(chain) => match self.evaluate(exchange, &chain) {
                Ok(Some(holder)) => return self.accept(exchange, &holder),
                Ok(None) => AuthFailure::Invalid,
                Err(outcome) => return outcome,
            },
            PresentedCertificates::Nothing => AuthFailure::Missing,
            PresentedCertificates::Unreadable => AuthFailure::Malformed,
        };
        self.gate.reject(exchange, failure, None)
    }
}
