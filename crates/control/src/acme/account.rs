//! Accounts with authorities: made once, kept in the store, and shared by all entries that say the same of them.

use super::AcmeError;
use super::documents::account_key;
use super::http::Client;
use super::lease::Lease;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use weir_model::Acme;
use weir_store::{Change, Store};

/// The error of authorities that do not know the account (any more).
const UNKNOWN: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// The entry's account.
///
/// # Errors
/// The authority makes none, or the store does not do its part.
pub async fn of(entry: &Acme, store: &dyn Store, lease: &Lease<'_>) -> Result<Account, AcmeError> {
    let client = Client::new(entry.authorities.as_deref()).map_err(AcmeError::Unusable)?;
    let builder = Account::builder_with_http(Box::new(client));
    let key = account_key(entry).map_err(|error| AcmeError::Store(error.to_string()))?;
    let (documents, _) = store.read(key.as_str()).await?;
    let known = documents.iter().find(|document| document.key == key);
    // One that cannot be read is as good as none.
    if let Some(credentials) =
        known.and_then(|known| serde_json::from_slice::<AccountCredentials>(&known.value).ok())
    {
        return Ok(builder.from_credentials(credentials).await?);
    }
    let contact: Vec<&str> = entry.contact.iter().map(String::as_str).collect();
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: entry.terms_accepted,
        only_return_existing: false,
    };
    let external = external(entry)?;
    let made = builder
        .create(&wanted, entry.directory.clone(), external.as_ref())
        .await?;
    let (account, credentials) = made;
    let value = serde_json::to_vec(&credentials).map_err(|error| AcmeError::Store(error.to_string()))?;
    lease.commit("account", &[Change::put(key, value)]).await?;
    Ok(account)
}

/// Forgets an account that its authority does not know, so that the next attempt makes another.
pub async fn forget_unknown(entry: &Acme, error: &AcmeError, lease: &Lease<'_>) {
    let AcmeError::Authority(instant_acme::Error::Api(problem)) = error else {
        return;
    };
    if problem.r#type.as_deref() == Some(UNKNOWN)
        && let Ok(key) = account_key(entry)
        && let Err(error) = lease.commit("account", &[Change::Delete { key }]).await
    {
        tracing::debug!(%error, "an account that is unknown to its certificate authority cannot be removed");
    }
}

fn external(entry: &Acme) -> Result<Option<ExternalAccountKey>, AcmeError> {
    let Some(account) = &entry.external_account else {
        return Ok(None);
    };
    let text = account.key.trim();
    let key = URL_SAFE_NO_PAD
        .decode(text)
        .or_else(|_| URL_SAFE.decode(text))
        .or_else(|_| STANDARD.decode(text));
    // What the error says may quote the key.
    let key = key.map_err(|_| {
        AcmeError::Unusable("expected the external account's key in URL-safe base64".to_owned())
    })?;
    Ok(Some(ExternalAccountKey::new(account.id.clone(), &key)))
}
