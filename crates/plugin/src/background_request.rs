//! Side calls: messages that the engine sends beside a call, whose responses are not awaited.

use std::time::Duration;

/// A message to be sent once the call is forwarded. It neither delays the call nor fails it; where too many are under
/// way, it is left out.
#[derive(Clone, PartialEq, Eq)]
pub struct BackgroundRequest {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// A whole HTTP/1.1 message, which asks for the connection to be closed.
    pub message: Vec<u8>,
    /// The longest that it may take, the answer included.
    pub timeout: Duration,
}

/// The message may hold a caller's credentials.
impl std::fmt::Debug for BackgroundRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SideCall")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("message", &self.message.len())
            .finish_non_exhaustive()
    }
}
