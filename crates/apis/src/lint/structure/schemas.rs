//! Schemas: the words of 2.0, of 3.0, and those of JSON Schema 2020-12 since 3.1.

use super::kinds::{CLOSED, Field, Kind, Names, Object, SCHEMA_OR_BOOL, TEXT_MAP, TEXTS, field};
use super::shared::{EXTERNAL_DOCUMENTATION, XML};
use crate::openapi::Format::{V3_0, V3_1, V3_2};

use Kind::{Any, Bool, Count, Number, Schema, Text};

/// The object that a schema of a version is.
pub fn of(format: crate::openapi::Format) -> &'static Object {
    match format {
        crate::openapi::Format::V2 => &SCHEMA_2,
        V3_0 => &SCHEMA_3_0,
        V3_1 | V3_2 => &SCHEMA_2020,
    }
}

const SCHEMAS: Kind = Kind::List(&Schema);
const SOME_SCHEMAS: Kind = Kind::Some(&Schema);
const SCHEMA_MAP: Kind = Kind::Map(Names::Any, &Schema);
/// Types of 2.0: those of draft 4 of JSON Schema, and files.
const TYPES_2: Kind = Kind::Words(&[
    "array", "boolean", "integer", "null", "number", "object", "string", "file",
]);
const TYPES_2020: Kind = Kind::Words(&[
    "array", "boolean", "integer", "null", "number", "object", "string",
]);

/// Words about values up to 3.0, of schemas, parameters and headers.
pub static OF_VALUES: [Field; 14] = [
    field("format", Text),
    field("enum", Kind::Some(&Any)),
    field("default", Any),
    field("multipleOf", Number),
    field("maximum", Number),
    field("exclusiveMaximum", Bool),
    field("minimum", Number),
    field("exclusiveMinimum", Bool),
    field("maxLength", Count),
    field("minLength", Count),
    field("pattern", Text),
    field("maxItems", Count),
    field("minItems", Count),
    field("uniqueItems", Bool),
];

/// Words of schemas up to 3.0.
static OF_SCHEMAS: [Field; 11] = [
    field("title", Text),
    field("description", Text),
    field("example", Any),
    field("maxProperties", Count),
    field("minProperties", Count),
    field("required", Kind::Some(&Text)),
    field("properties", SCHEMA_MAP),
    field("additionalProperties", SCHEMA_OR_BOOL),
    field("readOnly", Bool),
    field("xml", Kind::Object(&XML)),
    field("externalDocs", Kind::Object(&EXTERNAL_DOCUMENTATION)),
];

static SCHEMA_2: Object = Object {
    fields: &[
        field("type", Kind::Either(&[TYPES_2, Kind::Some(&TYPES_2)])),
        field("items", Kind::Either(&[SOME_SCHEMAS, Schema])),
        field("allOf", SOME_SCHEMAS),
        // Rules of their own say that 2.0 does not have them.
        field("anyOf", Any),
        field("oneOf", Any),
        field("discriminator", Text),
    ],
    common: &[&OF_SCHEMAS, &OF_VALUES],
    ..CLOSED
};

static SCHEMA_3_0: Object = Object {
    fields: &[
        field(
            "type",
            Kind::Words(&["array", "boolean", "integer", "number", "object", "string"]),
        ),
        field("nullable", Bool),
        field("items", Schema),
        field("allOf", SCHEMAS),
        field("anyOf", SCHEMAS),
        field("oneOf", SCHEMAS),
        field("not", Schema),
        field("discriminator", Kind::Object(&DISCRIMINATOR)),
        field("writeOnly", Bool),
        field("deprecated", Bool),
    ],
    common: &[&OF_SCHEMAS, &OF_VALUES],
    ..CLOSED
};

/// A schema may have words of other vocabularies, so any field is allowed.
static SCHEMA_2020: Object = Object {
    fields: &[
        field("$id", Text),
        field("$schema", Text),
        field("$ref", Text),
        field("$anchor", Text),
        field("$dynamicRef", Text),
        field("$dynamicAnchor", Text),
        field("$comment", Text),
        field("$defs", SCHEMA_MAP),
        field("definitions", SCHEMA_MAP),
        field("title", Text),
        field("description", Text),
        field("format", Text),
        field("type", Kind::Either(&[TYPES_2020, Kind::Some(&TYPES_2020)])),
        field("enum", Kind::List(&Any)),
        field("multipleOf", Number),
        field("maximum", Number),
        field("exclusiveMaximum", Number),
        field("minimum", Number),
        field("exclusiveMinimum", Number),
        field("maxLength", Count),
        field("minLength", Count),
        field("pattern", Text),
        field("maxItems", Count),
        field("minItems", Count),
        field("uniqueItems", Bool),
        field("maxContains", Count),
        field("minContains", Count),
        field("maxProperties", Count),
        field("minProperties", Count),
        field("required", TEXTS),
        field("dependentRequired", Kind::Map(Names::Any, &TEXTS)),
        field("properties", SCHEMA_MAP),
        field("patternProperties", SCHEMA_MAP),
        field("dependentSchemas", SCHEMA_MAP),
        field("additionalProperties", Schema),
        field("unevaluatedProperties", Schema),
        field("propertyNames", Schema),
        field("items", Schema),
        field("prefixItems", SOME_SCHEMAS),
        field("unevaluatedItems", Schema),
        field("contains", Schema),
        field("allOf", SOME_SCHEMAS),
        field("anyOf", SOME_SCHEMAS),
        field("oneOf", SOME_SCHEMAS),
        field("not", Schema),
        field("if", Schema),
        field("then", Schema),
        field("else", Schema),
        field("contentEncoding", Text),
        field("contentMediaType", Text),
        field("contentSchema", Schema),
        field("examples", Kind::List(&Any)),
        field("deprecated", Bool),
        field("readOnly", Bool),
        field("writeOnly", Bool),
        field("discriminator", Kind::Object(&DISCRIMINATOR)),
        field("xml", Kind::Object(&XML)),
        field("externalDocs", Kind::Object(&EXTERNAL_DOCUMENTATION)),
    ],
    is_open: true,
    ..CLOSED
};

static DISCRIMINATOR: Object = Object {
    fields: &[
        field("propertyName", Text).required(),
        field("mapping", TEXT_MAP),
        field("defaultMapping", Text).since(V3_2),
    ],
    ..CLOSED
};
