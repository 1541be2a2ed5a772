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

/// The shape of a consumer group.
pub fn consumer_group_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| described().field("name", short_text()));
    &SHAPE
}

/// The shape of a plugin config.
pub fn plugin_config_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| described().field("name", text()));
    &SHAPE
}

/// The shape of a global rule.
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
