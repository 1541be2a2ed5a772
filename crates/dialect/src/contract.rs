//! The contract that each dialect keeps. It says what a dialect does, and knows none.

use crate::admin::{AdminContext, AdminOpening};
use crate::file::{FileForm, PreparedText, Purpose};
use crate::plugin_fields::FieldTable;
use crate::{
    AdminAccess, DEFAULT_WORKSPACE, DialectName, Exposition, IncrementalModel, NodeMetrics, PluginName,
    SecretSyntax,
};
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::SystemTime;
use weir_model::overview::{Overview, Row};
use weir_model::{Diagnostic, Model};
use weir_plugin::error_renderer::ErrorRenderer;

/// A configuration language, with everything that depends on it. What has a default need not be there.
pub trait Dialect: Debug + Send + Sync {
    /// Its name, which its routes carry.
    fn name(&self) -> DialectName;

    /// Its name for people, as its original writes it.
    fn title(&self) -> &'static str;

    /// How its files look.
    fn file_form(&self) -> FileForm;

    /// Turns the text of a file into a text that can be parsed as YAML, if there is a layer below YAML.
    ///
    /// # Errors
    /// That layer is invalid; the fault and its place.
    fn prepare<'t>(&self, text: &'t str, purpose: &Purpose<'_>) -> Result<PreparedText<'t>, Diagnostic> {
        let _unused = purpose;
        Ok(PreparedText::as_it_is(text))
    }

    /// Checks and translates a whole document. With the model come warnings, and resources that are left out.
    ///
    /// # Errors
    /// The document is refused; all that is wrong with it.
    fn translate(&self, document: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>>;

    /// Where a finding about the model is in the document that the model was translated from.
    ///
    /// # Errors
    /// The finding as it is: its place in the document cannot be found.
    fn locate(&self, document: &Value, found: Diagnostic) -> Result<Diagnostic, Diagnostic> {
        let _unused = document;
        Err(found)
    }

    /// What is to be said about the dialect's settings, each in a line.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the keys of its documents in a store begin with, with a `/` at the end.
    fn prefix(&self) -> &'static str;

    /// An empty reader of its documents in a store.
    fn incremental_model(&self) -> Box<dyn IncrementalModel>;

    /// When a document in a store goes by itself; `None`: it stays. The key is without the dialect's prefix.
    fn end_of(&self, key: &str, value: &[u8]) -> Option<SystemTime> {
        let _unused = (key, value);
        None
    }

    /// The workspace that its routes are of, for dialects that have workspaces.
    fn workspace(&self) -> &'static str {
        DEFAULT_WORKSPACE
    }

    /// The workspace that its routes and certificates count for when other dialects ask ([`crate::ForeignRoutes`]).
    fn workspace_for_others(&self) -> &'static str {
        self.workspace()
    }

    /// Whether its Admin API needs the routes of other dialects.
    fn asks_for_other_routes(&self) -> bool {
        false
    }

    /// How callers write a slash that its routes take for a part of a segment, and that a server may decode; `None`: its
    /// routes take no such paths.
    fn undecoded_slash(&self) -> Option<&'static str> {
        Some("%2F")
    }

    /// Puts refusals of its routes into words.
    fn error_renderer(&self) -> Arc<dyn ErrorRenderer>;

    /// How its documents refer to secrets that are kept elsewhere; `None`: in the ways of all dialects.
    fn secret_syntax(&self) -> Option<Box<dyn SecretSyntax>> {
        None
    }

    /// The documents of a file that describe vaults, each with the key that it would have in a store, without the dialect's
    /// prefix.
    fn vaults_of_file(&self, document: &Value) -> Vec<(String, Value)> {
        let _unused = document;
        Vec::new()
    }

    /// Folders in which the original looks for definitions that others import.
    fn definition_folders(&self) -> &'static [&'static str] {
        &[]
    }

    /// How clients of its Admin API show who they are, and how they are refused.
    fn admin_access(&self) -> &dyn AdminAccess;

    /// Opens its Admin API; `None`: it has none of its own.
    fn open_admin(&self, context: AdminContext) -> Option<AdminOpening> {
        let _unused = context;
        None
    }

    /// Its texts of metrics.
    fn expositions(&self) -> Vec<Exposition> {
        Vec::new()
    }

    /// Writes the part of one of [`expositions`](Self::expositions) that is about the process.
    fn write_node_metrics(&self, exposition: &str, node: &NodeMetrics, out: &mut String) {
        let _unused = (exposition, node, out);
    }

    /// What lists show of a document of a store. The key is without the dialect's prefix.
    fn overview(&self, key: &str, value: &Value) -> Overview {
        let _unused = (key, value);
        Overview::default()
    }

    /// What lists show of a file.
    fn overview_of_file(&self, document: &Value) -> Overview {
        let _unused = document;
        Overview::default()
    }

    /// What a gateway may call the upstream of a list's row. `id` is what other documents call it.
    fn upstream_names(&self, row: &Row, id: &str) -> Vec<String> {
        let _unused = id;
        vec![row.name.clone()]
    }

    /// What the dialect calls plugins, each with its name in the catalogue; empty: by the same names.
    fn plugin_names(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Every plugin name of the original, and how it is handled; empty: there is no original.
    fn plugin_table(&self) -> &'static [PluginName] {
        &[]
    }

    /// The original's own schemas of a plugin's configuration; `None` if there are none.
    fn plugin_schemas(&self, name: &str) -> Option<Value> {
        let _unused = name;
        None
    }

    /// What those schemas say, as tables for the plugin's page.
    fn plugin_fields(&self, name: &str) -> Vec<FieldTable> {
        let _unused = name;
        Vec::new()
    }
}
