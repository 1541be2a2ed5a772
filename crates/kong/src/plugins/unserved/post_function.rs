//! `post-function`: code of the administrator that runs after all plugins; configured as `pre-function` is.

use super::pre_function::{CHECKS, CONFIG};
use super::{Definition, deciding};

/// The plugin.
pub const DEFINITION: Definition = deciding("post-function", -1_000, CONFIG)
    .never_on_consumers()
    .with_checks(CHECKS);
