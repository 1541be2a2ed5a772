//! The objects of OpenAPI 3.0, 3.1 and 3.2.

use super::kinds::{CLOSED, Field, Kind, Names, Need, Object, TEXT_MAP, TEXTS, field};
use super::shared::{EXTERNAL_DOCUMENTATION, INFO, SECURITY, TAGS};
use crate::openapi::Format::{V3_0, V3_1, V3_2};
use Kind::{Any, Bool, Schema, Text};

const PARAMETERS: Kind = Kind::List(&Kind::OrReference(&PARAMETER));
const SERVERS: Kind = Kind::List(&Kind::Object(&SERVER));
const EXAMPLES: Kind = Kind::Map(Names::Any, &Kind::OrReference(&EXAMPLE));

pub static DOCUMENT: Object = Object {
    fields: &[
        field("openapi", Text).required(),
        field("$self", Text).since(V3_2),
        field("info", Kind::Object(&INFO)).required(),
        field("jsonSchemaDialect", Text).since(V3_1),
        field("servers", SERVERS),
        field("paths", Kind::Map(Names::Path, &Kind::Object(&PATH_ITEM))).required_until(V3_0),
        field("webhooks", Kind::Map(Names::Any, &Kind::Object(&PATH_ITEM))).since(V3_1),
        field("components", Kind::Object(&COMPONENTS)),
        field("security", SECURITY),
        field("tags", TAGS),
        field("externalDocs", Kind::Object(&EXTERNAL_DOCUMENTATION)),
    ],
    ..CLOSED
};

static SERVER: Object = Object {
    fields: &[
        field("url", Text).required(),
        field("description", Text),
        field("name", Text).since(V3_2),
        field(
            "variables",
            Kind::Map(Names::Any, &Kind::Object(&SERVER_VARIABLE)),
        ),
    ],
    ..CLOSED
};

static SERVER_VARIABLE: Object = Object {
    fields: &[
        field("enum", TEXTS),
        // The rule `oas3-server-variables` says where it is missing.
        field("default", Text),
        field("description", Text),
    ],
    ..CLOSED
};

static COMPONENTS: Object = Object {
    fields: &[
        field("schemas", Kind::Map(Names::Component, &Schema)),
        field(
            "responses",
            Kind::Map(Names::Component, &Kind::OrReference(&RESPONSE)),
        ),
        field(
            "parameters",
            Kind::Map(Names::Component, &Kind::OrReference(&PARAMETER)),
        ),
        field(
            "examples",
            Kind::Map(Names::Component, &Kind::OrReference(&EXAMPLE)),
        ),
        field(
            "requestBodies",
            Kind::Map(Names::Component, &Kind::OrReference(&REQUEST_BODY)),
        ),
        field(
            "headers",
            Kind::Map(Names::Component, &Kind::OrReference(&HEADER)),
        ),
        field(
            "securitySchemes",
            Kind::Map(Names::Component, &Kind::OrReference(&SECURITY_SCHEME)),
        ),
        field("links", Kind::Map(Names::Component, &Kind::OrReference(&LINK))),
        // Expressions with what is sent to where they lead. References are objects with that name only.
        field(
            "callbacks",
            Kind::Map(
                Names::Component,
                &Kind::Map(
                    Names::Expression,
                    &Kind::Either(&[Text, Kind::Object(&PATH_ITEM)]),
                ),
            ),
        ),
        field(
            "pathItems",
            Kind::Map(Names::Component, &Kind::Object(&PATH_ITEM)),
        )
        .since(V3_1),
        field(
            "mediaTypes",
            Kind::Map(Names::Component, &Kind::OrReference(&MEDIA_TYPE)),
        )
        .since(V3_2),
    ],
    ..CLOSED
};

static PATH_ITEM: Object = Object {
    fields: &[
        field("$ref", Text),
        field("summary", Text),
        field("description", Text),
        field("get", Kind::Object(&OPERATION)),
        field("put", Kind::Object(&OPERATION)),
        field("post", Kind::Object(&OPERATION)),
        field("delete", Kind::Object(&OPERATION)),
        field("options", Kind::Object(&OPERATION)),
        field("head", Kind::Object(&OPERATION)),
        field("patch", Kind::Object(&OPERATION)),
        field("trace", Kind::Object(&OPERATION)),
        field("query", Kind::Object(&OPERATION)).since(V3_2),
        field(
            "additionalOperations",
            Kind::Map(Names::Any, &Kind::Object(&OPERATION)),
        )
        .since(V3_2),
        field("servers", SERVERS),
        field("parameters", PARAMETERS),
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
        field("parameters", PARAMETERS),
        field("requestBody", Kind::OrReference(&REQUEST_BODY)),
        field(
            "responses",
            Kind::Map(Names::Status, &Kind::OrReference(&RESPONSE)),
        )
        .required_until(V3_0),
        field(
            "callbacks",
            Kind::Map(
                Names::Any,
                &Kind::Map(
                    Names::Expression,
                    &Kind::Either(&[Text, Kind::Object(&PATH_ITEM)]),
                ),
            ),
        ),
        field("deprecated", Bool),
        field("security", SECURITY),
        field("servers", SERVERS),
    ],
    ..CLOSED
};

const STYLES: Kind = Kind::Words(&[
    "matrix",
    "label",
    "simple",
    "form",
    "spaceDelimited",
    "pipeDelimited",
    "deepObject",
]);
const STYLES_3_2: Kind = Kind::Words(&[
    "matrix",
    "label",
    "simple",
    "form",
    "spaceDelimited",
    "pipeDelimited",
    "deepObject",
    "cookie",
]);

static PARAMETER: Object = Object {
    fields: &[
        field("name", Text).required(),
        field("in", Kind::Words(&["query", "header", "path", "cookie"]))
            .required()
            .until(V3_1),
        field(
            "in",
            Kind::Words(&["query", "querystring", "header", "path", "cookie"]),
        )
        .required()
        .since(V3_2),
        field("description", Text),
        field("required", Bool),
        field("deprecated", Bool),
        field("allowEmptyValue", Bool),
        field("style", STYLES).until(V3_1),
        field("style", STYLES_3_2).since(V3_2),
        field("explode", Bool),
        field("allowReserved", Bool),
        field("schema", Schema),
        field("content", Kind::Map(Names::Any, &Kind::OrReference(&MEDIA_TYPE))),
        field("example", Any),
        field("examples", EXAMPLES),
    ],
    needs: &[
        Need::One(&["schema", "content"]),
        Need::NotBoth("example", "examples"),
    ],
    ..CLOSED
};

static HEADER: Object = Object {
    fields: &[
        field("description", Text),
        field("required", Bool),
        field("deprecated", Bool),
        field("allowEmptyValue", Bool).until(V3_0),
        field("style", Kind::Words(&["simple"])),
        field("explode", Bool),
        field("allowReserved", Bool).until(V3_0),
        field("schema", Schema),
        field("content", Kind::Map(Names::Any, &Kind::OrReference(&MEDIA_TYPE))),
        field("example", Any),
        field("examples", EXAMPLES),
    ],
    needs: &[
        Need::One(&["schema", "content"]),
        Need::NotBoth("example", "examples"),
    ],
    ..CLOSED
};

static REQUEST_BODY: Object = Object {
    fields: &[
        field("description", Text),
        field("content", Kind::Map(Names::Any, &Kind::OrReference(&MEDIA_TYPE))).required(),
        field("required", Bool),
    ],
    ..CLOSED
};

static MEDIA_TYPE: Object = Object {
    fields: &[
        field("schema", Schema),
        field("itemSchema", Schema).since(V3_2),
        field("example", Any),
        field("examples", EXAMPLES),
        field("encoding", Kind::Map(Names::Any, &Kind::Object(&ENCODING))),
        field("prefixEncoding", Kind::List(&Kind::Object(&ENCODING))).since(V3_2),
        field("itemEncoding", Kind::Object(&ENCODING)).since(V3_2),
    ],
    needs: &[Need::NotBoth("example", "examples")],
    ..CLOSED
};

static ENCODING: Object = Object {
    fields: &[
        field("contentType", Text),
        field("headers", Kind::Map(Names::Any, &Kind::OrReference(&HEADER))),
        field(
            "style",
            Kind::Words(&["form", "spaceDelimited", "pipeDelimited", "deepObject"]),
        ),
        field("explode", Bool),
        field("allowReserved", Bool),
        field("encoding", Kind::Map(Names::Any, &Kind::Object(&ENCODING))).since(V3_2),
        field("prefixEncoding", Kind::List(&Kind::Object(&ENCODING))).since(V3_2),
        field("itemEncoding", Kind::Object(&ENCODING)).since(V3_2),
    ],
    ..CLOSED
};

static RESPONSE: Object = Object {
    fields: &[
        field("summary", Text).since(V3_2),
        field("description", Text).required_until(V3_1),
        field("headers", Kind::Map(Names::Any, &Kind::OrReference(&HEADER))),
        field("content", Kind::Map(Names::Any, &Kind::OrReference(&MEDIA_TYPE))),
        field("links", Kind::Map(Names::Any, &Kind::OrReference(&LINK))),
    ],
    ..CLOSED
};

static EXAMPLE: Object = Object {
    fields: &[
        field("summary", Text),
        field("description", Text),
        field("value", Any),
        field("externalValue", Text),
        field("dataValue", Any).since(V3_2),
        field("serializedValue", Text).since(V3_2),
    ],
    ..CLOSED
};

static LINK: Object = Object {
    fields: &[
        field("operationRef", Text),
        field("operationId", Text),
        field("parameters", Kind::Map(Names::Any, &Any)),
        field("requestBody", Any),
        field("description", Text),
        field("server", Kind::Object(&SERVER)),
    ],
    needs: &[Need::One(&["operationRef", "operationId"])],
    ..CLOSED
};

static SECURITY_SCHEME: Object = Object {
    fields: &[
        field(
            "type",
            Kind::Words(&["apiKey", "http", "oauth2", "openIdConnect"]),
        )
        .required()
        .until(V3_0),
        field(
            "type",
            Kind::Words(&["apiKey", "http", "mutualTLS", "oauth2", "openIdConnect"]),
        )
        .required()
        .since(V3_1),
        field("description", Text),
        field("name", Text),
        field("in", Kind::Words(&["query", "header", "cookie"])),
        field("scheme", Text),
        field("bearerFormat", Text),
        field("flows", Kind::Object(&FLOWS)),
        field("openIdConnectUrl", Text),
        field("oauth2MetadataUrl", Text).since(V3_2),
        field("deprecated", Bool).since(V3_2),
    ],
    needs: &[
        Need::With("type", &["apiKey"], &["name", "in"]),
        Need::With("type", &["http"], &["scheme"]),
        Need::With("type", &["oauth2"], &["flows"]),
        Need::With("type", &["openIdConnect"], &["openIdConnectUrl"]),
    ],
    ..CLOSED
};

static FLOWS: Object = Object {
    fields: &[
        field("implicit", Kind::Object(&IMPLICIT_FLOW)),
        field("password", Kind::Object(&TOKEN_FLOW)),
        field("clientCredentials", Kind::Object(&TOKEN_FLOW)),
        field("authorizationCode", Kind::Object(&CODE_FLOW)),
        field("deviceAuthorization", Kind::Object(&DEVICE_FLOW)).since(V3_2),
    ],
    ..CLOSED
};

/// What all flows have.
static OF_FLOWS: [Field; 2] = [field("refreshUrl", Text), field("scopes", TEXT_MAP).required()];

static IMPLICIT_FLOW: Object = Object {
    fields: &[field("authorizationUrl", Text).required()],
    common: &[&OF_FLOWS],
    ..CLOSED
};

static TOKEN_FLOW: Object = Object {
    fields: &[field("tokenUrl", Text).required()],
    common: &[&OF_FLOWS],
    ..CLOSED
};

static CODE_FLOW: Object = Object {
    fields: &[
        field("authorizationUrl", Text).required(),
        field("tokenUrl", Text).required(),
    ],
    common: &[&OF_FLOWS],
    ..CLOSED
};

static DEVICE_FLOW: Object = Object {
    fields: &[
        field("deviceAuthorizationUrl", Text).required(),
        field("tokenUrl", Text).required(),
    ],
    common: &[&OF_FLOWS],
    ..CLOSED
};
