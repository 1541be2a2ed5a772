//! Weir's management: users and their rights, the audit log, following a store, secrets that are kept elsewhere,
//! certificates on demand, developers of portals, the native API; and for all Admin APIs the listener that bounds its clients.
//!
//! **What it is not**: it is never on the request path.

pub mod access;
pub mod acme;
pub mod analytics;
pub mod api;
pub mod attempt_counter;
pub mod catalogue;
mod commit;
pub mod developers;
pub mod drain_state;
pub mod environment_routes;
pub(crate) mod events;
pub mod explain;
pub mod follow;
pub mod http;
pub mod identity_sources;
pub mod last_use;
pub mod lease;
pub mod limit_counts;
pub mod listen;
pub mod operational;
pub mod outbox;
mod process_usage;
pub mod quotas;
pub mod report;
mod run_blocking;
pub mod secrets;
pub mod shared_limits;
pub mod shared_records;
pub mod staples;
pub mod try_it;
mod webhook_addresses;

#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;

pub use commit::compact_periodically;
