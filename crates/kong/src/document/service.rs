//! Services: fields, the `url` shorthand, and the value that translation reads.

use super::common::{CREATED_AT, ID, NAME, PATH, PORT, PROTOCOLS, TAGS, UPDATED_AT, timeout};
use crate::schema::{
    Check, Default, EntityCheck, Field, FieldTest, Kind, RawFields, Record, Requirement, text,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The fields of a service.
pub static RECORD: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        UPDATED_AT,
        NAME,
        Field::new("retries", Kind::Integer)
            .or(Default::Integer(5))
            .check(&[Check::Between(0, 32_767)]),
        Field::new("protocol", Kind::String)
            .required()
            .or(Default::Text("http"))
            .check(&[Check::OneOf(PROTOCOLS)]),
        Field::new("host", Kind::String)
            .required()
            .check(&[Check::Text(text::host)]),
        Field::new("port", Kind::Integer)
            .required()
            .or(Default::Integer(80))
            .check(PORT),
        Field::new("path", Kind::String).check(PATH),
        timeout("connect_timeout"),
        timeout("write_timeout"),
        timeout("read_timeout"),
        TAGS,
        Field::new("client_certificate", Kind::Foreign("certificates")),
        Field::new("tls_verify", Kind::Boolean),
        Field::new("tls_verify_depth", Kind::Integer).check(&[Check::Between(0, 64)]),
        Field::new("ca_certificates", Kind::Array(&Field::element(Kind::Uuid))),
        Field::new("enabled", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
    ],
    checks: &[
        EntityCheck::When {
            field: "protocol",
            is: FieldTest::OneOf(&["tcp", "tls", "udp", "grpc", "grpcs"]),
            then: "path",
            must: Requirement::BeNull,
        },
        only_over_tls("client_certificate"),
        only_over_tls("tls_verify"),
        only_over_tls("tls_verify_depth"),
        only_over_tls("ca_certificates"),
    ],
};

const fn only_over_tls(field: &'static str) -> EntityCheck {
    EntityCheck::When {
        field: "protocol",
        is: FieldTest::NotOneOf(&["https", "tls"]),
        then: field,
        must: Requirement::BeNull,
    }
}

/// Replaces `url` by the fields that it stands for. Whatever in it cannot be read becomes a path, about which
/// there will be a complaint.
pub fn expand_url(service: &mut RawFields<'_>) {
    if !service.get("url").is_some_and(Value::is_string) {
        return;
    }
    let url = service.remove("url");
    let Some(url) = url.as_deref().and_then(Value::as_str) else {
        return;
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        service.insert("path", url.into());
        return;
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => (&rest[..slash], Some(&rest[slash..])),
        None => (rest, None),
    };
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match text::split_port(authority) {
        Ok((host, port)) => (host, port.map(u64::from)),
        Err(_) => (authority, None),
    };
    let port = port.or(match scheme {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    });
    service.insert("protocol", scheme.into());
    service.insert("host", host.into());
    service.insert("path", path.map_or(Value::Null, Value::from));
    if let Some(port) = port {
        service.insert("port", port.into());
    }
}

/// A service with its defaults.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Service {
    pub id: Uuid,
    pub created_at: Option<f64>,
    pub updated_at: Option<f64>,
    pub name: Option<String>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub tags: Vec<String>,
    pub retries: Option<u32>,
    pub protocol: String,
    pub host: String,
    pub port: u16,
    pub path: Option<String>,
    pub connect_timeout: Option<u64>,
    pub write_timeout: Option<u64>,
    pub read_timeout: Option<u64>,
    pub client_certificate: Option<Uuid>,
    pub tls_verify: Option<bool>,
    pub tls_verify_depth: Option<u64>,
    pub ca_certificates: Option<Vec<Uuid>>,
    pub enabled: bool,
}
