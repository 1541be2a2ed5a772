//! `post-function`: code of the administrator that runs after all plugins; configured as `pre-function` is.

use super::pre_function::{CHECKS, check, phases};
use super::{Definition, blocking_if_code};
use crate::schema::{Check, Field, Kind, Record};

/// The definition of `post-function`.
pub const DEFINITION: Definition = blocking_if_code("post-function", -1_000, CONFIG)
    .never_on_consumers()
    .with_checks(CHECKS);

static CODE: Field = Field::element(Kind::String).check(&[Check::Text(check_code)]);

fn check_code(code: &str) -> Result<(), String> {
    check("post-function", code)
}

static PHASES: [Field; 6] = phases(&CODE);

const CONFIG: Record = Record::of(&PHASES);
