//! Signed tokens (RFC 7515) of other servers: their key sets (RFC 7517), checking what they have signed, and signing what
//! they are sent; and encrypted ones (RFC 7516). The caller decides which claims are valid.
//!
//! Security: the key decides which algorithms are good, so that a public key is never taken for a secret. There is no
//! `none`, and tokens with critical extensions are refused.

mod generate;
mod jwe;
mod jwk;
mod key_kind;
mod keys;
mod sign;
mod token;

pub use generate::generate;
pub(crate) use jwe::{DecryptionKey, Jwe};
pub use key_kind::private_key_kind;
pub use keys::KeySet;
pub(crate) use sign::SigningKey;
pub use token::{Jws, JwsError};
