//! Asking identity providers: what they are, which keys they have, and for tokens. What is asked seldom changes, so
//! answers are kept for a while. A key that is not known makes Weir ask for the keys again, at most every minute.

use super::engine::{LoginError, Metadata, PendingLogin, Tokens, discovery_url, with_userinfo};
use super::jose::{KeySet, TokenError};
use super::provider::Provider;
use crate::http::{ClientRequest, Method};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// For how long answers are kept.
const KEPT: Duration = Duration::from_secs(3600);
/// How often keys are asked for again because one was missing.
const KEYS_AGAIN: Duration = Duration::from_secs(60);
/// The largest answer of a provider, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// The cache of providers' metadata and keys. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Client(Arc<Mutex<HashMap<String, CachedProvider>>>);

#[derive(Debug, Clone)]
struct CachedProvider {
    provider: Provider,
    metadata: Arc<Metadata>,
    metadata_at: Instant,
    keys: Option<(Arc<KeySet>, Instant)>,
}

fn failed(reason: impl std::fmt::Display) -> LoginError {
    LoginError::Provider(reason.to_string())
}

async fn ask<T: DeserializeOwned>(call: ClientRequest) -> Result<T, LoginError> {
    let call = ClientRequest {
        max_body: MAX_ANSWER,
        ..call.header("accept", "application/json")
    };
    let (status, body) = call.make().await.map_err(failed)?;
    if !status.is_success() {
        // An answer of an OAuth server says why (RFC 6749, section 5.2).
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let reason = answer["error"].as_str().unwrap_or_default();
        return Err(failed(format_args!("{status} {reason}")));
    }
    serde_json::from_slice(&body).map_err(failed)
}

impl Client {
    fn known(&self) -> MutexGuard<'_, HashMap<String, CachedProvider>> {
        // Every change leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached data of a provider, if the provider is the same by now.
    fn of(&self, provider: &Provider) -> Option<CachedProvider> {
        let known = self.known().get(&provider.name).cloned();
        known.filter(|it| it.provider == *provider)
    }

    /// A provider's metadata, if it was asked already.
    pub fn known_metadata(&self, provider: &Provider) -> Option<Arc<Metadata>> {
        self.of(provider).map(|it| it.metadata)
    }

    /// A provider's metadata.
    ///
    /// # Errors
    /// It does not answer as it should.
    pub async fn metadata(&self, provider: &Provider) -> Result<Arc<Metadata>, LoginError> {
        if let Some(known) = self.of(provider).filter(|it| it.metadata_at.elapsed() < KEPT) {
            return Ok(known.metadata);
        }
        let document: Value = ask(ClientRequest::get(discovery_url(&provider.issuer))).await?;
        let metadata = Arc::new(Metadata::read(provider, document.to_string().as_bytes())?);
        let known = CachedProvider {
            provider: provider.clone(),
            metadata: Arc::clone(&metadata),
            metadata_at: Instant::now(),
            keys: None,
        };
        self.known().insert(provider.name.clone(), known);
        Ok(metadata)
    }

    /// The keys of a provider, which are at most so old.
    async fn keys(
        &self,
        provider: &Provider,
        metadata: &Metadata,
        max_age: Duration,
    ) -> Result<Arc<KeySet>, LoginError> {
        let known = self.of(provider).and_then(|it| it.keys);
        if let Some((keys, _)) = known.filter(|(_, at)| at.elapsed() < max_age) {
            return Ok(keys);
        }
        let keys: Arc<KeySet> = Arc::new(ask(ClientRequest::get(&metadata.jwks_uri)).await?);
        if let Some(known) = self.known().get_mut(&provider.name) {
            known.keys = Some((Arc::clone(&keys), Instant::now()));
        }
        Ok(keys)
    }

    /// The claims of the person who has logged in with a provider, by the code that came of it.
    ///
    /// # Errors
    /// The provider does not answer as it should, or its token is not accepted.
    pub async fn claims(
        &self,
        provider: &Provider,
        (begun, code): (&PendingLogin, &str),
        now: SystemTime,
    ) -> Result<Value, LoginError> {
        let metadata = self.metadata(provider).await?;
        let (body, authorization) = begun.token_request(provider, &metadata, code);
        let mut call = ClientRequest {
            method: Method::POST,
            body: body.into_bytes(),
            ..ClientRequest::get(&metadata.token_endpoint)
        };
        call = call.header("content-type", "application/x-www-form-urlencoded");
        if let Some(authorization) = authorization {
            call = call.header("authorization", authorization);
        }
        let tokens: Tokens = ask(call).await?;
        let check = |keys: &KeySet| begun.claims(provider, (&tokens.id_token, keys), now);
        let claims = match check(&*self.keys(provider, &metadata, KEPT).await?) {
            Err(TokenError::UnknownKey) => check(&*self.keys(provider, &metadata, KEYS_AGAIN).await?)?,
            checked => checked?,
        };
        let is_complete = claims.get(&provider.groups_claim).is_some();
        match (&metadata.userinfo_endpoint, &tokens.access_token) {
            (Some(url), Some(token)) if !is_complete => {
                let more = ask(ClientRequest::get(url).token(Some(token))).await?;
                Ok(with_userinfo(claims, &more)?)
            }
            _ => Ok(claims),
        }
    }
}
