//! `statsd-advanced`: `statsd` under the name that it has in the paid edition.

use super::Definition;

/// The plugin.
pub const DEFINITION: Definition = Definition {
    name: "statsd-advanced",
    ..super::statsd::DEFINITION
};
