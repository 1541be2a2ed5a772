//! Any bytes as what passes through a WebSocket, in two pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(
    |input: (u16, &[u8])| weir_proxy::websocket_fuzzing::websocket_frames(input.1, usize::from(input.0))
);
