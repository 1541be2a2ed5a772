//! Weir's flow algorithms: which target gets a request, and whether a caller may still send one.
//!
//! Everything here is sans-IO. Nothing opens a socket, waits, spawns or reads a clock: the time and the seeds are
//! arguments, so every decision can be replayed in a test. What a target's health is, how a latency was measured and
//! what a refusal looks like on the wire is the business of the callers.
//!
//! It sits below the whole gateway and knows none of it: `weir-snapshot` builds a [`balancer::Balancer`] for each
//! upstream, `weir-proxy` asks it on every request with its worker's own [`balancer::BalancerState`], and the rate
//! limiting plugins of `weir-plugins` share one [`rate_limit::Limiter`] between all workers.

pub mod balancer;
pub mod breaker;
pub mod expiring;
pub mod health;
pub mod hedge;
pub mod leaky_bucket;
pub mod overload;
pub mod rate_limit;
pub mod retry_budget;
pub mod slow_start;

mod bounded_map;
mod hash;
mod partition;

pub use hash::{hash_bytes, hash_key};
pub use partition::LEAST_SHARE;
