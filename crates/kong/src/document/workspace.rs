//! Workspaces: names under which entities of their own stand. Documents have none: each is for one workspace.

use super::common::{CREATED_AT, ID, UPDATED_AT};
use crate::schema::{Check, Field, Kind, Record, text};

/// Names that would be taken for the collections of a path, as the original has them.
pub const RESERVED: &[&str] = &[
    "workspaces",
    "consumers",
    "certificates",
    "services",
    "routes",
    "snis",
    "upstreams",
    "targets",
    "plugins",
    "tags",
    "ca_certificates",
    "clustering_data_planes",
    "parameters",
    "vaults",
    "key_sets",
    "keys",
    "filter_chains",
];

/// The fields of a workspace.
pub static RECORD: Record = Record::of(&[
    ID,
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::NotOneOf(RESERVED), Check::Text(text::name)])
        .unique(),
    Field::new("comment", Kind::String),
    CREATED_AT,
    UPDATED_AT,
    Field::new("meta", Kind::Record(&NOTHING)).required(),
    Field::new("config", Kind::Record(&NOTHING)).required(),
]);

static NOTHING: Record = Record::of(&[]);
