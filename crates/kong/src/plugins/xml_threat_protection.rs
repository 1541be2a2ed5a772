//! `xml-threat-protection` of the paid edition: refuses XML bodies that are too deep, too wide or too long.

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::xml_threat_protection::Config;

/// The definition of `xml-threat-protection`.
pub const DEFINITION: Definition = Definition {
    name: "xml-threat-protection",
    priority: 999,
    config: Record::of(&[
        Field::new("checked_content_types", Kind::Set(&MEDIA))
            .required()
            .or(Default::Texts(&["application/xml"])),
        Field::new("allowed_content_types", Kind::Set(&MEDIA))
            .required()
            .or(Default::Texts(&[])),
        flag("allow_dtd", false).required(),
        flag("namespace_aware", true).required(),
        limit("max_depth", 50),
        limit("max_children", 100),
        limit("max_attributes", 100),
        limit("max_namespaces", 20),
        limit("document", 10_485_760),
        limit("buffer", 1_048_576),
        limit("comment", 1024),
        limit("localname", 1024),
        limit("prefix", 1024),
        limit("namespaceuri", 1024),
        limit("attribute", 1_048_576),
        limit("text", 1_048_576),
        limit("pitarget", 1024),
        limit("pidata", 1024),
        limit("entityname", 1024),
        limit("entity", 1024),
        limit("entityproperty", 1024),
        Field::new("bla_max_amplification", Kind::Number)
            .required()
            .or(Default::Integer(100))
            .check(&[Check::Between(1, 1_000_000_000)]),
        Field::new("bla_threshold", Kind::Integer)
            .required()
            .or(Default::Integer(8_388_608))
            .check(&[Check::Between(1024, 1_000_000_000)]),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "xml-threat-protection",
    translate,
};

const MEDIA: Field = Field::element(Kind::String);

const fn limit(name: &'static str, default: i64) -> Field {
    Field::new(name, Kind::Integer)
        .required()
        .or(Default::Integer(default))
        .check(&[Check::Above(0)])
}

#[derive(Deserialize)]
struct Options {
    checked_content_types: Vec<String>,
    allowed_content_types: Vec<String>,
    allow_dtd: bool,
    namespace_aware: bool,
    max_depth: usize,
    max_children: usize,
    max_attributes: usize,
    max_namespaces: usize,
    document: usize,
    buffer: usize,
    comment: usize,
    localname: usize,
    prefix: usize,
    namespaceuri: usize,
    attribute: usize,
    text: usize,
    pitarget: usize,
    pidata: usize,
    entityname: usize,
    entity: usize,
    entityproperty: usize,
    bla_max_amplification: f64,
    bla_threshold: usize,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    Ok(untyped(Config {
        checked_types: options.checked_content_types,
        allowed_types: options.allowed_content_types,
        allow_dtd: options.allow_dtd,
        namespaces: options.namespace_aware,
        max_body_bytes: options.document.min(64 << 20),
        max_token: options.buffer,
        max_depth: options.max_depth,
        max_children: options.max_children,
        max_attributes: options.max_attributes,
        max_namespaces: options.max_namespaces,
        max_local_name: options.localname,
        max_prefix: options.prefix,
        max_namespace_uri: options.namespaceuri,
        max_attribute: options.attribute,
        max_text: options.text,
        max_comment: options.comment,
        max_instruction_target: options.pitarget,
        max_instruction_data: options.pidata,
        max_entity_name: options.entityname,
        max_entity: options.entity,
        max_entity_property: options.entityproperty,
        max_amplification: options.bla_max_amplification,
        amplification_from: options.bla_threshold,
        ..Config::default()
    }))
}
