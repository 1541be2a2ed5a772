//! Seeded simulations of the flow algorithms, each with a picture in `docs/images`. Nothing waits: time is a number.
//!
//! A picture that a test draws must be the one in the repository; `UPDATE_GOLDEN=1` writes it.
#![allow(clippy::unwrap_used, reason = "a simulation that cannot go on fails")]

mod adaptive_concurrency;
mod chart;
mod hedging;
mod limits;
mod queue;
mod random;
mod slow_start;
mod zones;
