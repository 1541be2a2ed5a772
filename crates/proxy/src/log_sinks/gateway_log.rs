//! Lines of the gateway's own log on their way to log targets: what takes them stands in the snapshot that is served, and
//! they wait with all other entries. What the sending itself has to say is never sent, so no line begets another.

use super::thread::NAME;
use crate::shared::Shared;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use weir_plugin::{GatewayLog, GatewayLogLevel};

/// The part of the gateway whose own lines are not sent.
const SENDING: &str = "weir_proxy::log_sinks";

/// Where lines of the gateway's own log are handed over.
#[derive(Clone)]
pub struct GatewayLogLines {
    shared: Weak<Shared>,
    wanted: Arc<WantedLines>,
}

/// The most verbose level that is taken, for a look that costs next to nothing at each line.
#[derive(Debug, Default)]
pub struct WantedLines(AtomicU8);

impl WantedLines {
    /// That nothing takes any line.
    const NONE: u8 = 0;

    /// From now on, these take lines.
    pub fn note_taking(&self, taking: &[Arc<dyn GatewayLog>]) {
        let most = taking.iter().map(|takes| place(takes.level())).max();
        self.0.store(most.unwrap_or(Self::NONE), Relaxed);
    }

    fn wants(&self, level: GatewayLogLevel) -> bool {
        place(level) <= self.0.load(Relaxed)
    }
}

/// What is more verbose has a higher one.
fn place(level: GatewayLogLevel) -> u8 {
    match level {
        GatewayLogLevel::Error => 1,
        GatewayLogLevel::Warn => 2,
        GatewayLogLevel::Info => 3,
        GatewayLogLevel::Debug => 4,
    }
}

impl GatewayLogLines {
    /// For the configuration that this gateway serves.
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            wanted: Arc::clone(&shared.wanted_lines),
        }
    }

    /// Whether a line is about sending entries, or caused by it: the part of the gateway that writes it says so, or the
    /// thread that does.
    pub fn is_about_sending(part: &str) -> bool {
        is_of_sending(part, std::thread::current().name())
    }

    /// Whether anything takes lines of this level.
    pub fn wants(&self, level: GatewayLogLevel) -> bool {
        self.wanted.wants(level)
    }

    /// Hands a line over to all that take lines of this level, where there is room; else it is counted as dropped. Never
    /// waits.
    pub fn offer(&self, level: GatewayLogLevel, line: &str) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let published = shared.published.load();
        let taking = published.snapshot.gateway_logs.iter();
        for takes in taking.filter(|takes| level <= takes.level()) {
            shared.log_out.offer(takes.entry(line, shared.log_out.hostname()));
        }
    }
}

/// Whether sending entries is what the line is about, or what has caused it.
fn is_of_sending(part: &str, thread: Option<&str>) -> bool {
    part.starts_with(SENDING) || thread == Some(NAME)
}

#[cfg(test)]
mod tests {
    use super::{WantedLines, is_of_sending};
    use crate::log_sinks::gateway_log::GatewayLog;
    use std::sync::Arc;
    use weir_plugin::{GatewayLogLevel, LogEntry};

    struct Takes(GatewayLogLevel);

    impl GatewayLog for Takes {
        fn level(&self) -> GatewayLogLevel {
            self.0
        }

        fn entry(&self, _: &str, _: &str) -> LogEntry {
            unreachable!("no line is handed over here")
        }
    }

    #[test]
    fn lines_are_wanted_while_something_takes_them() {
        use GatewayLogLevel::{Debug, Error, Info, Warn};
        let wanted = WantedLines::default();
        for (taking, expected) in [
            (vec![], vec![]),
            (vec![Error, Info], vec![Error, Warn, Info]),
            (vec![Debug], vec![Error, Warn, Info, Debug]),
            (vec![Error], vec![Error]),
            (vec![], vec![]),
        ] {
            let instances: Vec<Arc<dyn GatewayLog>> = (taking.iter())
                .map(|level| Arc::new(Takes(*level)) as Arc<dyn GatewayLog>)
                .collect();
            wanted.note_taking(&instances);
            let mut levels = vec![Error, Warn, Info, Debug];
            levels.retain(|level| wanted.wants(*level));
            assert_eq!(levels, expected, "{taking:?}");
        }
    }

    #[test]
    fn lines_about_sending_are_not_sent() {
        for (part, thread, expected) in [
            ("weir_proxy::log_sinks::queue", None, true),
            ("hickory_resolver", Some("weir-log-out"), true),
            ("weir_proxy::health", Some("weir-health"), false),
        ] {
            assert_eq!(is_of_sending(part, thread), expected, "{part} {thread:?}");
        }
        // The name of the module that this tells from all others.
        assert!(is_of_sending(module_path!(), None));
    }
}
