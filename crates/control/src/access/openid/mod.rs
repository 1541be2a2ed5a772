//! Logging in through an identity provider with OpenID Connect: authorization code flow with PKCE, `state` and `nonce`.
//!
//! ```text
//!  login ──► authorization request, and a cookie with state, nonce and code verifier
//!            provider ──► callback with a code
//!  engine ──► token request ──► ID token, its signature and claims checked ──► name and groups ──► rights
//! ```
//!
//! Decisions are in [`engine`] and [`jose`], without I/O and clock. [`client`] fetches. Verification rests on
//! `aws-lc-rs`, which is here anyway: the crates for this bring a second set of cryptography with them.

pub mod client;
pub mod engine;
pub mod jose;
pub mod provider;

pub use provider::{Provider, Providers};
