//! `request-id`: gives every call an id by which its traces in several systems are found again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `request-id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The request header with the id, also on the response.
    pub header: String,
    /// How ids are made.
    pub generator: Generator,
    /// Whether an id that the client sends is kept.
    pub keep_clients: bool,
    /// Whether the response carries the id.
    pub echo: Echo,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            header: "X-Request-Id".into(),
            generator: Generator::Uuid,
            keep_clients: true,
            echo: Echo::Replace,
        }
    }
}

/// How ids are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// A random UUID (RFC 9562, version 4).
    Uuid,
    /// A UUID that begins with the time (RFC 9562, version 7).
    UuidV7,
    /// The gateway's UUID, `#`, and a number that counts up.
    #[serde(rename = "uuid#counter")]
    UuidCounter,
    /// `address-port-process-connection-number-seconds`: where and when the call came in.
    Tracker,
    /// 21 random characters of `A-Za-z0-9_-`.
    Nanoid,
    /// Random characters of a set.
    Random {
        /// The characters to choose from, 1 to 256 of ASCII that may stand in a header.
        characters: String,
        /// How many, 1 to 256.
        length: u16,
    },
    /// 27 characters in base 62 that sort by time, to the second.
    Ksuid,
}

/// Whether the response carries the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Echo {
    /// No.
    No,
    /// Yes, in place of an upstream's header of the same name.
    #[default]
    Replace,
    /// Unless the upstream sends a header of the same name.
    IfAbsent,
}
