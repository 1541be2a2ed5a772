//! HTTP/2 on the wire (RFC 9113): frames, HPACK, and the state of a connection and its streams. It does no I/O and reads no
//! clock: bytes come in through [`ConnectionState::take_frames`], what is to be written gathers in
//! [`ConnectionState::unwritten`], and buffers and the time come from [`Resources`]. Sockets, tasks and pools of
//! connections are the data plane's.
//!
//! [`receive`] and [`control`] take over what the peer's frames say, [`send`] what streams have to say, and [`call`] is a
//! stream as a call has it. Field lists ([`field_list`]) serve HTTP/3, too.

mod buffers;
pub mod call;
pub mod connection;
mod control;
pub mod field_list;
pub mod fields;
pub mod frame;
pub mod head;
pub mod hpack;
mod receive;
mod resources;
mod send;
mod stream;
mod useless_frames;

pub use buffers::StreamBuffers;
pub use connection::{Accepted, ConnectionState, Settings};
pub use field_list::{FieldList, PseudoHeader};
pub use resources::Resources;
pub use send::RequestHead;
pub use stream::{Role, StreamError};
