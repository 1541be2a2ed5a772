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

/// Replaces `url` by the fields that it stands for. What of it names nothing of a service is left out: user, query,
/// fragment, and parameters of the path.
pub fn expand_url(service: &mut RawFields<'_>) {
    if !service.get("url").is_some_and(Value::is_string) {
        return;
    }
    let url = service.remove("url");
    let Some(url) = url.as_deref().and_then(Value::as_str) else {
        return;
    };
    let UrlParts {
        scheme,
        host,
        port,
        path,
    } = UrlParts::of(url);
    let number = port.and_then(|port| port.parse::<u64>().ok());
    let protocol = scheme.unwrap_or(match number {
        Some(443) => "https",
        _ => "http",
    });
    service.insert("protocol", protocol.into());
    service.insert("host", host.map_or(Value::Null, Value::from));
    service.insert("path", path.map_or(Value::Null, Value::from));
    let port = match (number, port) {
        (Some(number), _) => number.into(),
        // There will be a complaint about it.
        (None, Some(text)) => text.into(),
        (None, None) if protocol == "https" => 443.into(),
        (None, None) => 80.into(),
    };
    service.insert("port", port);
}

/// The parts of a URL that a service has fields for. Whatever cannot be read becomes a path, about which there will be a
/// complaint.
#[derive(Debug, PartialEq, Eq)]
struct UrlParts<'u> {
    scheme: Option<&'u str>,
    /// An IPv6 address without its brackets.
    host: Option<&'u str>,
    port: Option<&'u str>,
    path: Option<&'u str>,
}

impl<'u> UrlParts<'u> {
    fn of(url: &'u str) -> Self {
        let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_scheme = |text: &str| {
            text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_of_scheme)
        };
        let named = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme));
        let (scheme, rest) = match named {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, url),
        };
        let (authority, rest) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
            None => ("", rest),
        };
        let path = &rest[..rest.find(['#', '?', ';']).unwrap_or(rest.len())];
        let authority = authority.split_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let given = |text: &'u str| (!text.is_empty()).then_some(text);
        Self {
            scheme,
            host: given(inner.filter(|inner| !inner.is_empty()).unwrap_or(host)),
            port,
            path: given(path),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_apart_as_in_the_original() {
        for (url, scheme, host, port, path) in [
            ("http://h", Some("http"), Some("h"), None, None),
            ("http://h/base?z=1", Some("http"), Some("h"), None, Some("/base")),
            ("http://h/base#f?z", Some("http"), Some("h"), None, Some("/base")),
            (
                "http://h/base;p=1/x",
                Some("http"),
                Some("h"),
                None,
                Some("/base"),
            ),
            ("http://h:81?z=1", Some("http"), Some("h"), Some("81"), None),
            (
                "https://u:p@h:8443/x",
                Some("https"),
                Some("h"),
                Some("8443"),
                Some("/x"),
            ),
            ("//a.b:443/x", None, Some("a.b"), Some("443"), Some("/x")),
            (
                "http://[::1]:81/x",
                Some("http"),
                Some("::1"),
                Some("81"),
                Some("/x"),
            ),
            ("http://[::1]", Some("http"), Some("::1"), None, None),
            ("http://h:x", Some("http"), Some("h"), Some("x"), None),
            ("h:80/x", Some("h"), None, None, Some("80/x")),
            ("/x", None, None, None, Some("/x")),
            ("a b", None, None, None, Some("a b")),
        ] {
            let wanted = UrlParts {
                scheme,
                host,
                port,
                path,
            };
            assert_eq!(UrlParts::of(url), wanted, "{url}");
        }
    }
}
