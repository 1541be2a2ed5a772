//! `azure-functions`: calls a function of Azure instead of an upstream.

use super::{Definition, refusing};
use crate::schema::{Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = refusing("azure-functions", 749, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("timeout", Kind::Number).or(Default::Integer(600_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("https", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("https_verify", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("apikey", Kind::String),
    Field::new("clientid", Kind::String),
    Field::new("appname", Kind::String).required(),
    Field::new("hostdomain", Kind::String)
        .required()
        .or(Default::Text("azurewebsites.net")),
    Field::new("routeprefix", Kind::String).or(Default::Text("api")),
    Field::new("functionname", Kind::String).required(),
];
