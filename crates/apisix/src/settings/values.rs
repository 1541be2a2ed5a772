//! The values of settings, each as it is written; `None` if it is something else.

use super::{CacheDisk, CacheZone, Keys, units};
use crate::admin::{Key, Role};
use ipnet::IpNet;
use serde_json::Value;

/// Keys that secrets are encrypted with.
pub fn keyring(value: &Value) -> Option<Keys> {
    let keys: Vec<String> = match value {
        Value::Array(keys) => keys
            .iter()
            .map(|key| key.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        key => vec![key.as_str()?.to_owned()],
    };
    keys.iter()
        .all(|key| matches!(key.len(), 16 | 32))
        .then_some(Keys(keys))
}

/// Keys of the Admin API.
pub fn admin_keys(value: &Value) -> Option<Vec<Key>> {
    let key = |value: &Value| {
        let role = match value.get("role")?.as_str()? {
            "admin" => Role::Admin,
            "viewer" => Role::Viewer,
            _ => return None,
        };
        // YAML takes a key of digits for a number.
        let key = match value.get("key") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(key)) => key.clone(),
            Some(Value::Number(key)) => key.to_string(),
            Some(_) => return None,
        };
        Some(Key { key, role })
    };
    match value {
        // That is how APISIX's own file says that there are none.
        Value::String(text) if text.is_empty() => Some(Vec::new()),
        keys => keys.as_array()?.iter().map(key).collect(),
    }
}

/// The port of the first of some addresses.
pub fn first_port(listen: &Value) -> Option<Option<u16>> {
    let port = |value: &Value| u16::try_from(value.as_u64()?).ok();
    let first = listen.as_array()?.first();
    Some(first.and_then(|first| port(first).or_else(|| port(first.get("port")?))))
}

/// Addresses and networks; those of Unix sockets are none here.
pub fn addresses(value: &Value) -> Option<Vec<IpNet>> {
    let texts = value.as_array()?.iter().map(Value::as_str);
    let texts = texts.filter(|text| text.is_none_or(|text| !text.starts_with("unix:")));
    texts
        .map(|text| {
            let text = text?;
            let network = text.parse().ok();
            network.or_else(|| {
                text.parse()
                    .ok()
                    .map(|address: std::net::IpAddr| IpNet::from(address))
            })
        })
        .collect()
}

/// The name of a header.
pub fn header_name(value: &Value) -> Option<String> {
    let name = value.as_str()?;
    weir_plugin::headers::is_name(name.as_bytes()).then(|| name.to_owned())
}

/// A zone for responses.
///
/// # Errors
/// The field that is wrong, and what is expected there.
pub fn cache_zone(zone: &Value) -> Result<CacheZone, (&'static str, &'static str)> {
    let size = |field: &'static str| match zone.get(field) {
        None => Ok(None),
        Some(value) => units::bytes(value)
            .map(Some)
            .ok_or((field, "a size, such as 50m")),
    };
    let name = zone.get("name").and_then(Value::as_str);
    let memory = size("memory_size")?.unwrap_or(50 << 20);
    let path = zone.get("disk_path").and_then(Value::as_str);
    let disk_size = size("disk_size")?;
    if path.is_some_and(|path| path.is_empty() || path.contains('\0')) {
        return Err(("disk_path", "a folder"));
    }
    Ok(CacheZone {
        name: name.ok_or(("name", "a name"))?.to_owned(),
        memory_bytes: memory.max(65_536),
        // As in APISIX, a zone is on a disk if both are given.
        disk: path.zip(disk_size).map(|(path, bytes)| CacheDisk {
            path: Some(path.to_owned()),
            bytes: bytes.max(1 << 20),
        }),
    })
}

/// A path without anything that would have to be escaped.
pub fn export_uri(value: &Value) -> Option<String> {
    let path = value.as_str()?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/_-.".contains(byte);
    let is_good = path.starts_with('/') && path.len() <= 1024 && path.as_bytes().iter().all(is_plain);
    is_good.then(|| path.to_owned())
}

/// A possible prefix of the name of a metric.
pub fn metric_prefix(value: &Value) -> Option<String> {
    let prefix = value.as_str()?;
    let is_good = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ':';
    let is_name = prefix.chars().all(is_good) && !prefix.starts_with(|it: char| it.is_ascii_digit());
    is_name.then(|| prefix.to_owned())
}

/// Upper bounds, ascending.
pub fn buckets(value: &Value) -> Option<Vec<u32>> {
    let bounds = value.as_array()?.iter();
    let bounds: Vec<u32> = bounds
        .map(|bound| u32::try_from(bound.as_u64()?).ok())
        .collect::<Option<_>>()?;
    let is_good = bounds.is_sorted_by(|one, next| one < next) && bounds.len() <= 64;
    is_good.then_some(bounds)
}

/// Name and text of labels, each a map of one.
pub fn extra_labels(value: &Value) -> Option<Vec<(String, String)>> {
    let labels = match value {
        Value::Null => return Some(Vec::new()),
        labels => labels.as_array()?,
    };
    let mut found = Vec::new();
    for label in labels {
        let (name, variable) = label.as_object()?.iter().next()?;
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let is_name = !name.is_empty() && name.chars().all(is_part) && !name.as_bytes()[0].is_ascii_digit();
        let variable = variable.as_str()?.strip_prefix('$').filter(|_| is_name)?;
        found.push((name.clone(), format!("${{{variable}}}")));
    }
    Some(found)
}

/// The name of a gateway.
pub fn node_id(value: &Value) -> Option<String> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    // YAML takes an id of digits for a number.
    let id = match value {
        Value::String(text) => text.clone(),
        other => other.as_u64()?.to_string(),
    };
    ((1..=64).contains(&id.len()) && id.chars().all(is_good)).then_some(id)
}

/// The longest body with a query: a number, or text with one in it.
pub fn graphql_bytes(value: &Value) -> Option<usize> {
    let bytes = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_u64()?,
    };
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=64 << 20).contains(bytes))
}
