//! The counts of this process's limits for subscribers, for those who show and watch quotas.

use std::sync::Arc;
use weir_apis::entities::Period;
use weir_control::limit_counts::CountLookup;
use weir_control::quotas::{LocalUsage, WindowUsage};
use weir_plugin::{ConsumerCount, CountWindow};

/// The counts in the environments that this process serves.
pub fn counted_in(environments: Vec<String>, counted: CountLookup) -> LocalUsage {
    Arc::new(move |environment, of| {
        let is_served = environments.iter().any(|it| it == environment);
        let of = ConsumerCount {
            limit: of.limit,
            consumer: of.consumer,
            window: window(of.per),
        };
        let found = is_served.then(|| counted(&of))??;
        Some(WindowUsage {
            used: found.used,
            reset_ms: found.reset_ms,
        })
    })
}

/// The window in which a plan's limit counts, as the documents of gateways name it.
fn window(per: Period) -> CountWindow {
    match per {
        Period::Second => CountWindow::Second,
        Period::Minute => CountWindow::Minute,
        Period::Hour => CountWindow::Hour,
        Period::Day => CountWindow::Day,
        Period::Week => CountWindow::Week,
        Period::Month => CountWindow::Month,
    }
}
