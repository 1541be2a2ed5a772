//! One certificate: an order, its challenges, and what the authority signs in the end (RFC 8555, section 7.4).

use super::documents::{ChallengeResponse, IssuedCertificate, challenge_key};
use super::issuer::GatewayCheck;
use super::lease::Lease;
use super::{AcmeError, account, challenge_response};
use instant_acme::{
    AuthorizationStatus, ChallengeType, Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::time::Duration;
use weir_model::{Acme, AcmeChallenge, Certificate, KeyPair};
use weir_snapshot::{ServerIdentity, ServerTlsState};
use weir_store::{Change, Store};

/// How long answers to challenges stay if they are not taken back.
const ANSWERS_LIFE: Duration = Duration::from_secs(600);
/// How an authority is asked how far it is.
const POLLING: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(300))
    .backoff(1.5)
    .timeout(Duration::from_secs(90));

/// Gets the entry's certificate. The answers to its challenges are in the store, at most, when it is over: `given`
/// says how many.
///
/// # Errors
/// The authority signs nothing, or the store does not do its part.
pub async fn issue(
    entry: &Acme,
    store: &dyn Store,
    lease: &Lease<'_>,
    reach: &GatewayCheck<'_>,
    given: &mut usize,
) -> Result<IssuedCertificate, AcmeError> {
    let account = account::of(entry, store, lease).await?;
    let names = entry
        .hosts
        .iter()
        .map(|host| Identifier::Dns(host.to_ascii_lowercase()));
    let names: Vec<Identifier> = names.collect();
    let mut order = account.new_order(&NewOrder::new(&names)).await?;
    if order.state().status == OrderStatus::Pending {
        let answers = answers(&mut order, entry.challenge).await?;
        *given = answers.len();
        let changes = answers.iter().enumerate().map(|(number, answer)| {
            let unusable = |error: &dyn std::fmt::Display| AcmeError::Unusable(error.to_string());
            Ok(Change::Put {
                key: challenge_key(&entry.name, number).map_err(|error| unusable(&error))?,
                value: serde_json::to_vec(answer)
                    .map_err(|error| unusable(&error))?
                    .into(),
                time_to_live: Some(ANSWERS_LIFE),
            })
        });
        let changes: Vec<Change> = changes.collect::<Result<_, AcmeError>>()?;
        let revision = lease.commit("challenges", &changes).await?;
        reach.everywhere(store, revision).await;
        let is_ready = ask(&mut order, entry.challenge).await;
        if let Err(error) = is_ready {
            // What the authority found out stands with the challenges.
            return Err(fault(&mut order).await.map_or(error, AcmeError::Refused));
        }
    }
    let (hosts, kind) = (entry.hosts.clone(), entry.key);
    let made = tokio::task::spawn_blocking(move || challenge_response::Request::new(&hosts, kind)).await;
    let request = made.map_err(|error| AcmeError::Unusable(error.to_string()))??;
    order.finalize_csr(&request.request).await?;
    let certificate = order.poll_certificate(&POLLING).await?;
    usable(entry, certificate, request.key)
}

/// The answers to the order's challenges. Names that are known to be the gateway's have none.
async fn answers(order: &mut Order, kind: AcmeChallenge) -> Result<Vec<ChallengeResponse>, AcmeError> {
    let mut answers = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let Some(challenge) = authorization.challenge(type_of(kind)) else {
            return Err(AcmeError::Refused(
                "the authority does not offer this challenge".to_owned(),
            ));
        };
        let authorized = challenge.key_authorization();
        answers.push(match kind {
            AcmeChallenge::Http01 => challenge_response::over_http(&challenge.token, authorized.as_str())?,
            AcmeChallenge::TlsAlpn01 => {
                let host = challenge.identifier().to_string();
                challenge_response::over_tls(&host, authorized.digest().as_ref())?
            }
        });
    }
    Ok(answers)
}

/// Asks the authority to validate, and waits for the result.
async fn ask(order: &mut Order, kind: AcmeChallenge) -> Result<(), AcmeError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        if authorization.status != AuthorizationStatus::Valid
            && let Some(mut challenge) = authorization.challenge(type_of(kind))
        {
            challenge.set_ready().await?;
        }
    }
    match order.poll_ready(&POLLING).await? {
        OrderStatus::Ready => Ok(()),
        _ => Err(AcmeError::Refused(
            "the authority has found that a name is not this gateway's".to_owned(),
        )),
    }
}

/// Why the authority does not believe it.
async fn fault(order: &mut Order) -> Option<String> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        let state = authorization.refresh().await.ok()?;
        let found = state.challenges.iter().find_map(|it| it.error.as_ref());
        if let Some(problem) = found {
            return Some(format!("{}: {problem}", state.identifier()));
        }
    }
    None
}

fn type_of(kind: AcmeChallenge) -> ChallengeType {
    match kind {
        AcmeChallenge::Http01 => ChallengeType::Http01,
        AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
    }
}

/// The signed certificate, once it is known that it can be served.
fn usable(entry: &Acme, certificate: String, key: String) -> Result<IssuedCertificate, AcmeError> {
    let certificate_of_entry = Certificate {
        names: entry.hosts.clone(),
        key_pairs: vec![KeyPair {
            certificate: certificate.clone(),
            key: key.clone(),
        }],
        client: None,
        min_version: entry.min_version,
        ocsp_stapling: None,
    };
    ServerIdentity::of(&certificate_of_entry, &ServerTlsState::default())
        .map_err(|found| AcmeError::Unusable(found.message))?;
    let first = CertificateDer::from_pem_slice(certificate.as_bytes());
    let validity = first
        .ok()
        .and_then(|first| weir_snapshot::validity(&first))
        .ok_or_else(|| AcmeError::Unusable("a certificate without an end".to_owned()))?;
    Ok(IssuedCertificate {
        directory: entry.directory.clone(),
        hosts: entry.hosts.clone(),
        kind: entry.key,
        certificate,
        key,
        from: validity.from,
        until: validity.until,
    })
}
