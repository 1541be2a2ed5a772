//! Counters and histograms, one set per worker, summed at each scrape.
//!
//! [`Registry`] is the shared, off-path side: it hands every worker its [`WorkerMetrics`], allocates a
//! [`SeriesId`] to every (service, route) pair of a configuration, and renders the Prometheus text format.
//! The request path only ever calls [`WorkerMetrics`].

mod counter;
mod exposition;
mod histogram;
pub mod names;
mod registry;
mod render;
mod series;
mod series_slots;
mod streams;
mod targets;
mod worker;

pub use counter::{Counter, Gauge};
pub use names::{ProtocolError, Refusal, StreamKind, StreamResult};
pub use registry::{DEFAULT_SERIES_LIMIT, Registry, RegistryOptions};
pub use series::{Observation, SeriesId};
pub use streams::{KindCounters, KindTotals, StreamCounters, StreamTotals};
pub use targets::{TargetSample, TargetSource};
pub use worker::{Totals, WorkerMetrics};
