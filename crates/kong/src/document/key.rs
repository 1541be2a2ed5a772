//! Keys and their sets, from which plugins take what they open and sign tokens with.

use super::common::{CREATED_AT, ID, NAME, TAGS, UPDATED_AT};
use super::secret::is_reference;
use super::{Document, Entity};
use crate::schema::{EntityCheck, Field, Fields, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;
use weir_plugins::private_key::PrivateKey;

/// The fields of a set of keys.
pub static KEY_SET: Record = Record::of(&[ID, NAME, TAGS, CREATED_AT, UPDATED_AT]);

/// The fields of a key.
pub static KEY: Record = Record {
    fields: &[
        ID,
        Field::new("set", Kind::Foreign("key_sets")),
        NAME,
        Field::new("kid", Kind::String).required(),
        Field::new("jwk", Kind::String),
        Field::new("pem", Kind::Record(&PEM)),
        TAGS,
        CREATED_AT,
        UPDATED_AT,
    ],
    checks: &[
        EntityCheck::MutuallyExclusive(&["jwk", "pem"]),
        EntityCheck::AtLeastOneOf(&["jwk", "pem"]),
        EntityCheck::Test(check_web_key),
    ],
};

static PEM: Record = Record {
    fields: &[
        Field::new("private_key", Kind::String),
        Field::new("public_key", Kind::String),
    ],
    checks: &[EntityCheck::AtLeastOneOf(&["private_key", "public_key"])],
};

/// The fields of a set of keys that the gateway has made for `jwt-signer`.
pub static SIGNER_KEYS: Record = Record {
    fields: &[
        ID,
        Field::new("name", Kind::String).required().unique(),
        Field::new("keys", WEB_KEYS).required(),
        Field::new("previous", WEB_KEYS),
        CREATED_AT,
        UPDATED_AT,
    ],
    checks: &[EntityCheck::Test(check_web_keys)],
};

const WEB_KEYS: Kind = Kind::Array(&Field::element(Kind::Any));

/// The keys are JSON Web Keys.
fn check_web_keys(entity: &Fields) -> Result<(), String> {
    let lists = ["keys", "previous"].into_iter();
    let mut keys = lists.filter_map(|name| entity.get(name)?.as_array()).flatten();
    match keys.all(|key| key["kty"].is_string()) {
        true => Ok(()),
        false => Err("keys must be JSON Web Keys".to_owned()),
    }
}

/// A JSON Web Key names itself as its entity does.
fn check_web_key(entity: &Fields) -> Result<(), String> {
    let Some(text) = entity.get("jwk").and_then(Value::as_str) else {
        return Ok(());
    };
    if is_reference(text) {
        return Ok(());
    }
    match serde_json::from_str::<Value>(text) {
        Err(_) => Err("could not json decode jwk string".to_owned()),
        Ok(key) if key.get("kid") != entity.get("kid") => {
            Err("kid in jwk.kid must be equal to keys.kid".to_owned())
        }
        Ok(_) => Ok(()),
    }
}

/// A set of keys.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct KeySet {
    pub id: Uuid,
    pub name: Option<String>,
}

/// A key. Not `Debug`: it may be a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Key {
    pub set: Option<Uuid>,
    pub kid: String,
    pub jwk: Option<String>,
    pub pem: Option<Pem>,
}

/// A set of keys that the gateway has made for `jwt-signer`. Not `Debug`: they are secrets.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct SignerKeys {
    pub id: Uuid,
    pub name: String,
    pub keys: Vec<Value>,
}

impl SignerKeys {
    /// The keys as plugins take them.
    pub fn private(&self) -> Vec<PrivateKey> {
        private_keys(&self.keys)
    }
}

/// JSON Web Keys as plugins take them.
pub fn private_keys(keys: &[Value]) -> Vec<PrivateKey> {
    let key = |key: &Value| PrivateKey {
        jwk: Some(key.to_string()),
        ..PrivateKey::default()
    };
    keys.iter().map(key).collect()
}

/// A key in PEM. Not `Debug`: it is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Pem {
    pub private_key: Option<String>,
}

impl Key {
    /// The key as plugins take it; `None`: there is nothing private in it.
    pub fn private(&self) -> Option<PrivateKey> {
        let pem = self.pem.as_ref().and_then(|pem| pem.private_key.clone());
        (self.jwk.is_some() || pem.is_some()).then(|| PrivateKey {
            id: Some(self.kid.clone()),
            jwk: self.jwk.clone(),
            pem,
        })
    }
}

/// The keys of a set, which is found by its name or its id.
pub fn find_key_set(sets: &[Entity<KeySet>], keys: &[Entity<Key>], name: &str) -> Option<Vec<PrivateKey>> {
    let id = Uuid::try_parse(name).ok();
    let is_it = |set: &KeySet| Some(set.id) == id || set.name.as_deref() == Some(name);
    let set = sets.iter().find(|it| is_it(&it.value))?.value.id;
    let members = keys.iter().filter(|it| it.value.set == Some(set));
    Some(members.filter_map(|it| it.value.private()).collect())
}

/// The keys to sign with of a name: those of a set, else those that the gateway has made.
pub fn find_signing_keys(document: &Document, name: &str) -> Option<Vec<PrivateKey>> {
    let own = find_key_set(&document.key_sets, &document.keys, name);
    own.or_else(|| {
        let mut made = document.jwt_signer_jwks.iter();
        Some(made.find(|it| it.value.name == name)?.value.private())
    })
}
