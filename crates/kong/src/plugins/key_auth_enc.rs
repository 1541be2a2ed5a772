//! `key-auth-enc`: `key-auth` with keys that are sealed in the store, as all credentials are here.

use super::{Definition, key_auth};

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "key-auth-enc",
    ..key_auth::DEFINITION
};
