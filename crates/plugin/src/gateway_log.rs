//! Lines of the gateway's own log that go to a log target: what the engine asks of instances that take them.

use crate::log::LogEntry;

/// How much a line of the gateway's own log matters. What matters more is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GatewayLogLevel {
    /// Something does not work.
    Error,
    /// Something is worth a look.
    Warn,
    /// What the gateway does.
    Info,
    /// All the rest.
    Debug,
}

/// Takes lines of the gateway's own log.
pub trait GatewayLog: Send + Sync {
    /// The level of the lines that it takes; those that matter more are taken too.
    fn level(&self) -> GatewayLogLevel;

    /// The entry for a line, which has no line feed at its end. `hostname`: the machine's name.
    fn entry(&self, line: &str, hostname: &str) -> LogEntry;
}
