//! Objects that all versions of OpenAPI have.

use super::kinds::{CLOSED, Kind, Names, Need, Object, TEXTS, field};
use crate::openapi::Format::{V3_1, V3_2};
use Kind::{Bool, Text};

pub static INFO: Object = Object {
    fields: &[
        field("title", Text).required(),
        field("version", Text).required(),
        field("summary", Text).since(V3_1),
        field("description", Text),
        field("termsOfService", Text),
        field("contact", Kind::Object(&CONTACT)),
        field("license", Kind::Object(&LICENSE)),
    ],
    ..CLOSED
};

static CONTACT: Object = Object {
    fields: &[field("name", Text), field("url", Text), field("email", Text)],
    ..CLOSED
};

static LICENSE: Object = Object {
    fields: &[
        field("name", Text).required(),
        field("identifier", Text).since(V3_1),
        field("url", Text),
    ],
    needs: &[Need::NotBoth("identifier", "url")],
    ..CLOSED
};

pub static TAG: Object = Object {
    fields: &[
        field("name", Text).required(),
        field("summary", Text).since(V3_2),
        field("description", Text),
        field("externalDocs", Kind::Object(&EXTERNAL_DOCUMENTATION)),
        field("parent", Text).since(V3_2),
        field("kind", Text).since(V3_2),
    ],
    ..CLOSED
};

pub static EXTERNAL_DOCUMENTATION: Object = Object {
    fields: &[field("description", Text), field("url", Text).required()],
    ..CLOSED
};

pub static XML: Object = Object {
    fields: &[
        field("name", Text),
        field("namespace", Text),
        field("prefix", Text),
        field("attribute", Bool),
        field("wrapped", Bool),
        field(
            "nodeType",
            Kind::Words(&["element", "attribute", "text", "cdata", "none"]),
        )
        .since(V3_2),
    ],
    ..CLOSED
};

/// What a call has to carry: names of security schemes with their scopes.
pub const SECURITY: Kind = Kind::List(&Kind::Map(Names::Any, &TEXTS));

pub const TAGS: Kind = Kind::List(&Kind::Object(&TAG));
