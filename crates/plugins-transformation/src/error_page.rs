//! `error-page`: custom pages instead of the gateway's own errors. Errors of services are not changed.
//!
//! ```yaml
//! pages:
//!   404: {content_type: text/html, body: "<h1>Nothing here</h1>"}
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_value;
use weir_plugin::{BuildContext, Exchange, Filter, Phases, Plugin, parse_config};

/// Configuration of `error-page`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The pages by status, 400 to 599.
    pub pages: BTreeMap<u16, Page>,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Its `Content-Type`.
    pub content_type: String,
    /// The page itself.
    pub body: String,
}

/// The plugin `error-page`.
pub struct ErrorPage;

impl Plugin for ErrorPage {
    fn name(&self) -> &'static str {
        "error-page"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        for (status, page) in &config.pages {
            let place = DocPath::root().field("pages").field(status.to_string());
            if !(400..=599).contains(status) {
                faults.push(Diagnostic::error(
                    place.clone(),
                    "expected a status from 400 to 599",
                ));
            }
            if !is_value(page.content_type.as_bytes()) {
                faults.push(Diagnostic::error(
                    place.field("content_type"),
                    "expected a media type",
                ));
            }
        }
        match faults.is_empty() {
            true => Ok(Arc::new(PageFilter(config.pages))),
            false => Err(faults),
        }
    }
}

/// An instance of `error-page`.
struct PageFilter(BTreeMap<u16, Page>);

impl Filter for PageFilter {
    fn phases(&self) -> Phases {
        match self.0.is_empty() {
            true => Phases::default(),
            false => Phases::RESPONSE,
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let response = &mut exchange.response;
        if response.is_gateway
            && let Some(page) = self.0.get(&response.status)
        {
            response
                .headers
                .set(b"Content-Type", page.content_type.as_bytes());
            response.replaced_body = Some(page.body.as_bytes().to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn own_errors_get_pages() {
        let filter = build(&ErrorPage, &example(include_str!("error_page.rs"))).expect("valid");
        for (status, is_gateway, expected) in [(404, true, true), (404, false, false), (500, true, false)] {
            let mut exchange = exchange();
            exchange.response.status = status;
            exchange.response.is_gateway = is_gateway;
            filter.on_response(&mut exchange);
            assert_eq!(exchange.response.replaced_body.is_some(), expected, "{status}");
            assert_eq!(lines(&exchange.response.headers).len(), usize::from(expected));
        }
        let empty = build(&ErrorPage, &empty()).expect("valid");
        assert_eq!(empty.phases(), Phases::default());
    }

    #[test]
    fn configurations_are_checked() {
        let config = json!({"pages": {"200": {"content_type": "a\nb", "body": ""}}});
        assert_eq!(
            refused_at(&ErrorPage, &config),
            ["pages.200", "pages.200.content_type"]
        );
    }
}
