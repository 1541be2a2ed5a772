//! The claims of a token. What they mean is for those who read them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::ops::Deref;
use std::sync::OnceLock;

/// The claims of a token, and their text in headers: calls with the same token need the same one.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub(super) struct Claims {
    map: Map<String, Value>,
    header: OnceLock<String>,
}

impl Claims {
    /// The claims as headers carry them: Base64 of JSON.
    pub(super) fn header(&self) -> &str {
        let encoded = || STANDARD.encode(serde_json::to_string(&self.map).unwrap_or_default());
        self.header.get_or_init(encoded)
    }
}

impl Deref for Claims {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl From<Map<String, Value>> for Claims {
    fn from(map: Map<String, Value>) -> Self {
        Self {
            map,
            header: OnceLock::new(),
        }
    }
}

impl Serialize for Claims {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.map.serialize(serializer)
    }
}
