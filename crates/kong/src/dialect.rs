//! Kong's dialect, as the program has it in its list.

use crate::secrets::Vaults;
use crate::{KongErrorRenderer, NAME, Options, admin, incremental, metrics};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::plugin_fields::{ConfigPart, FieldTable};
use weir_dialect::{
    AccessError, AdminAccess, AdminContext, AdminOpening, Dialect, DialectName, EVERYWHERE, Exposition,
    FileForm, IncrementalModel, NodeMetrics, RefusedReply, Scope, SecretSyntax, bearer,
};
use weir_model::diagnostic::PathStep;
use weir_model::overview::{Overview, Row};
use weir_model::{Diagnostic, Model};
use weir_plugin::error_renderer::ErrorRenderer;

/// The key at the top of a `kong.yml`.
const MARK: &str = "_format_version";

/// Whether this is a declarative document of Kong.
pub fn recognises(document: &Value) -> bool {
    document.get(MARK).is_some()
}

/// Kong's dialect.
#[derive(Debug, Clone, Copy, Default)]
pub struct KongDialect {
    /// How documents are translated.
    pub options: Options,
    /// Whether the Admin API has `/config` over a store, too. Over a file it always has.
    pub has_config: bool,
}

impl Dialect for KongDialect {
    fn name(&self) -> DialectName {
        NAME
    }

    fn title(&self) -> &'static str {
        "Kong"
    }

    fn file_form(&self) -> FileForm {
        FileForm {
            name: "kong.yml",
            marks: &[MARK],
            may_be_several: false,
            refuses_repeated_keys: false,
            serves_the_rest: false,
            has_admin: true,
            opens_admin: true,
        }
    }

    fn translate(&self, document: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
        crate::translate(document, &self.options)
    }

    fn locate(&self, document: &Value, found: Diagnostic) -> Result<Diagnostic, Diagnostic> {
        let is_plugin = found
            .path
            .0
            .iter()
            .any(|step| *step == PathStep::Field("plugins".into()));
        let path = is_plugin.then(|| crate::translate::place_of_plugin(document, &self.options, &found.path));
        match path.flatten() {
            Some(path) => Ok(Diagnostic { path, ..found }),
            None => Err(found),
        }
    }

    fn prefix(&self) -> &'static str {
        "kong/"
    }

    fn incremental_model(&self) -> Box<dyn IncrementalModel> {
        Box::new(incremental::IncrementalModel::new(self.options))
    }

    fn end_of(&self, key: &str, value: &[u8]) -> Option<SystemTime> {
        incremental::end_of(key, value)
    }

    // Its routes and certificates are of several workspaces, and what is compiled from them does not say which.
    fn workspace_for_others(&self) -> &'static str {
        EVERYWHERE
    }

    fn asks_for_other_routes(&self) -> bool {
        true
    }

    fn error_renderer(&self) -> Arc<dyn ErrorRenderer> {
        Arc::new(KongErrorRenderer)
    }

    fn secret_syntax(&self) -> Option<Box<dyn SecretSyntax>> {
        Some(Box::new(Vaults::default()))
    }

    fn vaults_of_file(&self, document: &Value) -> Vec<(String, Value)> {
        crate::secrets::of_file(document)
    }

    fn definition_folders(&self) -> &'static [&'static str] {
        &["/usr/local/kong/include"]
    }

    fn admin_access(&self) -> &dyn AdminAccess {
        self
    }

    fn open_admin(&self, context: AdminContext) -> Option<AdminOpening> {
        Some(admin::open(*self, context))
    }

    fn expositions(&self) -> Vec<Exposition> {
        vec![Exposition {
            name: metrics::EXPOSITION,
            path: None,
        }]
    }

    fn write_node_metrics(&self, _exposition: &str, node: &NodeMetrics, out: &mut String) {
        metrics::write(node, out);
    }

    fn overview(&self, key: &str, value: &Value) -> Overview {
        crate::overview::overview(key, value)
    }

    fn overview_of_file(&self, document: &Value) -> Overview {
        crate::overview::overview_of_file(document)
    }

    fn upstream_names(&self, row: &Row, _id: &str) -> Vec<String> {
        crate::overview::upstream_names(row)
    }

    fn plugin_names(&self) -> Vec<(&'static str, &'static str)> {
        let definitions = crate::plugins::DEFINITIONS.iter();
        definitions.map(|it| (it.name, it.catalogue_name)).collect()
    }

    fn plugin_table(&self) -> &'static [weir_dialect::PluginName] {
        crate::plugins::NAMES
    }

    fn plugin_schemas(&self, name: &str) -> Option<Value> {
        serde_json::to_value(crate::describe::plugin_config(name)?).ok()
    }

    fn plugin_fields(&self, name: &str) -> Vec<FieldTable> {
        vec![FieldTable {
            part: ConfigPart::Plugin,
            fields: crate::describe::plugin_fields(name),
        }]
    }
}

impl AdminAccess for KongDialect {
    fn scope(&self, path: &str) -> Scope {
        admin::scope(path)
    }

    fn recordable(&self, path: &str) -> String {
        admin::recordable(path)
    }

    fn token(&self, _query: &str, header: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        header("kong-admin-token").or_else(|| bearer(header))
    }

    fn refuse(&self, refused: &AccessError) -> RefusedReply {
        let (status, message) = match refused {
            AccessError::NoToken => (
                401,
                "Invalid credentials. Token or User credentials required".to_owned(),
            ),
            AccessError::WrongToken => (401, "Unauthorized".to_owned()),
            AccessError::Forbidden { who, is_write } => {
                let what = if *is_write { "write" } else { "read" };
                (
                    403,
                    format!("{who}, you do not have permissions to {what} this resource"),
                )
            }
            other => (403, other.hint().unwrap_or_default().to_owned()),
        };
        RefusedReply {
            status,
            content_type: "application/json; charset=utf-8",
            body: format!("{}\n", json!({ "message": message })),
            headers: Vec::new(),
        }
    }
}
