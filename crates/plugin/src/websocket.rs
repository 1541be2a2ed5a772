//! Messages of WebSockets, for filters that look at them as they pass.

use std::borrow::Cow;
use std::fmt;

/// Who has sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketSide {
    /// The client.
    Client,
    /// The upstream.
    Upstream,
}

/// What a message is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// The reason for closing a WebSocket, which its sender gets (RFC 6455, 7.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageViolation {
    /// The status code.
    pub code: u16,
    /// The reason, at most 123 bytes.
    pub reason: Cow<'static, str>,
}

/// Looks at the messages of a WebSocket. It is shared by all workers.
pub trait MessageFilter: Send + Sync {
    /// The most bytes of a message; `None`: the engine's own bound.
    fn max_bytes(&self, side: WebSocketSide) -> Option<usize>;

    /// Whether it reads such messages.
    fn reads(&self, side: WebSocketSide, kind: MessageKind) -> bool;

    /// Looks at a message that it reads.
    ///
    /// # Errors
    /// Why the WebSocket is closed.
    fn check(&self, side: WebSocketSide, kind: MessageKind, message: &[u8]) -> Result<(), MessageViolation>;
}

/// Why a message of more bytes than allowed closes its WebSocket.
pub const MESSAGE_TOO_LARGE: MessageViolation = MessageViolation {
    code: 1009,
    reason: Cow::Borrowed("Payload Too Large"),
};

impl fmt::Debug for dyn MessageFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MessageFilter")
    }
}
