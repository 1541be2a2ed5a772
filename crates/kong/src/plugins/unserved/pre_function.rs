//! `pre-function`: code of the administrator that runs before all plugins.

use super::{Definition, blocking_if_code};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};
use weir_plugins::lua_syntax;

/// The definition of `pre-function`.
pub const DEFINITION: Definition = blocking_if_code("pre-function", 1_000_000, CONFIG)
    .never_on_consumers()
    .with_checks(CHECKS);

/// Some code is there.
pub(super) const CHECKS: &[EntityCheck] = &[EntityCheck::AtLeastOneOf(&[
    "config.certificate",
    "config.rewrite",
    "config.access",
    "config.header_filter",
    "config.body_filter",
    "config.log",
])];

static CODE: Field = Field::element(Kind::String).check(&[Check::Text(check_code)]);

fn check_code(code: &str) -> Result<(), String> {
    check("pre-function", code)
}

/// Refuses code that is not Lua, in the original's words.
pub(super) fn check(plugin: &str, code: &str) -> Result<(), String> {
    match lua_syntax::error(code) {
        Some(error) => Err(format!("error parsing {plugin}: {error}")),
        None => Ok(()),
    }
}

static PHASES: [Field; 6] = phases(&CODE);

const CONFIG: Record = Record::of(&PHASES);

/// Code by the phase in which it runs.
pub(super) const fn phases(code: &'static Field) -> [Field; 6] {
    [
        phase("certificate", code),
        phase("rewrite", code),
        phase("access", code),
        phase("header_filter", code),
        phase("body_filter", code),
        phase("log", code),
    ]
}

const fn phase(name: &'static str, code: &'static Field) -> Field {
    Field::new(name, Kind::Array(code))
        .required()
        .or(Default::Texts(&[]))
}
