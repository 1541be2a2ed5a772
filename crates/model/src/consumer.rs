//! Consumers: the callers, and the credentials by which plugins identify them.

use crate::{DialectName, is_default};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Someone (a person, a program, a partner) who calls APIs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// Unique name within its dialect; plugins and tables refer to it.
    pub id: String,
    /// The name that is sent to upstreams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The consumer's name in another system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_id: Option<String>,
    /// The group that the consumer belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Free labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Further facts about the consumer, in the words of its dialect, for policy agents (`opa`). Never a secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, Value>,
    /// How plugins recognise the consumer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// The dialect of the routes on which its credentials are valid.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: DialectName,
    /// Credentials are good for plugin instances of the same workspace only. Where there is one, `id` begins with its
    /// name and `/`. No text form says so: it is for those who share a store.
    #[serde(skip)]
    pub workspace: Option<Arc<str>>,
}

impl Consumer {
    /// The id that is sent to upstreams: the consumer's own, without its workspace.
    pub fn own_id(&self) -> &str {
        let workspace = self.workspace.as_deref();
        let own = workspace.and_then(|name| self.id.strip_prefix(name)?.strip_prefix('/'));
        own.unwrap_or(&self.id)
    }
}

/// One credential. `Debug` does not show its configuration, which holds secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The credential's own name, which is sent to upstreams if the plugin does so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The plugin that it is for, by its name in the catalogue.
    pub plugin: String,
    /// The data that the plugin needs: a key, a secret, a public key. Its schema is the plugin's.
    pub config: serde_json::Value,
    /// When it ends, in seconds since 1970: from then on calls with it are answered as those with an unknown one. Absent:
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential")
            .field("id", &self.id)
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}
