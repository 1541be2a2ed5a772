//! `cors`: APISIX's fields and defaults for `cors` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, check_regex, meta, read};
use crate::schema::{Schema, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::cors::{Config, DisallowedOrigin, HeadersOn, Preflight};

/// The methods that `**` stands for.
const ALL_METHODS: &str = "GET,POST,PUT,DELETE,PATCH,HEAD,OPTIONS,CONNECT,TRACE";
const ORIGINS: &str = r"^(\*|\*\*|null|\w+://[^,]+(,\w+://[^,]+)*)$";

/// The plugin `cors`.
pub struct Cors;

#[derive(Deserialize)]
struct Options {
    allow_origins: String,
    allow_methods: String,
    allow_headers: String,
    expose_headers: Option<String>,
    max_age: i64,
    allow_credential: bool,
    allow_origins_by_regex: Option<Vec<String>>,
    allow_origins_by_metadata: Option<Vec<String>>,
    timing_allow_origins: Option<String>,
    timing_allow_origins_by_regex: Option<Vec<String>>,
}

impl PluginAdapter for Cors {
    fn name(&self) -> &'static str {
        "cors"
    }

    fn priority(&self) -> i64 {
        4000
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let list = || array(text().length(1, 4096)).min_items(1).unique();
            object([
                ("allow_origins", text().pattern(ORIGINS).or("*")),
                ("allow_methods", text().or("*")),
                ("allow_headers", text().or("*")),
                ("expose_headers", text()),
                ("max_age", integer().or(5)),
                ("allow_credential", boolean().or(false)),
                ("allow_origins_by_regex", list()),
                ("allow_origins_by_metadata", list()),
                ("timing_allow_origins", text().pattern(ORIGINS)),
                ("timing_allow_origins_by_regex", list()),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([(
                "allow_origins",
                object([]).each_field("", text().pattern(ORIGINS)),
            )])
        });
        Some(&SHAPE)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let is_any = |field: &&str| config.get(*field).and_then(Value::as_str) == Some("*");
        let open = [
            "allow_origins",
            "allow_methods",
            "allow_headers",
            "expose_headers",
            "timing_allow_origins",
        ];
        if config.get("allow_credential") == Some(&Value::Bool(true)) && open.iter().any(is_any) {
            return Err("you can not set '*' for other option when 'allow_credential' is true".to_owned());
        }
        for field in ["allow_origins_by_regex", "timing_allow_origins_by_regex"] {
            let patterns = config.get(field).and_then(Value::as_array).into_iter().flatten();
            for pattern in patterns.filter_map(Value::as_str) {
                if check_regex(pattern) == Err(None) {
                    return Err(format!("pcre2_compile() failed in \"{pattern}\""));
                }
            }
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "cors"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        for patterns in [
            &options.allow_origins_by_regex,
            &options.timing_allow_origins_by_regex,
        ] {
            for pattern in patterns.iter().flatten() {
                if let Err(Some(what)) = check_regex(pattern) {
                    notes.not_available("allow_origins_by_regex", what);
                }
            }
        }
        let (origins, origin_patterns) = options.origins(context.metadata);
        let timing_origins = match (
            &options.timing_allow_origins_by_regex,
            &options.timing_allow_origins,
        ) {
            (None, Some(origins)) => list(origins),
            _ => Vec::new(),
        };
        let allows_every_origin = origins.iter().any(|origin| origin.starts_with('*'));
        serde_json::to_value(Config {
            origins,
            origin_patterns,
            methods: match options.allow_methods.as_str() {
                "**" => list(ALL_METHODS),
                methods => list(methods),
            },
            headers: match options.allow_headers.as_str() {
                "**" => Vec::new(),
                headers => list(headers),
            },
            exposed_headers: options.expose_headers.as_deref().map(list).unwrap_or_default(),
            credentials: options.allow_credential,
            credentials_for_any_origin: options.allow_credential && allows_every_origin,
            max_age_seconds: Some(options.max_age),
            preflight: Preflight::AnswerOptions,
            preflight_status: 200,
            preflight_content_type: Some("text/plain; charset=utf-8".to_owned()),
            headers_on: HeadersOn::All,
            refused: DisallowedOrigin::Untouched,
            vary: options.allow_origins != "*",
            timing_origins,
            timing_origin_patterns: options.timing_allow_origins_by_regex.unwrap_or_default(),
            ..Config::default()
        })
    }
}

impl Options {
    /// Origins and patterns for origins that may call. Patterns take the place of `allow_origins`; the metadata's
    /// origins do so if `allow_origins` is `*`, and are added to it if it is not.
    fn origins(&self, metadata: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
        let (mut origins, mut patterns) = match &self.allow_origins_by_regex {
            Some(patterns) => (Vec::new(), patterns.clone()),
            None => (list(&self.allow_origins), Vec::new()),
        };
        let Some(keys) = &self.allow_origins_by_metadata else {
            return (origins, patterns);
        };
        let by_key = metadata.get("cors").and_then(|cors| cors.get("allow_origins"));
        let named = keys
            .iter()
            .filter_map(|key| by_key?.get(key)?.as_str())
            .flat_map(list);
        if self.allow_origins == "*" {
            return (named.collect(), Vec::new());
        }
        for origin in named {
            match origin.as_str() {
                // Beside a list, every origin is answered with itself, and a call without one is of none.
                "*" | "**" => patterns.push(String::new()),
                _ => origins.push(origin),
            }
        }
        (origins, patterns)
    }
}

fn list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(',').map(str::to_owned).collect()
}
