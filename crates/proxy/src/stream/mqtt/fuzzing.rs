//! An entry point for fuzzing: what must hold of all begins of a connection.

use super::parse;

/// Reads `bytes` as the begin of a session of MQTT. What is found is the same whatever follows, and the same as soon as it
/// is found.
///
/// # Panics
/// If that does not hold.
pub fn read_mqtt_connect(bytes: &[u8]) {
    let Some(first) = (0..=bytes.len()).find(|at| parse(&bytes[..*at]) != Ok(None)) else {
        return;
    };
    assert_eq!(
        parse(&bytes[..first]),
        parse(bytes),
        "what follows makes a difference"
    );
}
