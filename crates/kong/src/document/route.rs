//! Routes: fields, the checks that depend on their protocols, and the value that translation reads.

use super::common::{CREATED_AT, ID, NAME, PORT, PROTOCOLS, TAGS, UPDATED_AT};
use super::route_expression::check_expression;
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, RawFields, Record, text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::LazyLock;
use uuid::Uuid;

/// The fields of a route.
pub static RECORD: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        UPDATED_AT,
        NAME,
        Field::new("protocols", Kind::Set(&Field::element(Kind::String)))
            .required()
            .or(Default::Texts(&["http", "https"]))
            .check(&[Check::Value(check_protocols)]),
        Field::new("https_redirect_status_code", Kind::Integer)
            .required()
            .or(Default::Integer(426))
            .check(&[Check::OneOfNumbers(&[426, 301, 302, 307, 308])]),
        Field::new("strip_path", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("preserve_host", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("request_buffering", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("response_buffering", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        TAGS,
        Field::new("service", Kind::Foreign("services")),
        Field::new(
            "snis",
            Kind::Set(&Field::element(Kind::String).check(&[Check::Text(text::sni)])),
        ),
        Field::new("sources", Kind::Set(&Field::element(Kind::Record(&ADDRESS)))),
        Field::new("destinations", Kind::Set(&Field::element(Kind::Record(&ADDRESS)))),
        Field::new(
            "methods",
            Kind::Set(&Field::element(Kind::String).check(&[Check::Text(text::method)])),
        ),
        Field::new(
            "hosts",
            Kind::Array(&Field::element(Kind::String).check(&[Check::Text(text::wildcard_host)])),
        ),
        Field::new(
            "paths",
            Kind::Array(&Field::element(Kind::String).check(&[Check::Text(text::route_path)])),
        ),
        Field::new(
            "headers",
            Kind::Map {
                keys: &Field::element(Kind::String).check(&[Check::Text(text::route_header_name)]),
                values: &Field::element(Kind::Array(
                    &Field::element(Kind::String).check(&[Check::Text(check_header_value)]),
                )),
            },
        ),
        Field::new("regex_priority", Kind::Integer).or(Default::Integer(0)),
        Field::new("path_handling", Kind::String)
            .or(Default::Text("v0"))
            .check(&[Check::OneOf(&["v0", "v1"])]),
    ],
    checks: &[
        EntityCheck::Test(check_server_names),
        EntityCheck::Fields(unfit_conditions),
        EntityCheck::Test(check_conditions),
        EntityCheck::Test(check_expression),
    ],
};

static ADDRESS: Record = Record {
    fields: &[
        Field::new("ip", Kind::String).check(&[Check::Text(check_network)]),
        Field::new("port", Kind::Integer).check(PORT),
    ],
    checks: &[EntityCheck::AtLeastOneOf(&["ip", "port"])],
};

fn check_network(text: &str) -> Result<(), String> {
    let is_network = text.parse::<ipnet::IpNet>().is_ok() || text.parse::<std::net::IpAddr>().is_ok();
    if is_network {
        Ok(())
    } else {
        Err(format!("invalid ip or cidr range: '{text}'"))
    }
}

/// A value that begins with `~*` is a regular expression.
fn check_header_value(value: &str) -> Result<(), String> {
    let Some(pattern) = value.strip_prefix("~*") else {
        return Ok(());
    };
    // It is matched in small letters, which may be another expression.
    for pattern in [pattern, &pattern.to_lowercase()] {
        text::check_regex(pattern).map_err(|error| {
            format!(
                "invalid regex: '{value}' ({})",
                text::regex_complaint(value, &error)
            )
        })?;
    }
    Ok(())
}

const PROTOCOL_SETS: [&[&str]; 4] = [
    &["http", "https"],
    &["tcp", "tls", "udp"],
    &["tls_passthrough"],
    &["grpc", "grpcs"],
];

fn check_protocols(value: &Value) -> Result<(), String> {
    let protocols: Vec<&str> = texts(Some(value)).collect();
    if protocols.is_empty() {
        return Err("unknown type: nil".to_owned());
    }
    if let Some(unknown) = protocols.iter().find(|it| !PROTOCOLS.contains(it)) {
        return Err(format!("unknown type: {unknown}"));
    }
    let is_used = |set: &&&[&str]| protocols.iter().any(|protocol| set.contains(protocol));
    let used = || PROTOCOL_SETS.iter().filter(is_used);
    if used().count() > 1 {
        let used: Vec<String> = used().map(|set| format!("('{}')", set.join("', '"))).collect();
        return Err(format!("these sets are mutually exclusive: {}", used.join(", ")));
    }
    Ok(())
}

/// Which protocols a route takes: the set that they are of, and whether any of them is over TLS.
fn protocols_of(route: &Fields) -> Option<(&'static [&'static str], bool)> {
    let protocols: Vec<&str> = texts(route.get("protocols")).collect();
    let set = PROTOCOL_SETS
        .iter()
        .find(|set| protocols.iter().any(|protocol| set.contains(protocol)))?;
    let is_tls = protocols
        .iter()
        .any(|it| matches!(*it, "grpcs" | "https" | "tls" | "tls_passthrough"));
    Some((set, is_tls))
}

fn has(route: &Fields, field: &str) -> bool {
    match route.get(field) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        _ => false,
    }
}

/// Server names are those of TLS.
fn check_server_names(route: &Fields) -> Result<(), String> {
    match protocols_of(route) {
        Some((_, false)) if has(route, "snis") => Err(
            "'snis' can only be set when 'protocols' is 'grpcs', 'https', 'tls' or 'tls_passthrough'"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// Which conditions a route must have depends on its protocols.
fn check_conditions(route: &Fields) -> Result<(), String> {
    let Some((set, is_tls)) = protocols_of(route) else {
        return Ok(());
    };
    let (needed, word): (&[&str], &str) = match set[0] {
        "http" if is_tls => (&["methods", "hosts", "headers", "paths", "snis"], "https"),
        "http" => (&["methods", "hosts", "headers", "paths"], "http"),
        "grpc" if is_tls => (&["hosts", "headers", "paths", "snis"], "grpcs"),
        "grpc" => (&["hosts", "headers", "paths"], "grpc"),
        "tls_passthrough" if has(route, "snis") => return Ok(()),
        "tls_passthrough" => return Err("must set snis when 'protocols' is 'tls_passthrough'".to_owned()),
        _ => (&["sources", "destinations", "snis"], "tcp', 'tls' or 'udp"),
    };
    if needed.iter().any(|field| has(route, field)) {
        return Ok(());
    }
    let needed = needed.join("', '");
    Err(format!("must set one of '{needed}' when 'protocols' is '{word}'"))
}

/// Which conditions a route must not have depends on its protocols.
fn unfit_conditions(route: &Fields) -> Vec<(&'static str, String)> {
    let Some((set, is_tls)) = protocols_of(route) else {
        return Vec::new();
    };
    let (unfit, word): (&[&'static str], &str) = match set[0] {
        "http" => (&["sources", "destinations"], "'http' or 'https'"),
        "grpc" => (&["methods", "sources", "destinations"], "'grpc' or 'grpcs'"),
        _ => (
            &["methods", "hosts", "paths", "headers"],
            "'tcp', 'tls', 'tls_passthrough' or 'udp'",
        ),
    };
    let mut unfit: Vec<&'static str> = unfit.iter().copied().filter(|field| has(route, field)).collect();
    if set[0] == "grpc" && route.get("strip_path") == Some(&Value::Bool(true)) {
        unfit.push("strip_path");
    }
    let message = |field| (field, format!("cannot set '{field}' when 'protocols' is {word}"));
    let mut complaints: Vec<(&'static str, String)> = unfit.into_iter().map(message).collect();
    if has(route, "snis") && !is_tls {
        complaints.push(("snis", "length must be 0".to_owned()));
    }
    complaints
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let items = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}

/// If the protocols say so, the default of `strip_path` is `false`.
pub fn fit_defaults(route: &mut RawFields<'_>) {
    let is_grpc = texts(route.get("protocols")).any(|protocol| protocol.starts_with("grpc"));
    if is_grpc && route.get("strip_path").is_none_or(Value::is_null) {
        route.insert("strip_path", false.into());
    }
}

/// Before format 3.0 a path was a regular expression when it had characters that plain paths do not need.
/// Marks such paths as format 3.0 does.
pub fn mark_regex_paths(route: &mut RawFields<'_>) {
    static PLAIN: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new("^[a-zA-Z0-9.\\-_~/%]*$").expect("invariant: a regular expression")
    });
    let Some(Value::Array(paths)) = route.get_mut("paths") else {
        return;
    };
    for path in paths {
        if let Value::String(text) = path
            && !PLAIN.is_match(text)
        {
            text.insert(0, '~');
        }
    }
}

/// An end of a session of a stream route.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Address {
    pub ip: Option<String>,
    pub port: Option<u16>,
}

/// A route with its defaults.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Route {
    pub id: Uuid,
    pub created_at: Option<f64>,
    pub updated_at: Option<f64>,
    pub name: Option<String>,
    pub protocols: Vec<String>,
    pub https_redirect_status_code: u16,
    pub strip_path: bool,
    pub preserve_host: bool,
    pub request_buffering: Option<bool>,
    pub response_buffering: Option<bool>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub tags: Vec<String>,
    pub service: Option<Uuid>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub snis: Vec<String>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub sources: Vec<Address>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub destinations: Vec<Address>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub methods: Vec<String>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub hosts: Vec<String>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub paths: Vec<String>,
    #[serde(default, deserialize_with = "super::or_default")]
    pub headers: Map<String, Value>,
    pub regex_priority: Option<i64>,
    pub path_handling: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_headers_are_checked_as_they_are_matched() {
        for (value, is_good) in [
            ("(", true),
            ("~*v[12]", true),
            ("~*(", false),
            ("~*(?P<v>b)", false),
        ] {
            assert_eq!(check_header_value(value).is_ok(), is_good, "{value}");
        }
    }
}
