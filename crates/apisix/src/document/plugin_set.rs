//! Resources that are a set of plugins: consumer groups, plugin configs and global rules.

use super::Plugins;
use crate::schema::{Schema, id, label_map, long_text, object, short_text, text, timestamp};
use serde::Deserialize;
use std::sync::LazyLock;

/// A consumer group, a plugin config or a global rule.
#[derive(Debug, Deserialize)]
pub struct PluginSet {
    pub plugins: Plugins,
}

/// What a consumer group must look like.
pub fn consumer_group_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| described().field("name", short_text()));
    &SHAPE
}

/// What a plugin config must look like.
pub fn plugin_config_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| described().field("name", text()));
    &SHAPE
}

/// What a global rule must look like.
pub fn global_rule_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(bare);
    &SHAPE
}

fn bare() -> Schema {
    object([
        ("id", id()),
        ("create_time", timestamp()),
        ("update_time", timestamp()),
        ("plugins", object([])),
    ])
    .required(["id", "plugins"])
    .closed()
}

fn described() -> Schema {
    bare().field("desc", long_text()).field("labels", label_map())
}
