//! The time, as entities of API management have it.

use std::time::SystemTime;
use weir_model::unix_time;

/// Seconds since 1970.
pub fn now() -> u64 {
    unix_time::seconds(SystemTime::now())
}
