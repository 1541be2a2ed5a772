//! `key-auth-enc`: `key-auth` under another name. What the store holds, keys among it, is encrypted with
//! `--store-key` only.

use super::{Definition, key_auth};

/// The definition of `key-auth-enc`.
pub const DEFINITION: Definition = Definition {
    name: "key-auth-enc",
    ..key_auth::DEFINITION
};
