//! `redirect`: `redirect` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, check_regex, meta, read};
use crate::schema::{Schema, array, boolean, having, integer, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::redirect::{Config, Replacement};

/// The parts of an address, of which it has at least one: a variable, or anything else but backslashes.
const PARTS: &str = r"(\\\$[0-9a-zA-Z_]+)|\$\{([0-9a-zA-Z_]+)\}|\$([0-9a-zA-Z_]+)|(\$|[^$\\]+)";

/// The plugin `redirect`.
pub struct Redirect;

#[derive(Deserialize)]
struct Options {
    uri: Option<String>,
    regex_uri: Option<Vec<String>>,
    #[serde(default)]
    http_to_https: bool,
    ret_code: u64,
    encode_uri: bool,
    append_query_string: bool,
}

impl PluginAdapter for Redirect {
    fn name(&self) -> &'static str {
        "redirect"
    }

    fn priority(&self) -> i64 {
        900
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("ret_code", integer().at_least(200).or(302)),
                ("uri", text().longer(2).pattern(PARTS)),
                ("regex_uri", array(text()).min_items(2).max_items(2)),
                ("http_to_https", boolean()),
                ("encode_uri", boolean().or(false)),
                ("append_query_string", boolean().or(false)),
                ("_meta", meta::shape()),
            ])
            .one_of([having(["uri"]), having(["regex_uri"]), having(["http_to_https"])])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        if let Some(Value::Array(pair)) = config.get("regex_uri") {
            let part = |index: usize| pair.get(index).and_then(Value::as_str).unwrap_or_default();
            if check_regex(part(0)) == Err(None) {
                return Err(format!("invalid regex_uri({}, {})", part(0), part(1)));
            }
        }
        let is_on = |field: &str| config.get(field) == Some(&Value::Bool(true));
        if is_on("http_to_https") && is_on("append_query_string") {
            return Err(
                "only one of `http_to_https` and `append_query_string` can be configured.".to_owned(),
            );
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "redirect"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let pattern = options.regex_uri.map(|pair| {
            let mut pair = pair.into_iter();
            Replacement {
                pattern: pair.next().unwrap_or_default(),
                replacement: pair.next().unwrap_or_default(),
            }
        });
        if let Some(Err(Some(what))) = pattern.as_ref().map(|pattern| check_regex(&pattern.pattern)) {
            notes.not_available("regex_uri", what);
        }
        serde_json::to_value(Config {
            location: options.uri,
            pattern,
            to_https: options.http_to_https,
            // The header of peers that are not trusted was replaced before.
            trust_forwarded_proto: options.http_to_https,
            https_port: context.settings.https_port.filter(|_| options.http_to_https),
            append_query: options.append_query_string,
            escape: options.encode_uri,
            status: super::uri_blocker::answerable(options.ret_code),
            ..Config::default()
        })
    }
}
