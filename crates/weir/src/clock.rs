//! The time, for what reckons in whole seconds or milliseconds.

use std::time::SystemTime;
use weir_model::unix_time;

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> u64 {
    unix_time::seconds(SystemTime::now())
}

/// Milliseconds since the Unix epoch.
pub fn unix_milliseconds() -> u64 {
    unix_time::millis(SystemTime::now())
}
