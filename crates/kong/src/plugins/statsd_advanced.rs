//! `statsd-advanced`: `statsd` under the name that it has in the paid edition.

use super::Definition;

/// The definition of `statsd-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "statsd-advanced",
    ..super::statsd::DEFINITION
};
