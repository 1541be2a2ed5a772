//! Plugins that report calls: logs, metrics, traces.
//!
//! **What it is not**: it opens no socket and knows no dialect; the proxy sends what these plugins make.

pub mod logger;
pub mod prometheus;
pub mod statsd;
pub mod tracing;
