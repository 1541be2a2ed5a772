//! Entities of the original that this dialect keeps no documents of, but whose schemas clients may ask for.

use crate::document::common::{CREATED_AT, ID, NAME, TAGS, UPDATED_AT};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};

/// The fields of such an entity.
pub fn record(name: &str) -> Option<&'static Record> {
    Some(match name {
        "clustering_data_planes" => &CLUSTERING_DATA_PLANE,
        "filter_chains" => &FILTER_CHAIN,
        "parameters" => &PARAMETER,
        "tags" => &TAG,
        _ => return None,
    })
}

static CLUSTERING_DATA_PLANE: Record = Record::of(&[
    ID.required(),
    Field::new("last_seen", Kind::Integer).auto(),
    UPDATED_AT,
    Field::new("ip", Kind::String).required(),
    Field::new("config_hash", Kind::String),
    Field::new("hostname", Kind::String).required(),
    Field::new("version", Kind::String),
    Field::new("sync_status", Kind::String)
        .required()
        .or(Default::Text("unknown"))
        .check(&[Check::OneOf(&[
            "unknown",
            "normal",
            "kong_version_incompatible",
            "plugin_set_incompatible",
            "plugin_version_incompatible",
            "filter_set_incompatible",
        ])]),
    Field::new(
        "labels",
        Kind::Map {
            keys: &Field::element(Kind::String),
            values: &Field::element(Kind::String),
        },
    ),
    Field::new("cert_details", Kind::Record(&CERT_DETAILS)).required(),
    Field::new("rpc_capabilities", Kind::Set(&Field::element(Kind::String))),
]);

static CERT_DETAILS: Record = Record::of(&[Field::new("expiry_timestamp", Kind::Number)]);

static FILTER_CHAIN: Record = Record {
    fields: &[
        ID,
        NAME,
        Field::new("enabled", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("route", Kind::Foreign("routes")).unique(),
        Field::new("service", Kind::Foreign("services")).unique(),
        Field::new("filters", Kind::Array(&FILTER_ELEMENT))
            .required()
            .check(&[Check::AtLeast(1)]),
        CREATED_AT,
        UPDATED_AT,
        TAGS,
    ],
    checks: &[
        EntityCheck::MutuallyExclusive(&["service", "route"]),
        EntityCheck::AtLeastOneOf(&["service", "route"]),
    ],
};

const FILTER_ELEMENT: Field = Field::element(Kind::Record(&FILTER));

static FILTER: Record = Record::of(&[
    // No filter is installed.
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::OneOf(&[])]),
    Field::new("enabled", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("config", Kind::Any),
]);

static PARAMETER: Record = Record::of(&[
    CREATED_AT,
    Field::new("key", Kind::String).required().unique(),
    Field::new("value", Kind::String).required(),
]);

static TAG: Record = Record::of(&[
    Field::new("tag", Kind::String).required(),
    Field::new("entity_name", Kind::String).required(),
    Field::new("entity_id", Kind::Uuid).required().auto(),
]);
