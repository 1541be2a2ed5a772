//! Declarative documents (kong.yml): what they may hold, and their entities with all defaults, references
//! resolved.
//!
//! Reading has three steps: every entity is read by the description of its entity type, at every level of nesting
//! ([`read`]); references are resolved and doubles found ([`link`]); and the entity types that something is made of
//! become typed values ([`Document`]).

pub(crate) mod common;
mod consumer;
pub(crate) mod entity_store;
pub(crate) mod entity_type;
mod graphql;
pub(crate) mod id;
mod key;
mod link;
mod plugin;
mod read;
mod route;
mod route_expression;
pub(crate) mod secret;
mod service;
mod session;
mod upstream;
mod vault;
pub(crate) mod workspace;

pub use consumer::{
    BasicauthCredential, Consumer, HmacauthCredential, JwtSecret, KeyauthCredential, Membership,
    OAuth2Credential, OAuth2Token,
};
pub use graphql::{DegraphqlRoute, GraphqlCost};
pub use key::{Key, KeySet, SignerKeys, find_key_set, find_signing_keys, private_keys};
pub use plugin::Plugin;
pub use route::{Address, Route};
pub use secret::{CaCertificate, ServerCertificate, Sni};
pub use service::Service;
pub use upstream::{Target, Upstream};
pub use vault::{VaultAuthVault, find_vault};

pub(crate) use plugin::read_config as read_plugin_config;
pub(crate) use read::adapt;

use crate::schema::{Fields, ItemLocation, Problems};
use crate::secrets::is_used_in_files;
use entity_type::{DEGRAPHQL_ROUTES, GRAPHQL_COSTS, SIGNER_KEYS};
use read::RawEntity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use weir_model::{Diagnostic, Severity};

/// An entity and its place in the document.
#[derive(Clone)]
pub struct Entity<T> {
    /// Its place in the document.
    pub place: ItemLocation,
    /// The entity with its defaults.
    pub value: T,
}

/// The entities of a document that something is made of, in the document's order.
#[derive(Clone, Default)]
pub struct Document {
    /// Services, disabled ones included.
    pub services: Vec<Entity<Service>>,
    /// Routes.
    pub routes: Vec<Entity<Route>>,
    /// Consumers.
    pub consumers: Vec<Entity<Consumer>>,
    /// Plugin instances, disabled ones included.
    pub plugins: Vec<Entity<Plugin>>,
    /// Upstreams.
    pub upstreams: Vec<Entity<Upstream>>,
    /// Targets.
    pub targets: Vec<Entity<Target>>,
    /// API keys.
    pub keyauth_credentials: Vec<Entity<KeyauthCredential>>,
    /// API keys of `key-auth-enc`, which are good for `key-auth` too.
    pub keyauth_enc_credentials: Vec<Entity<KeyauthCredential>>,
    /// JWT secrets.
    pub jwt_secrets: Vec<Entity<JwtSecret>>,
    /// Memberships of groups.
    pub acls: Vec<Entity<Membership>>,
    /// User names and passwords.
    pub basicauth_credentials: Vec<Entity<BasicauthCredential>>,
    /// User names and secrets for signatures.
    pub hmacauth_credentials: Vec<Entity<HmacauthCredential>>,
    /// Clients of OAuth 2.0.
    pub oauth2_credentials: Vec<Entity<OAuth2Credential>>,
    /// Their tokens that an administrator has written.
    pub oauth2_tokens: Vec<Entity<OAuth2Token>>,
    /// The costs of GraphQL queries.
    pub graphql_costs: Vec<Entity<GraphqlCost>>,
    /// Calls that are GraphQL queries.
    pub degraphql_routes: Vec<Entity<DegraphqlRoute>>,
    /// Certificates with their keys.
    pub certificates: Vec<Entity<ServerCertificate>>,
    /// The server names that lead to them.
    pub snis: Vec<Entity<Sni>>,
    /// Certificate authorities.
    pub ca_certificates: Vec<Entity<CaCertificate>>,
    /// Sets of keys.
    pub key_sets: Vec<Entity<KeySet>>,
    /// Keys.
    pub keys: Vec<Entity<Key>>,
    /// Sets of keys that the gateway has made for `jwt-signer`.
    pub jwt_signer_jwks: Vec<Entity<SignerKeys>>,
    /// Connections to vaults, for `vault-auth`.
    pub vault_auth_vaults: Vec<Entity<VaultAuthVault>>,
    /// Whether passwords are written as their hashes.
    pub hashed_passwords: bool,
}

impl Document {
    /// Reads a whole document.
    ///
    /// # Errors
    /// All that is wrong with it, with the places.
    pub fn read(document: &Value) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let mut problems = Problems::default();
        let mut entities = read::document(document, &mut problems);
        link::find_doubles(&entities, &mut problems);
        link::resolve(&mut entities, &mut problems);
        let hashed_passwords = document.get("_transform") == Some(&Value::Bool(false));
        let document = Self {
            hashed_passwords,
            ..Self::typed(entities, &mut problems)
        };
        if problems.0.iter().any(|found| found.severity == Severity::Error) {
            return Err(problems.0);
        }
        Ok((document, problems.0))
    }

    fn typed(entities: Vec<RawEntity>, problems: &mut Problems) -> Self {
        let mut entity_types: std::collections::HashMap<&str, Vec<RawEntity>> =
            std::collections::HashMap::new();
        for entity in entities {
            entity_types
                .entry(entity.entity_type.name)
                .or_default()
                .push(entity);
        }
        for (name, members) in &entity_types {
            let is_vault = |it: &RawEntity| it.entity_type.is("vaults");
            let kind = |it: &RawEntity| {
                it.fields
                    .get("name")
                    .and_then(Value::as_str)
                    .map(is_used_in_files)
            };
            let is_used = |it: &RawEntity| it.entity_type.is_served || is_vault(it) && kind(it) == Some(true);
            if let Some(first) = members.iter().find(|it| !is_used(it)) {
                let message = match is_vault(first) {
                    true => {
                        "vaults of a file are checked, but only those of the kind 'env' are used".to_owned()
                    }
                    false => format!("{name} are checked, but not used by this version of Weir"),
                };
                problems.warning(first.place.to_path(), message);
            }
        }
        let mut take = |entity_type: &str| entity_types.remove(entity_type).unwrap_or_default();
        Self {
            services: typed(take("services"), Fields::typed, problems),
            routes: typed(take("routes"), Fields::typed, problems),
            consumers: typed(take("consumers"), Fields::typed, problems),
            plugins: typed(take("plugins"), Plugin::of, problems),
            upstreams: typed(take("upstreams"), Fields::typed, problems),
            targets: typed(take("targets"), Fields::typed, problems),
            keyauth_credentials: typed(take("keyauth_credentials"), Fields::typed, problems),
            keyauth_enc_credentials: typed(take("keyauth_enc_credentials"), Fields::typed, problems),
            jwt_secrets: typed(take("jwt_secrets"), Fields::typed, problems),
            acls: typed(take("acls"), Fields::typed, problems),
            basicauth_credentials: typed(take("basicauth_credentials"), Fields::typed, problems),
            hmacauth_credentials: typed(take("hmacauth_credentials"), Fields::typed, problems),
            oauth2_credentials: typed(take("oauth2_credentials"), Fields::typed, problems),
            oauth2_tokens: typed(take("oauth2_tokens"), Fields::typed, problems),
            graphql_costs: typed(take(GRAPHQL_COSTS), Fields::typed, problems),
            degraphql_routes: typed(take(DEGRAPHQL_ROUTES), Fields::typed, problems),
            certificates: typed(take("certificates"), Fields::typed, problems),
            snis: typed(take("snis"), Fields::typed, problems),
            ca_certificates: typed(take("ca_certificates"), Fields::typed, problems),
            key_sets: typed(take("key_sets"), Fields::typed, problems),
            keys: typed(take("keys"), Fields::typed, problems),
            jwt_signer_jwks: typed(take(SIGNER_KEYS), Fields::typed, problems),
            vault_auth_vaults: typed(take("vault_auth_vaults"), Fields::typed, problems),
            hashed_passwords: false,
        }
    }
}

/// The entities of a document with all their fields, references resolved.
///
/// # Errors
/// All that is wrong with it, with the places.
pub(crate) fn raw_entities(document: &Value) -> Result<(Vec<RawEntity>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let mut entities = read::document(document, &mut problems);
    link::find_doubles(&entities, &mut problems);
    link::resolve(&mut entities, &mut problems);
    if problems.0.iter().any(|found| found.severity == Severity::Error) {
        return Err(problems.0);
    }
    Ok((entities, problems.0))
}

/// The entities of a document as they stand in it, whatever is wrong with them.
pub(crate) fn entities_as_written(document: &Value) -> Vec<RawEntity> {
    read::document(document, &mut Problems::default())
}

fn typed<T>(
    entities: Vec<RawEntity>,
    make: fn(Fields) -> Result<T, serde_json::Error>,
    problems: &mut Problems,
) -> Vec<Entity<T>> {
    let mut list = Vec::with_capacity(entities.len());
    for entity in entities {
        if entity.is_broken {
            continue;
        }
        match make(entity.fields) {
            Ok(value) => list.push(Entity {
                place: entity.place,
                value,
            }),
            Err(error) => problems.0.push(Diagnostic::error(
                entity.place.to_path(),
                format!("out of range: {error}"),
            )),
        }
    }
    list
}

/// `null` is the empty value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + std::default::Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
