//! Weir's data plane: listeners, HTTP/1.1, HTTP/2 and HTTP/3, streams below HTTP, upstream connections, workers and
//! draining.
//!
//! One worker a core: each is a thread with a single-threaded runtime, its own `SO_REUSEPORT` listeners, its
//! own upstream connections and its own counters. A request holds one snapshot from its first byte to its log
//! line. The life of a request, by file: [`worker`] accepts, `connection` reads heads and keeps the connection
//! alive, `serve` finds the route and runs the chain, `forward` chooses a target and carries request and
//! response; `multiplex` makes of every stream of HTTP/2 (`h2`) and HTTP/3 (`h3`) a client
//! of its own, and of every stream to an upstream a connection. What is no HTTP goes through `stream`. Beside calls
//! work `health` and `dns`, and for filters that ask for it `subrequest`, `conversation`, `redis`, `disk_cache`,
//! `kafka` and `log_sinks`.
//!
//! **What it is not**: it names no plugin, no dialect  and no store; it interprets no documents.

mod accept;
mod background_request;
mod bind;
mod body_rate;
mod body_time_budget;
mod buffer;
mod calls;
mod chain;
mod client;
mod connection;
mod conversation;
mod date;
mod dialer;
mod disk_cache;
mod dns;
mod emit_records;
mod forward;
mod forwarded;
mod gateway;
mod gateway_headers;
mod grpc;
mod h2;
mod h3;
mod halves;
pub mod health;
#[cfg(test)]
#[allow(dead_code, reason = "only what clients hear is checked here")]
#[path = "../../http1/tests/checks/mod.rs"]
mod http1_checks;
#[cfg(test)]
#[allow(dead_code, reason = "only what clients hear is checked here")]
#[path = "../../http2/tests/checks/mod.rs"]
mod http2_checks;
mod kafka;
mod kafka_calls;
mod limits;
mod log_sinks;
mod multiplex;
mod object_pool;
mod outcome;
pub mod panics;
mod pool;
mod proxy_protocol;
mod read_body;
mod reader;
mod redis;
mod redis_script;
mod reply;
mod request_body;
mod request_record;
mod route_infos;
mod run_worker;
mod runtime;
mod serve;
mod shared;
mod side_connection;
mod stream;
mod subrequest;
mod timer;
mod transport;
mod tunnel;
mod untrusted;
mod wall_clock;
mod websocket;
mod worker;

pub use bind::ListenAddresses;
pub use calls::Calls;
pub use connection::fuzzing as connection_fuzzing;
pub use disk_cache::WorkerDiskCaches;
pub use dns::NameServers;
pub use gateway::{Gateway, GatewayOptions};
pub use h3::config::Http3;
pub use h3::fuzzing as http3_fuzzing;
pub use kafka::fuzzing as kafka_fuzzing;
pub use limits::Limits;
pub use log_sinks::GatewayLogLines;
pub use proxy_protocol::{ProxyProtocolTrust, fuzzing as proxy_protocol_fuzzing};
pub use redis::fuzzing as redis_fuzzing;
pub use shared::{ErrorRenderers, PublishedSnapshot};
pub use stream::{StreamListen, mqtt_fuzzing};
pub use websocket::fuzzing as websocket_fuzzing;
