//! `batch-requests`: `public-api` makes batches public; on a route by itself the plugin does nothing. Its metadata has the
//! limits.

use super::PluginAdapter;
use super::no_op::no_op_parts;

/// The plugin `batch-requests`.
pub struct BatchRequests;

impl PluginAdapter for BatchRequests {
    no_op_parts!("batch-requests", 4010, metadata);

    fn plugin(&self) -> &'static str {
        ""
    }
}
