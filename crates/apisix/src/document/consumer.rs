//! Consumers and their credentials, as documents hold them. What plugins make of them stands with the plugins.

use super::{Id, Plugins};
use crate::schema::{Schema, id, label_map, long_text, object, one_of, short_text, text, timestamp};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A consumer. It may carry credentials among its plugins.
#[derive(Debug, Deserialize)]
pub struct Consumer {
    pub username: String,
    pub group_id: Option<Id>,
    pub desc: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub plugins: Plugins,
}

/// A credential of a consumer, in the same list, with the id `CONSUMER/credentials/NAME`.
#[derive(Debug, Deserialize)]
pub struct Credential {
    #[serde(default)]
    pub plugins: Plugins,
}

/// The consumer and the name of the credential that an id of the list of consumers stands for; `None` if it is
/// a consumer's.
pub fn credential_of(id: &str) -> Option<(&str, &str)> {
    let (consumer, rest) = id.split_once('/')?;
    Some((consumer, rest.strip_prefix("credentials/")?))
}

/// The shape of a consumer.
pub fn consumer_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("id", id()),
            ("username", text().length(1, 256).pattern(r"^[a-zA-Z0-9_\-]+$")),
            ("group_id", id()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("plugins", object([])),
        ])
        .required(["username"])
        .closed()
    });
    &SHAPE
}

/// The shape of a credential.
pub fn credential_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        let full_id = text()
            .length(15, 128)
            .pattern("^[a-zA-Z0-9-_]+/credentials/[a-zA-Z0-9-_.]+$");
        object([
            ("id", one_of([id(), full_id])),
            ("name", short_text()),
            ("desc", long_text()),
            ("labels", label_map()),
            ("create_time", timestamp()),
            ("update_time", timestamp()),
            ("plugins", object([]).max_fields(1)),
        ])
        .closed()
    });
    &SHAPE
}
