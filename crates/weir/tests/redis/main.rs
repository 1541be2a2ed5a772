//! Limits that several gateways share: real gateways and real Redis servers, alone, in a cluster, looked after by
//! sentinels; and what happens when they go away.

mod apisix;
mod away;
mod caches;
mod dialects;
mod places;
#[path = "../support/ports.rs"]
mod ports;
mod settled;
mod support;
#[path = "../support/tools.rs"]
mod tools;
mod topologies;
#[path = "../support/weir.rs"]
mod weir;
mod windows;
