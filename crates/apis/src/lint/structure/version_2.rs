//! The objects of OpenAPI 2.0: what a document, its paths, operations, parameters, responses and security schemes have.

use super::kinds::{CLOSED, Field, Kind, Names, Need, Object, TEXT_MAP, TEXTS, field};
use super::schemas::OF_VALUES;
use super::shared::{EXTERNAL_DOCUMENTATION, INFO, SECURITY, TAGS};
use Kind::{Any, Bool, Schema, Text};

const SCHEMES: Kind = Kind::List(&Kind::Words(&["http", "https", "ws", "wss"]));
const COLLECTION_FORMATS: Kind = Kind::Words(&["csv", "ssv", "tsv", "pipes"]);

pub static DOCUMENT: Object = Object {
    fields: &[
        field("swagger", Text).required(),
        field("info", Kind::Object(&INFO)).required(),
        field("host", Text),
        field("basePath", Text),
        field("schemes", SCHEMES),
        field("consumes", TEXTS),
        field("produces", TEXTS),
        field("paths", Kind::Map(Names::Path, &Kind::Object(&PATH_ITEM))).required(),
        field("definitions", Kind::Map(Names::Any, &Schema)),
        field("parameters", Kind::Map(Names::Any, &Kind::Object(&PARAMETER))),
        field("responses", Kind::Map(Names::Any, &Kind::Object(&RESPONSE))),
        field(
            "securityDefinitions",
            Kind::Map(Names::Any, &Kind::Object(&SECURITY_SCHEME)),
        ),
        field("security", SECURITY),
        field("tags", TAGS),
        field("externalDocs", Kind::Object(&EXTERNAL_DOCUMENTATION)),
    ],
    ..CLOSED
};

static PATH_ITEM: Object = Object {
    fields: &[
        field("$ref", Text),
        field("get", Kind::Object(&OPERATION)),
        field("put", Kind::Object(&OPERATION)),
        field("post", Kind::Object(&OPERATION)),
        field("delete", Kind::Object(&OPERATION)),
        field("options", Kind::Object(&OPERATION)),
        field("head", Kind::Object(&OPERATION)),
        field("patch", Kind::Object(&OPERATION)),
        field("parameters", Kind::List(&Kind::OrReference(&PARAMETER))),
    ],
    ..CLOSED
};

static OPERATION: Object = Object {
    fields: &[
        field("tags", TEXTS),
        field("summary", Text),
        field("description", Text),
        field("externalDocs", Kind::Object(&EXTERNAL_DOCUMENTATION)),
        field("operationId", Text),
        field("consumes", TEXTS),
        field("produces", TEXTS),
        field("parameters", Kind::List(&Kind::OrReference(&PARAMETER))),
        field(
            "responses",
            Kind::Map(Names::Status, &Kind::OrReference(&RESPONSE)),
        )
        .required(),
        field("schemes", SCHEMES),
        field("deprecated", Bool),
        field("security", SECURITY),
    ],
    ..CLOSED
};

static PARAMETER: Object = Object {
    fields: &[
        field("name", Text).required(),
        field(
            "in",
            Kind::Words(&["query", "header", "path", "formData", "body"]),
        )
        .required(),
        field("description", Text),
        field("required", Bool),
        field("schema", Schema),
        field("allowEmptyValue", Bool),
        field(
            "type",
            Kind::Words(&["string", "number", "integer", "boolean", "array", "file"]),
        ),
        field("items", Kind::Object(&ITEMS)),
        field(
            "collectionFormat",
            Kind::Words(&["csv", "ssv", "tsv", "pipes", "multi"]),
        ),
    ],
    common: &[&OF_VALUES],
    needs: &[
        Need::With("in", &["body"], &["schema"]),
        Need::With("in", &["query", "header", "path", "formData"], &["type"]),
    ],
    ..CLOSED
};

/// What items of arrays and headers have, which are no bodies.
static OF_ITEMS: [Field; 3] = [
    field(
        "type",
        Kind::Words(&["string", "number", "integer", "boolean", "array"]),
    )
    .required(),
    field("items", Kind::Object(&ITEMS)),
    field("collectionFormat", COLLECTION_FORMATS),
];

/// The values of an array that is no body.
static ITEMS: Object = Object {
    common: &[&OF_ITEMS, &OF_VALUES],
    ..CLOSED
};

static HEADER: Object = Object {
    fields: &[field("description", Text)],
    common: &[&OF_ITEMS, &OF_VALUES],
    ..CLOSED
};

static RESPONSE: Object = Object {
    fields: &[
        field("description", Text).required(),
        field("schema", Schema),
        field("headers", Kind::Map(Names::Any, &Kind::Object(&HEADER))),
        field("examples", Kind::Map(Names::Any, &Any)),
    ],
    ..CLOSED
};

static SECURITY_SCHEME: Object = Object {
    fields: &[
        field("type", Kind::Words(&["basic", "apiKey", "oauth2"])).required(),
        field("description", Text),
        field("name", Text),
        field("in", Kind::Words(&["query", "header"])),
        field(
            "flow",
            Kind::Words(&["implicit", "password", "application", "accessCode"]),
        ),
        field("authorizationUrl", Text),
        field("tokenUrl", Text),
        field("scopes", TEXT_MAP),
    ],
    needs: &[
        Need::With("type", &["apiKey"], &["name", "in"]),
        Need::With("type", &["oauth2"], &["flow"]),
        Need::With("flow", &["implicit", "accessCode"], &["authorizationUrl"]),
        Need::With("flow", &["password", "application", "accessCode"], &["tokenUrl"]),
    ],
    ..CLOSED
};
