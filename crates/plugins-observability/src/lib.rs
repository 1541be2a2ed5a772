//! Plugins that report calls: logs, metrics, traces.
//!
//! **What it is not**: it opens no socket and knows no dialect; the proxy sends what these plugins make.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
pub mod batch_requests;
pub mod data_mask;
pub mod gateway_log;
pub mod logger;
pub mod prometheus;
pub mod skywalking;
pub mod statsd;
pub mod tracing;
// End of the modules.
