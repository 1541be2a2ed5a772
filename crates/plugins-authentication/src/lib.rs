//! Plugins that find out who calls, and whether they may: keys, passwords, tokens, signatures, access lists.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect. Restrictions by address, path or user agent
//! are traffic plugins.

pub mod acl;
pub mod basic_auth;
pub mod consumer_headers;
pub mod csrf;
pub mod forward_auth;
pub mod hmac_auth;
pub mod identity;
pub mod jwe_decrypt;
pub mod jwt;
pub mod key_auth;
pub mod multi_auth;
pub mod webhook_signature;

mod body_fields;
mod consumer_labels;
mod query;
