//! The levels of the gateway's own log lines that something takes: a look at each line that costs next to nothing. **What it
//! is not**: it sends no lines; the module `gateway_log` hands them over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use weir_plugin::{GatewayLog, GatewayLogLevel};

/// The most verbose level that is taken.
#[derive(Debug, Default)]
pub struct GatewayLogLevels(AtomicU8);

impl GatewayLogLevels {
    /// That nothing takes any line.
    const NONE: u8 = 0;

    /// From now on, these take lines.
    pub fn note_taking(&self, taking: &[Arc<dyn GatewayLog>]) {
        let most = taking.iter().map(|takes| place(takes.level())).max();
        self.0.store(most.unwrap_or(Self::NONE), Relaxed);
    }

    /// Whether anything takes lines of this level.
    pub fn are_taken(&self, level: GatewayLogLevel) -> bool {
        place(level) <= self.0.load(Relaxed)
    }
}

/// More verbose levels have higher numbers.
fn place(level: GatewayLogLevel) -> u8 {
    match level {
        GatewayLogLevel::Error => 1,
        GatewayLogLevel::Warn => 2,
        GatewayLogLevel::Info => 3,
        GatewayLogLevel::Debug => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::{GatewayLog, GatewayLogLevel, GatewayLogLevels};
    use std::sync::Arc;
    use weir_plugin::LogEntry;

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
    fn lines_are_taken_while_something_takes_them() {
        use GatewayLogLevel::{Debug, Error, Info, Warn};
        let taken = GatewayLogLevels::default();
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
            taken.note_taking(&instances);
            let mut levels = vec![Error, Warn, Info, Debug];
            levels.retain(|level| taken.are_taken(*level));
            assert_eq!(levels, expected, "{taking:?}");
        }
    }
}
