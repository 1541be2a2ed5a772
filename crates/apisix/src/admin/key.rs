//! The keys that let calls in to the Admin API, and what their holders may do. Users of Weir's own are not among them.

use std::fmt;
pub use weir_dialect::KeyRole as Role;

/// The keys that APISIX's documentation has. Everybody knows them, so they protect nothing.
pub const STOCK_KEYS: [(&str, Role); 2] = [
    ("edd1c9f034335f136f87ad84b625c8f1", Role::Admin),
    ("4054f7cf07e344346cd3f287985e76a2", Role::Viewer),
];

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The key that callers show as `X-API-KEY`.
    pub key: String,
    /// Their role.
    pub role: Role,
}

/// Keys are secrets.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Key")
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Key {
    /// [`STOCK_KEYS`].
    pub fn stock() -> Vec<Self> {
        STOCK_KEYS
            .map(|(key, role)| Self {
                key: key.to_owned(),
                role,
            })
            .into()
    }
}
