//! Weir with a store: Admin APIs, gateways that follow, users, roll back; with real processes.

mod access;
mod acme;
mod caches;
mod certificates;
mod client_certificates;
mod cluster;
mod console;
mod crashes;
mod dialects;
mod drained;
mod files;
mod limits;
mod log_files;
mod native;
mod partition;
#[path = "../support/ports.rs"]
mod ports;
mod readiness;
mod rights;
mod roles;
mod secrets;
mod signer_keys;
mod sizes;
mod support;
mod tokens;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;
mod workspaces;
