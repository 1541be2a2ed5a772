//! OCSP stapling (RFC 6066, section 8): a key pair with what its certificate's responder says of it. This judges answers
//! and says when the responder is to be asked again. It asks no responder itself; a handshake takes what is there.

use super::provider;
use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_model::OcspStapling;
use weir_model::ocsp::{
    CertificateId, InvalidResponse, Response, SingleResponse, Status, Subject, responder,
};

/// How far the clock of a responder may be ahead, in seconds.
const SKEW: i64 = 300;
/// How long it takes until a responder that has failed is asked again, in seconds; twice as long each further time.
const RETRY: i64 = 10;
/// The longest of these waits.
const MAX_RETRY: i64 = 600;
/// The least time between two questions, in seconds.
const MIN_WAIT: i64 = 10;
/// The most bytes of an answer that is passed on.
pub const MAX_RESPONSE: usize = 64 * 1024;

/// `1.3.6.1.5.5.7.3.9`: the certificate of a responder.
const OCSP_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x09];

/// Why an answer is not passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableAnswer {
    /// It is no response that helps.
    #[error(transparent)]
    Invalid(#[from] InvalidResponse),
    /// It is too long.
    #[error("it is longer than {MAX_RESPONSE} bytes")]
    TooLong,
    /// It is about other certificates.
    #[error("it is not about this certificate")]
    Other,
    /// The certificate was revoked.
    #[error("the certificate was revoked")]
    Revoked,
    /// The responder does not know the certificate.
    #[error("the responder does not know the certificate")]
    Unknown,
    /// It is not good yet, or no more.
    #[error("it is not valid at this time: check the clocks")]
    Untimely,
    /// Its signature is not one of the certificate's issuer or of a responder of that.
    #[error("its signature is not from the issuer")]
    Unsigned,
}

/// Why a certificate cannot be stapled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StapleError {
    /// It names no responder.
    #[error("the certificate names no OCSP responder, so no OCSP response is stapled")]
    Responder,
    /// Its issuer is not known.
    #[error("the certificate's issuer does not follow it in the chain, so no OCSP response is stapled")]
    Issuer,
}

/// A key pair whose certificate has a responder.
#[derive(Debug)]
pub struct Staple {
    key: Arc<CertifiedKey>,
    /// The same with the responder's answer; `None` if there is no valid one now.
    stapled: ArcSwapOption<CertifiedKey>,
    id: CertificateId,
    /// Where the responder is.
    pub url: String,
    /// What it is asked.
    pub request: Vec<u8>,
    rules: OcspStapling,
    schedule: Mutex<Schedule>,
}

/// When something is to be done, in seconds since the Unix epoch.
#[derive(Debug, Default)]
struct Schedule {
    /// The responder is asked.
    ask_at: i64,
    /// Whether it is being asked.
    is_asked: bool,
    failures: u32,
    /// The answer is not good any more.
    ends_at: Option<i64>,
}

impl Staple {
    /// A key pair without an answer yet.
    ///
    /// # Errors
    /// Its certificate has no responder that can be asked.
    pub(super) fn new(key: Arc<CertifiedKey>, rules: &OcspStapling) -> Result<Self, StapleError> {
        let certificate = key.cert.first().ok_or(StapleError::Issuer)?;
        let url = responder(certificate).ok_or(StapleError::Responder)?;
        let subject = key
            .cert
            .get(1)
            .and_then(|issuer| Subject::of(certificate, issuer));
        let id = subject
            .ok_or(StapleError::Issuer)?
            .id(|text| digest(&SHA1_FOR_LEGACY_USE_ONLY, text).as_ref().to_vec());
        Ok(Self {
            request: id.request(),
            id,
            url,
            key,
            stapled: ArcSwapOption::empty(),
            rules: rules.clone(),
            schedule: Mutex::default(),
        })
    }

    fn schedule(&self) -> std::sync::MutexGuard<'_, Schedule> {
        // A panic under the lock leaves whole values only.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the responder is to be asked now; then this says so once, until there is an answer or a failure. An answer
    /// that is not good any more is forgotten.
    pub fn is_due(&self, now: i64) -> bool {
        let mut schedule = self.schedule();
        if schedule.ends_at.is_some_and(|end| end <= now) {
            schedule.ends_at = None;
            self.stapled.store(None);
        }
        let is_due = !schedule.is_asked && schedule.ask_at <= now;
        schedule.is_asked |= is_due;
        is_due
    }

    /// Whether there is an answer that is good.
    pub fn is_stapled(&self) -> bool {
        self.stapled.load().is_some()
    }

    /// Accepts a responder's answer. It is requested again before it expires.
    ///
    /// # Errors
    /// The reason why it is not used. An answer that says that the certificate was revoked ends the previous one; all
    /// other answers leave it unchanged.
    pub fn take(&self, response: &[u8], now: i64) -> Result<(), UnusableAnswer> {
        let judged = self.evaluate(response, now);
        match judged {
            Ok(next_update) => {
                let mut stapled = CertifiedKey::clone(&self.key);
                stapled.ocsp = Some(response.to_vec());
                self.stapled.store(Some(Arc::new(stapled)));
                let longest = now + i64::from(self.rules.cache_ttl_seconds);
                let mut schedule = self.schedule();
                // One that says nothing of news is not used for ever.
                schedule.ends_at = next_update.or(Some(longest + i64::from(self.rules.cache_ttl_seconds)));
                schedule.failures = 0;
                schedule.is_asked = false;
                // Before it ends there is time for other tries.
                let ahead = next_update.map(|end| now + (end - now) / 2);
                schedule.ask_at = ahead
                    .map_or(longest, |ahead| ahead.min(longest))
                    .max(now + MIN_WAIT);
                Ok(())
            }
            Err(reason) => {
                if reason == UnusableAnswer::Revoked {
                    self.stapled.store(None);
                }
                self.fail(now);
                Err(reason)
            }
        }
    }

    /// The responder has not answered. It is asked again a while later.
    pub fn fail(&self, now: i64) {
        let mut schedule = self.schedule();
        let wait = RETRY << schedule.failures.min(6);
        schedule.ask_at = now + wait.min(MAX_RETRY);
        schedule.failures = schedule.failures.saturating_add(1);
        schedule.is_asked = false;
    }

    /// When an answer ends; `None`: it says nothing of that.
    fn evaluate(&self, bytes: &[u8], now: i64) -> Result<Option<i64>, UnusableAnswer> {
        if bytes.len() > MAX_RESPONSE {
            return Err(UnusableAnswer::TooLong);
        }
        let response = Response::parse(bytes)?;
        let answer = response.answers.iter().find(|answer| answer.id == self.id);
        let answer = answer.ok_or(UnusableAnswer::Other)?;
        if self.rules.skip_verify {
            return Ok(answer.next_update.filter(|end| *end > now));
        }
        self.verify(&response, now)?;
        check(answer, now)?;
        Ok(answer.next_update)
    }

    /// Whether the issuer has signed a response, or a responder that the issuer has made one.
    fn verify(&self, response: &Response<'_>, now: i64) -> Result<(), UnusableAnswer> {
        let issuer = self.key.cert.get(1).ok_or(UnusableAnswer::Unsigned)?;
        if is_signed_by(response, issuer) {
            return Ok(());
        }
        let is_good = |certificate: &&[u8]| {
            let certificate = CertificateDer::from(*certificate);
            is_responder(&certificate, issuer, now) && is_signed_by(response, &certificate)
        };
        match response.certificates.iter().any(is_good) {
            true => Ok(()),
            false => Err(UnusableAnswer::Unsigned),
        }
    }
}

/// Whether an answer says that the certificate is good now.
fn check(answer: &SingleResponse, now: i64) -> Result<(), UnusableAnswer> {
    match answer.status {
        Status::Good => {}
        Status::Revoked => return Err(UnusableAnswer::Revoked),
        Status::Unknown => return Err(UnusableAnswer::Unknown),
    }
    let is_over = answer.next_update.is_some_and(|end| end <= now);
    match is_over || answer.this_update > now + SKEW {
        true => Err(UnusableAnswer::Untimely),
        false => Ok(()),
    }
}

/// Whether a response is signed with the key of this certificate.
fn is_signed_by(response: &Response<'_>, signer: &CertificateDer<'_>) -> bool {
    let Ok(signer) = webpki::EndEntityCert::try_from(signer) else {
        return false;
    };
    let all = provider().signature_verification_algorithms.all;
    let mut named = all
        .iter()
        .filter(|algorithm| algorithm.signature_alg_id().as_ref() == response.algorithm);
    named.any(|algorithm| {
        let verified = signer.verify_signature(*algorithm, response.signed, response.signature);
        verified.is_ok()
    })
}

/// Whether the issuer has made this certificate for one that answers in its place.
fn is_responder(certificate: &CertificateDer<'_>, issuer: &CertificateDer<'_>, now: i64) -> bool {
    let (Ok(certificate), Ok(anchor)) = (
        webpki::EndEntityCert::try_from(certificate),
        webpki::anchor_from_trusted_cert(issuer),
    ) else {
        return false;
    };
    let time = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap_or(0)));
    let anchors = [anchor];
    let verified = certificate.verify_for_usage(
        provider().signature_verification_algorithms.all,
        &anchors,
        &[],
        time,
        webpki::KeyUsage::required(OCSP_SIGNING),
        None,
        None,
    );
    verified.is_ok()
}

/// What a client is shown of one key pair.
#[derive(Debug)]
pub(super) enum PresentedKey {
    Plain(Arc<CertifiedKey>),
    /// With its responder's answer, if it is known.
    Stapled(Arc<Staple>),
}

impl PresentedKey {
    /// The key pair itself.
    pub(super) fn key(&self) -> &Arc<CertifiedKey> {
        match self {
            Self::Plain(key) => key,
            Self::Stapled(staple) => &staple.key,
        }
    }

    /// The key pair with what its responder says.
    pub(super) fn staple(&self) -> Option<Arc<Staple>> {
        match self {
            Self::Plain(_) => None,
            Self::Stapled(staple) => Some(Arc::clone(staple)),
        }
    }

    fn certified_key(&self) -> Arc<CertifiedKey> {
        match self {
            Self::Plain(key) => Arc::clone(key),
            Self::Stapled(staple) => staple
                .stapled
                .load_full()
                .unwrap_or_else(|| Arc::clone(&staple.key)),
        }
    }
}

/// Several keys for the same names: the first that the client understands.
#[derive(Debug)]
pub(super) struct Keys(pub Vec<PresentedKey>);

impl ResolvesServerCert for Keys {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let is_understood = |key: &&PresentedKey| key.key().key.choose_scheme(schemes).is_some();
        let found = self.0.iter().find(is_understood).or(self.0.first());
        found.map(PresentedKey::certified_key)
    }
}
