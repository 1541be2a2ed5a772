//! Weir's analytics: who called what, how fast, and why calls were refused.
//!
//! Calls become rows of [`cube`]s ([`aggregate`]), rows travel in [`batch`]es, and an [`AnalyticsStore`] keeps them,
//! each batch exactly once ([`sqlite`]). One [`query`] object serves boards, alerts, reports and export. [`calls`] is
//! the request log: single calls, sampled, each with its weight. [`alerts`] decides when rules fire.
//!
//! **What it is not**: it reads no clock (time is an argument), knows no HTTP and no configuration. Only [`sqlite`] and
//! [`calls::files`] touch files; [`clickhouse`] speaks to a server through what it is given.

pub mod aggregate;
pub mod alerts;
pub mod batch;
pub mod boards;
pub mod calls;
pub mod cell;
pub mod clickhouse;
pub mod clients;
pub mod csv;
pub mod cube;
pub mod definition;
pub mod heavy_hitters;
mod mail_address;
pub mod privacy;
pub mod query;
pub mod reports;
pub mod retention;
pub mod sketch;
pub mod sqlite;
pub mod store;
pub mod times;
pub mod uniques;
pub mod varint;

pub use store::{AnalyticsStore, Gap, IngestResult, Renames, RetentionStats, StoreError};
