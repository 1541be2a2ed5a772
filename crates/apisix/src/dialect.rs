//! APISIX's dialect, as the program has it in its list.

use crate::name::NAME;
use crate::secrets::Vaults;
use crate::{ApisixErrorRenderer, IncrementalModel, Options, admin, metrics};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::plugin_fields::FieldTable;
use weir_dialect::{
    AccessError, AdminAccess, AdminContext, AdminOpening, Dialect, DialectName, Exposition, FileForm,
    KeyRole, NodeMetrics, PreparedText, Purpose, RefusedReply, SecretSyntax,
};
use weir_model::overview::{Overview, Row};
use weir_model::{Diagnostic, Model};
use weir_plugin::error_renderer::ErrorRenderer;

/// APISIX's dialect.
#[derive(Clone, Default)]
pub struct ApisixDialect {
    /// How documents are translated, with APISIX's `config.yaml`.
    pub options: Options,
    /// Keys of the Admin API in addition to those of `config.yaml`.
    pub keys: Vec<(String, KeyRole)>,
    /// The notes about `config.yaml`.
    pub warnings: Vec<String>,
}

/// Keys are secrets.
impl std::fmt::Debug for ApisixDialect {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ApisixDialect")
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

impl Dialect for ApisixDialect {
    fn name(&self) -> DialectName {
        NAME
    }

    fn title(&self) -> &'static str {
        "APISIX"
    }

    fn file_form(&self) -> FileForm {
        FileForm {
            name: "apisix.yaml",
            marks: &[],
            may_be_several: false,
            refuses_repeated_keys: false,
            serves_the_rest: true,
            has_admin: true,
            opens_admin: false,
        }
    }

    fn prepare<'t>(&self, text: &'t str, purpose: &Purpose<'_>) -> Result<PreparedText<'t>, Diagnostic> {
        let (text, unset) = match purpose.placeholder {
            None => (crate::prepare(text, purpose.environment)?, Vec::new()),
            Some(placeholder) => crate::prepare_for_look(text, purpose.environment, placeholder)?,
        };
        Ok(PreparedText {
            text: Cow::Owned(text),
            unset,
        })
    }

    fn translate(&self, document: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
        crate::translate(document, &self.options)
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn prefix(&self) -> &'static str {
        "apisix/"
    }

    fn incremental_model(&self) -> Box<dyn weir_dialect::IncrementalModel> {
        Box::new(IncrementalModel::new(self.options))
    }

    fn end_of(&self, _key: &str, value: &[u8]) -> Option<SystemTime> {
        crate::end_of(value)
    }

    fn asks_for_other_routes(&self) -> bool {
        true
    }

    /// It decodes paths once.
    fn undecoded_slash(&self) -> Option<&'static str> {
        Some("%252F")
    }

    fn error_renderer(&self) -> Arc<dyn ErrorRenderer> {
        Arc::new(ApisixErrorRenderer::new(self.options.settings))
    }

    fn secret_syntax(&self) -> Option<Box<dyn SecretSyntax>> {
        Some(Box::new(Vaults::default()))
    }

    fn admin_access(&self) -> &dyn AdminAccess {
        self
    }

    fn open_admin(&self, context: AdminContext) -> Option<AdminOpening> {
        Some(admin::open(self, context))
    }

    fn expositions(&self) -> Vec<Exposition> {
        vec![
            Exposition {
                name: metrics::EXPOSITION,
                path: Some(&self.options.settings.prometheus.export_uri),
            },
            Exposition {
                name: metrics::STATUS_EXPOSITION,
                path: None,
            },
        ]
    }

    fn write_node_metrics(&self, exposition: &str, node: &NodeMetrics, out: &mut String) {
        metrics::write(exposition, self.options.settings, node, out);
    }

    fn overview(&self, key: &str, value: &Value) -> Overview {
        crate::overview::overview(key, value)
    }

    fn overview_of_file(&self, document: &Value) -> Overview {
        crate::overview::overview_of_file(document)
    }

    fn upstream_names(&self, _row: &Row, id: &str) -> Vec<String> {
        vec![format!("upstreams/{id}")]
    }

    fn plugin_names(&self) -> Vec<(&'static str, &'static str)> {
        crate::spellings().collect()
    }

    fn plugin_table(&self) -> &'static [weir_dialect::PluginName] {
        crate::plugins::NAMES
    }

    fn plugin_schemas(&self, name: &str) -> Option<Value> {
        serde_json::to_value(crate::plugin_schemas(name)?).ok()
    }

    fn plugin_fields(&self, name: &str) -> Vec<FieldTable> {
        admin::plugin_fields(name)
    }
}

impl AdminAccess for ApisixDialect {
    fn token(&self, query: &str, header: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let of_query = query.split('&').find_map(|pair| pair.strip_prefix("api_key="));
        let of_cookie = || {
            let cookies = header("cookie")?;
            let mut cookies = cookies.split(';').map(str::trim);
            cookies
                .find_map(|cookie| cookie.strip_prefix("x_api_key="))
                .map(str::to_owned)
        };
        of_query
            .map(str::to_owned)
            .or_else(|| header("x-api-key"))
            .or_else(|| header("x_api_key"))
            .or_else(of_cookie)
    }

    /// APISIX shows its version to everybody; its client asks without a key.
    fn is_public(&self, method: &str, path: &str) -> bool {
        method == "HEAD" && path == "/apisix/admin"
    }

    /// The control API wants no key in the original, which listens on loopback only.
    fn is_status(&self, method: &str, path: &str) -> bool {
        method == "GET" && path.starts_with("/v1/")
    }

    fn stock_keys(&self) -> &'static [(&'static str, KeyRole)] {
        &admin::STOCK_KEYS
    }

    fn keys(&self) -> Vec<(String, KeyRole)> {
        let configured = self.options.settings.admin.keys.iter();
        let configured = configured.map(|it| (it.key.clone(), it.role));
        self.keys.iter().cloned().chain(configured).collect()
    }

    fn is_open(&self) -> bool {
        !self.options.settings.admin.requires_key
    }

    fn refuse(&self, refused: &AccessError) -> RefusedReply {
        let (status, description) = match refused {
            AccessError::NoToken => (401, "missing apikey"),
            AccessError::WrongToken => (401, "wrong apikey"),
            AccessError::Forbidden { .. } => (401, "invalid method for role viewer"),
            other => (403, other.hint().unwrap_or_default()),
        };
        let body = json!({ "error_msg": "failed to check token", "description": description });
        RefusedReply {
            status,
            content_type: "application/json",
            body: format!("{body}\n"),
            // Clients read the version off it, whatever the answer is.
            headers: vec![("server", crate::errors::server(self.options.settings))],
        }
    }
}
