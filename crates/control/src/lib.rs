//! Weir's management: users and their rights, the audit log, following a store, the native API.
//!
//! **What it is not**: it is never on the request path.

pub mod access;
pub mod acme;
pub mod api;
mod commit;
pub mod follow;
pub mod http;
pub mod listen;
pub mod report;
pub mod secrets;

pub use commit::forget;
