//! `pre-function`: code of the administrator that runs before all plugins.

use super::{Definition, deciding};
use crate::schema::{Default, EntityCheck, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = deciding("pre-function", 1_000_000, CONFIG)
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

/// Code by the phase in which it runs.
pub(super) const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("certificate", Kind::Array(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(&[])),
    Field::new("rewrite", Kind::Array(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(&[])),
    Field::new("access", Kind::Array(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(&[])),
    Field::new("header_filter", Kind::Array(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(&[])),
    Field::new("body_filter", Kind::Array(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(&[])),
    Field::new("log", Kind::Array(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(&[])),
];
