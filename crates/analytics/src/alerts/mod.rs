//! Alert rules: a metric over a period, compared with a threshold, for each group.
//!
//! [`rule`] is what people write; [`state`] decides what has changed, and gets the time and the values; [`messages`] tells
//! people.

pub mod messages;
pub mod rule;
pub mod state;

pub use rule::{Channel, NoData, Operator, Rule, Severity, Values};
pub use state::{Alert, AlertState, Event, EventKind, States};
