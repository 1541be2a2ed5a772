//! Background requests: messages that the engine sends while a call continues, without waiting for the responses.

use std::time::Duration;

/// A message to send after the call has been forwarded. It neither delays the call nor makes it fail; if too many are
/// in progress, it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct BackgroundRequest {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// A complete HTTP/1.1 message that closes the connection.
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
