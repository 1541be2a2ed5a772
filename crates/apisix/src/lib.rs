//! Weir's APISIX dialect: `apisix.yaml` as Apache APISIX's standalone mode reads it.
//!
//! [`prepare`] takes care of the text (`#END`, `${{VAR}}`), [`translate`] reads the resources, checks each as
//! APISIX would, and makes a [`Model`](weir_model::Model) of those that are good; [`ApisixErrorRenderer`] puts refusals
//! into APISIX's words. This dialect decides everything that the model wants decided: the order of routes and
//! of plugins, who overrides whose plugins, defaults.
//!
//! The rooms: `schema` (shapes, defaults and the words for violations), `document` (the resources as their users
//! write them), `plugins` (what each plugin of APISIX is in Weir's catalogue), `translate` (from resources to the
//! model), `settings` (APISIX's `config.yaml`), `dialect`, `admin` (APISIX's Admin API over a store).
//!
//! **What it is not**: it runs nothing but its API's task that follows the store, and reads no file and no
//! environment.

mod admin;
mod dialect;
mod document;
mod errors;
mod expiry;
mod incremental;
pub mod metrics;
mod name;
mod overview;
mod plugins;
mod prepare;
mod schema;
mod secrets;
mod settings;
mod translate;

pub use admin::{Admin, AdminOptions, Key, Keyring, Role, plugin_names, plugin_schemas};
pub use dialect::ApisixDialect;
pub use document::recognises;
pub use errors::ApisixErrorRenderer;
pub use expiry::end_of;
pub use incremental::IncrementalModel;
pub use name::NAME;
pub use plugins::mqtt_proxy::NAME as MQTT_PROXY;
pub use plugins::{NAMES as PLUGIN_NAMES, is_known as is_known_plugin, spellings};
pub use prepare::{prepare, prepare_for_look};
pub use settings::{
    AdminSettings, CacheDisk, CacheSettings, CacheZone, Keys, PluginFiles, PrometheusSettings,
    RealIpSettings, Settings, read as read_settings,
};
pub use translate::{Options, Router, translate};
