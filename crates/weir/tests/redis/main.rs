//! Limits that several gateways share: real gateways and real Redis servers, alone, in a cluster, looked after by
//! sentinels; and what happens when they go away.

mod apisix;
mod away;
mod caches;
mod callouts;
mod concurrency;
mod dialects;
#[path = "../support/ports.rs"]
mod ports;
mod support;
mod synced_counts;
#[path = "../support/tools.rs"]
mod tools;
mod topologies;
mod values;
#[path = "../support/weir.rs"]
mod weir;
mod windows;
