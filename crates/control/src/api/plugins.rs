//! The catalogue of plugins, and how the configuration stands.

use super::Api;
use super::problem::Problem;
use super::shapes::{List, Resource};
use crate::api::json_body::Json;
use crate::catalogue::{CataloguePlugin, catalogue};
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plugin with the schemas of its configuration.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct DescribedPlugin {
    /// Its row in the list.
    #[serde(flatten)]
    pub plugin: CataloguePlugin,
    /// JSON Schema of its configuration in `weir.yaml`.
    pub schema: Resource,
    /// JSON Schema of a consumer's credential in `weir.yaml`; `null`: it has none.
    pub credential_schema: Option<Resource>,
    /// The originals' own schemas, by dialect and by the plugin's name there.
    pub dialect_schemas: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Api {
    /// The catalogue, made once: it is the same for all.
    fn catalogue(&self) -> &[CataloguePlugin] {
        self.catalogue.get_or_init(|| catalogue(&self.options.dialects))
    }
}

/// Answers `GET /api/v1/plugins`.
pub async fn list(State(api): State<Arc<Api>>) -> Json<List<CataloguePlugin>> {
    Json(List {
        items: api.catalogue().to_vec(),
    })
}

/// Answers `GET /api/v1/plugins/{name}`, under any dialect's name.
pub async fn read(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
) -> Result<Json<DescribedPlugin>, Problem> {
    let missing = || Problem::not_found(format_args!("the plugin '{name}'"));
    let listed = api
        .catalogue()
        .iter()
        .find(|it| it.has_name(&name))
        .ok_or_else(missing)?;
    let registry = (api.options.registry)();
    let plugin = registry.get(&listed.name).ok_or_else(missing)?;
    let map = |schema: Value| match schema {
        Value::Object(fields) => Resource(fields),
        _ => Resource(Map::new()),
    };
    let mut dialect_schemas: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for dialect in api.options.dialects.iter() {
        let names = listed.names.get(dialect.name().as_str()).into_iter().flatten();
        for name in names {
            if let Some(schema) = dialect.plugin_schemas(name) {
                let of_dialect = dialect_schemas.entry(dialect.name().to_string()).or_default();
                of_dialect.insert(name.clone(), schema);
            }
        }
    }
    Ok(Json(DescribedPlugin {
        plugin: listed.clone(),
        schema: map(plugin.config_schema().to_value()),
        credential_schema: plugin.credentials().map(|kind| map(kind.schema.to_value())),
        dialect_schemas,
    }))
}

/// Answers `GET /api/v1/state`.
pub async fn state(State(api): State<Arc<Api>>) -> Json<Value> {
    let mut state = api.options.followed.state().to_json();
    state["read_only"] = api.options.is_read_only.into();
    Json(state)
}
