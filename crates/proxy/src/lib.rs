//! Weir's data plane: listeners, the HTTP/1.1 engine, upstream connections, workers and draining.
//!
//! One worker a core: each is a thread with a single-threaded runtime, its own `SO_REUSEPORT` listeners, its
//! own upstream connections and its own counters. A request holds one snapshot from its first byte to its log
//! line. The life of a request, by file: [`worker`] accepts, `connection` reads heads and keeps the connection
//! alive, `serve` finds the route and runs the chain, `forward` chooses a target and carries request and
//! response, `h1` knows the wire format; `h2` makes of every
//! HTTP/2 stream a client of its own, and of every stream to an upstream a connection.
//!
//! **What it is not**: it names no plugin, no front door and no store; it interprets no documents.

mod buffer;
mod chain;
mod connection;
mod dns;
mod forward;
mod forwarded;
mod gateway;
mod grpc;
mod h1;
mod h2;
pub mod health;
mod limits;
mod log_out;
mod pool;
mod question;
mod reader;
mod reply;
mod report;
mod request_body;
mod serve;
mod side_call;
mod target;
mod timer;
mod transport;
mod tunnel;
mod worker;

pub use dns::NameServers;
pub use gateway::{Bound, Gateway, GatewayOptions, Published, Voices};
pub use h1::fuzzing;
pub use limits::Limits;
