//! `mqtt-proxy` on stream routes: the CONNECT with which sessions begin. It is no plugin of the catalogue: a stream route has a
//! field for it.

use crate::schema::{Schema, integer, object, text};
use serde_json::Value;
use weir_model::MqttConnect;

/// The plugin's name.
pub const NAME: &str = "mqtt-proxy";

/// Its configuration.
pub fn shape() -> Schema {
    object([
        ("protocol_name", text().or("MQTT")),
        ("protocol_level", integer()),
    ])
    .required(["protocol_level"])
}

/// The field of the stream route.
///
/// # Errors
/// In APISIX's words; those about a level that no CONNECT can have are Weir's.
pub fn translate(config: &Value) -> Result<MqttConnect, String> {
    let mut config = config.clone();
    let read = shape().check(&mut config).and_then(|()| {
        let level = config["protocol_level"].as_u64();
        let level = level.and_then(|it| u8::try_from(it).ok());
        Ok(MqttConnect {
            protocol_name: config["protocol_name"].as_str().unwrap_or_default().to_owned(),
            protocol_level: level
                .ok_or("property \"protocol_level\" validation failed: expected 0 to 255")?,
        })
    });
    read.map_err(|error| format!("failed to check the configuration of stream plugin [{NAME}]: {error}"))
}
