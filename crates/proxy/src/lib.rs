//! Weir's data plane: listeners, HTTP/1.1, HTTP/2 and HTTP/3, streams below HTTP, upstream connections, workers and
//! draining.
//!
//! One worker a core: each is a thread with a single-threaded runtime, its own `SO_REUSEPORT` listeners, its
//! own upstream connections and its own counters. A request holds one snapshot from its first byte to its log
//! line. The life of a request, by file: [`worker`] accepts, `connection` reads heads and keeps the connection
//! alive, `serve` finds the route and runs the chain, `forward` chooses a target and carries request and
//! response, `h1` knows the wire format; `multiplex` makes of every stream of HTTP/2 (`h2`) and HTTP/3 (`h3`) a client
//! of its own, and of every stream to an upstream a connection. What is no HTTP goes through `stream`. Beside calls
//! work `health` and `dns`, and for filters that ask for it `question`, `redis`, `shelf` (disks) and `log_out`.
//!
//! **What it is not**: it names no plugin, no front door and no store; it interprets no documents.

mod accept;
mod bind;
mod buffer;
mod chain;
mod connection;
mod date;
mod dns;
mod forward;
mod forwarded;
mod gateway;
mod grpc;
mod h1;
mod h2;
mod h3;
pub mod health;
mod limits;
mod log_out;
mod multiplex;
mod pace;
mod pool;
mod proxy_protocol;
mod question;
mod reader;
mod redis;
mod reply;
mod report;
mod request_body;
mod serve;
mod shelf;
mod side_call;
mod spares;
mod stamps;
mod stream;
mod target;
mod timer;
mod transport;
mod tunnel;
mod untrusted;
mod websocket;
mod worker;

pub use connection::fuzzing as connection_fuzzing;
pub use dns::NameServers;
pub use gateway::{Bound, Gateway, GatewayOptions, Published, Voices};
pub use h1::fuzzing;
pub use h2::fuzzing as http2_fuzzing;
pub use h3::endpoint::Http3;
pub use h3::fuzzing as http3_fuzzing;
pub use limits::Limits;
pub use log_out::kafka_fuzzing;
pub use proxy_protocol::{Trusted, fuzzing as proxy_protocol_fuzzing};
pub use redis::fuzzing as redis_fuzzing;
pub use shelf::DiskShelves;
pub use stream::StreamListen;
pub use websocket::fuzzing as websocket_fuzzing;
