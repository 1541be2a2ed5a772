//! The clients of the configuration, with the tokens that an administrator has given them.

use super::records::{GrantedAccess, Hash, Record, RecordOwner, Token};
use super::secret_checks::{SecretAttempt, SecretCheck, SecretChecks, SlowHash};
use super::{Credential, StoredToken};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize as _;
use std::any::Any;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use weir_plugin::{BuildContext, CredentialSource, Identity};

/// Base64 with and without padding, as hashes of secrets have it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// More rounds would keep a worker busy for too long.
const MAX_ROUNDS: u32 = 100_000;

/// A client, made ready.
pub(super) struct Client {
    pub(super) owner: RecordOwner,
    pub(super) identity: Identity,
    pub(super) is_public: bool,
    /// When it ends, in seconds since 1970.
    expires: Option<u64>,
    /// `None`: it has none, and can use only the grant for itself.
    pub(super) redirect_uris: Option<Vec<String>>,
    secret: Option<Secret>,
}

enum Secret {
    Plain(Vec<u8>),
    Hashed(SlowHash),
}

impl Client {
    fn is_good(&self, now_ms: u64) -> bool {
        self.expires.is_none_or(|end| now_ms / 1_000 < end)
    }

    /// Whether this is the client's secret. A client without one has none that is right.
    pub(super) fn check_secret(&self, attempt: SecretAttempt<'_>, checks: &SecretChecks) -> SecretCheck {
        match &self.secret {
            None => SecretCheck::Wrong,
            Some(Secret::Plain(secret)) => {
                match verify_slices_are_equal(secret, attempt.secret.as_bytes()).is_ok() {
                    true => SecretCheck::Right,
                    false => SecretCheck::Wrong,
                }
            }
            Some(Secret::Hashed(known)) => checks.check(known, attempt),
        }
    }
}

impl Secret {
    fn of(credential: &Credential) -> Option<Self> {
        match (&credential.client_secret, &credential.client_secret_pbkdf2) {
            (Some(secret), None) => Some(Self::Plain(secret.clone().into_bytes())),
            (None, Some(text)) => Self::hashed(text),
            _ => None,
        }
    }

    /// Reads `$pbkdf2-sha512$i=ROUNDS,l=LENGTH$SALT$HASH`.
    fn hashed(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("$pbkdf2-sha512$")?.split('$');
        let (settings, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let rounds = settings.split(',').find_map(|it| it.strip_prefix("i="))?;
        let rounds = rounds.parse().ok().filter(|rounds| *rounds <= MAX_ROUNDS)?;
        let (salt, hash) = (BASE64.decode(salt).ok()?, BASE64.decode(hash).ok()?);
        let known = SlowHash {
            rounds: NonZeroU32::new(rounds)?,
            salt,
            hash,
        };
        (parts.next().is_none() && (16..=128).contains(&known.hash.len())).then_some(Self::Hashed(known))
    }
}

/// Whether a text is the hash of a secret.
pub(super) fn is_hashed_secret(text: &str) -> bool {
    Secret::hashed(text).is_some()
}

/// The SHA-256 that is written with 64 digits.
pub(super) fn read_hash(text: &str) -> Option<Hash> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// The clients of a dialect and workspace.
#[derive(Default)]
pub(super) struct Clients {
    by_name: HashMap<String, Arc<Client>>,
    by_id: HashMap<Arc<str>, Arc<Client>>,
    /// Tokens of the configuration.
    tokens: HashMap<Hash, Arc<Record>>,
    refresh: HashMap<Hash, Hash>,
}

impl Clients {
    /// Those that instances of this context know. Read once for a snapshot, however many instances ask.
    pub(super) fn of(plugin: &str, context: &BuildContext<'_>) -> Arc<Self> {
        let workspace = context.workspace.cloned();
        let slot = (plugin.to_owned(), "clients", context.dialect, workspace);
        if let Some(known) = context.indexes.borrow().get(&slot)
            && let Ok(known) = Arc::clone(known).downcast::<Self>()
        {
            return known;
        }
        let area = RecordOwner::area(context.dialect, context.workspace.map(|workspace| &**workspace));
        let mut clients = Self::default();
        for source in context.credentials.get(plugin).into_iter().flatten() {
            if source.dialect == context.dialect
                && source.workspace == context.workspace
                && let Ok(credential) = Credential::deserialize(source.config)
            {
                clients.add(&area, credential, source);
            }
        }
        let clients = Arc::new(clients);
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(&clients) as _;
        context.indexes.borrow_mut().insert(slot, any);
        clients
    }

    fn add(&mut self, area: &Arc<str>, credential: Credential, source: &CredentialSource<'_>) {
        let id: Arc<str> = credential.id.as_deref().unwrap_or(&credential.client_id).into();
        let owner = RecordOwner {
            area: Arc::clone(area),
            client: Arc::clone(&id),
        };
        for token in &credential.tokens {
            self.add_token(&owner, token);
        }
        let client = Arc::new(Client {
            owner,
            identity: source.identity.clone(),
            expires: source.expires,
            is_public: credential.public,
            secret: Secret::of(&credential),
            redirect_uris: credential.redirect_uris,
        });
        self.by_id.insert(id, Arc::clone(&client));
        self.by_name.insert(credential.client_id, client);
    }

    fn add_token(&mut self, owner: &RecordOwner, token: &StoredToken) {
        let Some(hash) = read_hash(&token.access_token_sha256) else {
            return;
        };
        let refresh = token.refresh_token_sha256.as_deref().and_then(read_hash);
        if let Some(refresh) = refresh {
            self.refresh.insert(refresh, hash);
        }
        let record = Record::Token(Token {
            owner: owner.clone(),
            grant: GrantedAccess {
                service: token.service.as_deref().map(Arc::from),
                scope: token.scope.as_deref().map(Arc::from),
                user: token.authenticated_user.as_deref().map(Arc::from),
            },
            refresh,
            code: None,
            created_ms: token.created_at.saturating_mul(1_000),
            expires_seconds: token.expires_seconds,
        });
        self.tokens.insert(hash, Arc::new(record));
    }

    /// The client of this name, unless it has ended.
    pub(super) fn named(&self, client_id: &str, now_ms: u64) -> Option<&Arc<Client>> {
        self.by_name.get(client_id).filter(|it| it.is_good(now_ms))
    }

    /// The client that a record belongs to, if it is still there and has not ended.
    pub(super) fn of_record(&self, owner: &RecordOwner, now_ms: u64) -> Option<&Arc<Client>> {
        let client = self.by_id.get(&owner.client)?;
        (client.owner == *owner && client.is_good(now_ms)).then_some(client)
    }

    /// The token of the configuration with this hash.
    pub(super) fn token(&self, hash: &Hash) -> Option<&Arc<Record>> {
        self.tokens.get(hash)
    }

    /// The token of the configuration with this refresh token.
    pub(super) fn refreshed_by(&self, refresh: &Hash) -> Option<(Hash, &Arc<Record>)> {
        let hash = *self.refresh.get(refresh)?;
        Some((hash, self.tokens.get(&hash)?))
    }
}
