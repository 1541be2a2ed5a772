//! Lines of the gateway's own log on their way to log targets: what takes them stands in the snapshot that is served, and
//! they wait with all other entries. What the sending itself has to say is never sent, so no line begets another.

use super::gateway_log_levels::GatewayLogLevels;
use super::thread::NAME;
use crate::shared::Shared;
use std::sync::{Arc, Weak};
use weir_plugin::GatewayLogLevel;

/// The part of the gateway whose own lines are not sent.
const SENDING: &str = "weir_proxy::log_sinks";

/// Receives lines of the gateway's own log.
#[derive(Clone)]
pub struct GatewayLogLines {
    shared: Weak<Shared>,
    levels: Arc<GatewayLogLevels>,
}

impl GatewayLogLines {
    /// For the configuration that this gateway serves.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            levels: Arc::clone(&shared.gateway_log_levels),
        }
    }

    /// Whether a line is about sending entries, or caused by it: the part of the gateway that writes it says so, or the
    /// thread that does.
    pub fn is_about_sending(part: &str) -> bool {
        is_of_sending(part, std::thread::current().name())
    }

    /// Whether anything takes lines of this level.
    pub fn are_taken(&self, level: GatewayLogLevel) -> bool {
        self.levels.are_taken(level)
    }

    /// Hands a line over to all sinks of this level that have room; the others count it as dropped. Never
    /// waits.
    pub fn offer(&self, level: GatewayLogLevel, line: &str) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let published = shared.published.load();
        let taking = published.snapshot.gateway_logs.iter();
        for takes in taking.filter(|takes| level <= takes.level()) {
            shared
                .log_sinks
                .offer(takes.entry(line, shared.log_sinks.hostname()));
        }
    }
}

/// Whether sending entries is what the line is about, or what has caused it.
fn is_of_sending(part: &str, thread: Option<&str>) -> bool {
    part.starts_with(SENDING) || thread == Some(NAME)
}

#[cfg(test)]
mod tests {
    use super::is_of_sending;

    #[test]
    fn lines_about_sending_are_not_sent() {
        for (part, thread, expected) in [
            ("weir_proxy::log_sinks::queue", None, true),
            ("hickory_resolver", Some("weir-log-out"), true),
            ("weir_proxy::health", Some("weir-health"), false),
        ] {
            assert_eq!(is_of_sending(part, thread), expected, "{part} {thread:?}");
        }
        // The module name that distinguishes this one from all others.
        assert!(is_of_sending(module_path!(), None));
    }
}
