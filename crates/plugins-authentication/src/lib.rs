//! Plugins that find out who calls, and whether they may: keys, passwords, tokens, signatures, access lists.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect. Restrictions by address, path or user agent
//! are traffic plugins.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
pub mod acl;
pub mod app_login;
mod authenticated_groups;
pub mod authz_keycloak;
pub mod basic_auth;
mod body_fields;
mod browser;
pub mod cas_login;
pub mod casbin;
pub mod casdoor_login;
pub mod client_certificate_headers;
pub mod client_certificate_request;
pub mod consumer_headers;
pub mod consumer_names;
pub mod csrf;
pub mod forward_auth;
pub mod hmac_auth;
pub mod http_rules;
pub mod identity;
pub mod jose;
pub mod jwe_decrypt;
pub mod jwt;
pub mod jwt_signer;
pub mod key_auth;
mod key_locations;
pub mod ldap_auth;
mod login_cookie;
pub mod mtls_auth;
pub mod multi_auth;
pub mod oauth2_server;
pub mod opa;
pub mod openid_connect;
mod pending_login;
pub mod private_key;
mod query;
pub mod saml;
pub mod session;
pub mod session_cookie;
mod shared_fetch;
mod shared_revocations;
pub mod upstream_oauth;
mod user_headers;
pub mod vault_auth;
pub mod webhook_signature;
pub mod wolf_rbac;
// End of the modules.
