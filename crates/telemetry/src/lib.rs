//! Weir's telemetry: metrics that cost a worker a few nanoseconds a request, and an access log that never
//! makes it wait.
//!
//! Both follow one pattern. A worker writes into memory of its own, without a lock and without a read-modify-write;
//! readers (a scrape, the log's writer thread) look from another thread. [`metrics`] holds names, counters and the
//! Prometheus exposition, [`access_log`] the JSON lines, [`calls`] carries finished calls to analytics, [`log_sinks`]
//! counts what plugins log elsewhere, [`redis`] counts requests to servers that hold shared counts. [`json`] writes a
//! log's JSON and [`civil_date`] its dates, also for plugins that log.
//!
//! This crate knows no HTTP engine, no snapshot and no plugin: it is given numbers and names, and reads no clock. It
//! sits beside the data plane and depends on no other crate of the workspace.

pub mod access_log;
pub mod calls;
pub mod civil_date;
pub mod json;
pub mod log_sinks;
pub mod metrics;
pub mod ocsp;
pub mod redis;
