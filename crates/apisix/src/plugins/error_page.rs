//! `error-page`: `error-page` of the catalogue. The pages stand in the plugin's metadata.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, boolean, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::error_page::{Config, Page};

/// The plugin `error-page`.
pub struct ErrorPage;

/// The pages that there may be: field, status and the words of the default.
const PAGES: [(&str, u16, &str); 4] = [
    ("error_404", 404, "404 Not Found"),
    ("error_500", 500, "500 Internal Server Error"),
    ("error_502", 502, "502 Bad Gateway"),
    ("error_503", 503, "503 Service Unavailable"),
];

#[derive(Deserialize)]
struct PageOptions {
    body: String,
    content_type: String,
}

impl PluginAdapter for ErrorPage {
    fn name(&self) -> &'static str {
        "error-page"
    }

    fn priority(&self) -> i64 {
        450
    }

    fn phases(&self) -> Phases {
        Phases {
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| object([("_meta", meta::shape())]));
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let page = |words: &str| {
                let body = format!(
                    "<!doctype html>\n<html>\n<head><title>{words}</title></head>\n\
                     <body>\n<h1>{words}</h1>\n</body>\n</html>\n"
                );
                object([
                    ("body", text().or(body)),
                    ("content_type", text().or("text/html")),
                ])
            };
            let mut shape = object([("enable", boolean().or(false))]);
            for (field, _, words) in PAGES {
                shape = shape.field(field, page(words));
            }
            shape
        });
        Some(&SHAPE)
    }

    fn plugin(&self) -> &'static str {
        "error-page"
    }

    fn translate(
        &self,
        _: &Value,
        context: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let nothing = Map::new();
        let metadata = context.metadata.get(self.name()).and_then(Value::as_object);
        let metadata = metadata.filter(|it| it.get("enable") == Some(&Value::Bool(true)));
        let metadata = metadata.unwrap_or(&nothing);
        let mut pages = BTreeMap::new();
        for (field, status, _) in PAGES {
            if let Some(page) = metadata.get(field) {
                let PageOptions { body, content_type } = read(page)?;
                pages.insert(status, Page { content_type, body });
            }
        }
        serde_json::to_value(Config { pages })
    }
}
