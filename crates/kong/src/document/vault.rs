//! Connections to vaults for `vault-auth` of the paid edition. They are other entities than the vaults that references to secrets
//! lead into.

use super::Entity;
use super::common::{CREATED_AT, ID, PORT, UPDATED_AT};
use crate::schema::{Check, Default, Field, Kind, Record, text};
use serde::Deserialize;
use uuid::Uuid;
use weir_plugins::vault_auth::{EngineVersion, VaultServer};

/// The fields of a connection.
pub static VAULT_AUTH_VAULT: Record = Record::of(&[
    ID,
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::Text(text::name)])
        .unique(),
    Field::new("protocol", Kind::String)
        .required()
        .or(Default::Text("http"))
        .check(&[Check::OneOf(&["http", "https"])]),
    Field::new("host", Kind::String)
        .required()
        .check(&[Check::Text(text::host)]),
    Field::new("port", Kind::Integer)
        .required()
        .or(Default::Integer(8_200))
        .check(PORT),
    Field::new("mount", Kind::String).required(),
    Field::new("vault_token", Kind::String).required(),
    Field::new("kv", Kind::String)
        .or(Default::Text("v1"))
        .check(&[Check::OneOf(&["v1", "v2"])]),
    CREATED_AT,
    UPDATED_AT,
]);

/// A connection. Not `Debug`: it holds a token.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct VaultAuthVault {
    pub id: Uuid,
    pub name: String,
    pub protocol: String,
    pub host: String,
    pub port: u16,
    pub mount: String,
    pub vault_token: String,
    pub kv: Option<String>,
}

impl VaultAuthVault {
    /// The vault as the plugin takes it.
    pub fn server(&self) -> VaultServer {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host.trim_matches(['[', ']'])),
            false => self.host.clone(),
        };
        VaultServer {
            address: format!("{}://{host}:{}", self.protocol, self.port),
            mount: self.mount.clone(),
            version: match self.kv.as_deref() {
                Some("v2") => EngineVersion::V2,
                _ => EngineVersion::V1,
            },
            token: self.vault_token.clone(),
        }
    }
}

/// A connection by its name or its id.
pub fn find_vault(vaults: &[Entity<VaultAuthVault>], name: &str) -> Option<VaultServer> {
    let id = Uuid::try_parse(name).ok();
    let is_it = |vault: &VaultAuthVault| Some(vault.id) == id || vault.name == name;
    let found = vaults.iter().find(|it| is_it(&it.value))?;
    Some(found.value.server())
}
