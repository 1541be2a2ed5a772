//! Conversations: protocols other than HTTP that a filter speaks with another server, such as LDAP.
//!
//! A filter hands the engine a [`ProtocolDriver`], a state machine without I/O. The engine opens a connection or takes an idle
//! one, writes and reads for it, keeps the result for the filter
//! ([`FilterState::take_answer`](crate::FilterState::take_answer)), and calls the filter again.

use crate::connector::Connector;
use crate::subrequest::Verify;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A conversation with another server.
pub struct Conversation {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is met over TLS, and when.
    pub tls: ConversationTls,
    /// Further rules for TLS; `None`: the gateway's own. Proxies are not used.
    pub connector: Option<Arc<Connector>>,
    /// Connections are only used again for conversations with the same tag. It names the protocol, and as whom the
    /// connection is used between conversations.
    pub tag: String,
    /// The longest that it may take, with all that belongs to it.
    pub timeout: Duration,
    /// Idle connections to the server that are kept at most, and for how long; `None`: none.
    pub keep: Option<(u32, Duration)>,
    /// The protocol messages of this conversation.
    pub dialogue: Box<dyn ProtocolDriver>,
}

/// What is said to the target of a call, instead of forwarding the call over HTTP.
pub struct UpstreamDialogue {
    /// The plugin's name in the catalogue.
    pub plugin: &'static str,
    /// The protocol messages. The dialogue finishes with an `Option` of a [`Reply`](crate::Reply) to the call; with `None`,
    /// the call is refused.
    pub dialogue: Box<dyn ProtocolDriver>,
}

/// The messages may hold a caller's data, so they are not printed.
impl fmt::Debug for UpstreamDialogue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UpstreamDialogue({})", self.plugin)
    }
}

/// When TLS begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationTls {
    /// Never.
    None,
    /// With the connection.
    AtOnce(Verify),
    /// When the dialogue [says so](Step::StartTls), and before anything else that it says.
    OnRequest(Verify),
}

/// The protocol messages of a conversation, step by step.
pub trait ProtocolDriver {
    /// Begins. `is_new` distinguishes a new connection from one that was used in an earlier conversation. It may be
    /// called twice, if an idle connection turns out to be closed.
    fn begin(&mut self, is_new: bool) -> Step;

    /// Goes on with what has been received and not [consumed](Received::consume). Called again with more after
    /// [`Step::Read`], and after each other step that does not end the conversation.
    fn next(&mut self, received: &mut Received<'_>) -> Step;

    /// The result, for the filter.
    fn finish(self: Box<Self>) -> Box<dyn Any>;
}

/// What a dialogue wants next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// To send this.
    Write(Vec<u8>),
    /// To receive more.
    Read,
    /// To go on under TLS. Bytes that were received before and not consumed are an error.
    StartTls,
    /// It is over, and the connection can be used again, as its tag says.
    Done,
    /// It is over, and the connection is to be closed, after these last bytes.
    Close(Vec<u8>),
    /// The server does not keep to the protocol, or cannot be used.
    Fail,
}

/// Bytes that were received.
#[derive(Debug)]
pub struct Received<'b> {
    bytes: &'b [u8],
    consumed: usize,
}

impl<'b> Received<'b> {
    /// Nothing of these bytes is consumed yet.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, consumed: 0 }
    }

    /// What is not consumed yet.
    pub fn bytes(&self) -> &'b [u8] {
        &self.bytes[self.consumed..]
    }

    /// So many of these bytes are not needed any more.
    pub fn consume(&mut self, count: usize) {
        self.consumed = (self.consumed + count).min(self.bytes.len());
    }

    /// How many have been consumed.
    pub fn consumed(&self) -> usize {
        self.consumed
    }
}

/// What is said may hold a caller's credentials.
impl fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Conversation")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
