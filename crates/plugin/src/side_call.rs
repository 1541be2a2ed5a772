//! Side calls: messages that the engine sends beside a call, whose answers nobody awaits.

use std::time::Duration;

/// A message to be sent once the call is forwarded. It neither delays the call nor fails it; where too many are under
/// way, it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideCall {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// A whole HTTP/1.1 message, which asks for the connection to be closed.
    pub message: Vec<u8>,
    /// The longest that it may take, the answer included.
    pub timeout: Duration,
}
