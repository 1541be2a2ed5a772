//! `proxy-rewrite`: `request-rewrite` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, check_regex, headers, meta, read};
use crate::schema::{Schema, array, boolean, number, object, one_of, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::request_rewrite::{Config, PathReplacement};

/// The plugin `proxy-rewrite`.
pub struct ProxyRewrite;

#[derive(Deserialize)]
struct Options {
    uri: Option<String>,
    #[serde(default)]
    regex_uri: Vec<String>,
    method: Option<String>,
    host: Option<String>,
    use_real_request_uri_unsafe: bool,
    #[serde(default)]
    headers: Map<String, Value>,
}

impl PluginAdapter for ProxyRewrite {
    fn name(&self) -> &'static str {
        "proxy-rewrite"
    }

    fn priority(&self) -> i64 {
        1008
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                (
                    "method",
                    text().options([
                        "POST", "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "OPTIONS", "PROPFIND", "GET",
                        "LOCK", "UNLOCK", "PATCH", "TRACE", "HEAD",
                    ]),
                ),
                ("uri", text().length(1, 4096).pattern(r"^\/.*")),
                ("regex_uri", array(text()).min_items(2)),
                ("host", text().pattern(r"^[0-9a-zA-Z-.]+(:\d{1,5})?$")),
                ("headers", header_changes()),
                ("use_real_request_uri_unsafe", boolean().or(false)),
                ("_meta", meta::shape()),
            ])
            .min_fields(1)
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        if let Some(Value::Array(parts)) = config.get("regex_uri") {
            if parts.len() % 2 != 0 {
                return Err("The length of regex_uri should be an even number".to_owned());
            }
            for pair in parts.chunks(2) {
                let text = |index: usize| pair.get(index).and_then(Value::as_str).unwrap_or_default();
                if check_regex(text(0)) == Err(None) || !is_replacement(text(1)) {
                    return Err(format!("invalid regex_uri({}, {})", text(0), text(1)));
                }
            }
        }
        match config.get("headers") {
            Some(Value::Object(map)) if !headers::is_by_operation(map) => check_plain_headers(map),
            _ => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "request-rewrite"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        for pattern in options.regex_uri.iter().step_by(2) {
            if let Err(Some(what)) = check_regex(pattern) {
                notes.not_available("regex_uri", what);
            }
        }
        let path_patterns: Vec<PathReplacement> = options
            .regex_uri
            .chunks_exact(2)
            .map(|pair| PathReplacement {
                pattern: pair[0].clone(),
                replacement: pair[1].clone(),
            })
            .collect();
        serde_json::to_value(Config {
            path: options.uri,
            path_patterns,
            unsafe_original_target: options.use_real_request_uri_unsafe,
            method: options.method,
            host_yields: options.host.is_some(),
            host: options.host,
            headers: headers::steps(&options.headers, added),
            decoded_paths: true,
            ..Config::default()
        })
    }
}

/// Whether every `$` in a replacement stands for a group, or for itself as `$$`.
fn is_replacement(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('$') {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let inside = behind.strip_prefix('{').and_then(|behind| behind.split_once('}'));
        rest = match (behind.bytes().next(), inside) {
            (Some(b'$' | b'0'..=b'9'), _) => &behind[1..],
            (_, Some((group, behind))) if is_digits(group) => behind,
            _ => return false,
        };
    }
    true
}

fn header_changes() -> Schema {
    let scalar = || one_of([text(), number()]);
    let values = || one_of([text(), number(), array(scalar()).min_items(1)]);
    let by_name = || object([]).each_field("^[^:]+$", values()).min_fields(1);
    let operations = object([
        ("add", by_name()),
        ("set", by_name()),
        ("remove", array(text().pattern("^[^:]+$")).min_items(1)),
    ])
    .closed()
    .min_fields(1);
    let plain = object([]).each_field("^[^:]+$", scalar()).min_fields(1);
    one_of([operations, plain])
}

fn added(value: &Value) -> Vec<(String, String)> {
    let headers = value.as_object().into_iter().flatten();
    headers
        .flat_map(|(name, value)| {
            headers::texts(value)
                .into_iter()
                .map(move |text| (name.clone(), text))
        })
        .collect()
}

fn check_plain_headers(headers: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in headers {
        if name.is_empty() {
            return Err("invalid field length in header".to_owned());
        }
        if !weir_plugin::headers::is_name(name.as_bytes()) {
            return Err("invalid field character in header".to_owned());
        }
        if value
            .as_str()
            .is_some_and(|value| value.contains(['\r', '\n', '\0']))
        {
            return Err("invalid value character in header".to_owned());
        }
    }
    Ok(())
}
