//! Any bytes as the begin of a session of MQTT.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_proxy::mqtt_fuzzing::read_mqtt_connect(bytes));
