//! HTTP/2 (RFC 9113), from clients and to upstreams.
//!
//! A stream has the two halves of a connection, and a client's stream is a client: calls do not know the difference
//! but where heads and trailers are concerned. [`server`] takes streams in, [`pool`] keeps connections to upstreams; both
//! are one [`connection`]: a transport, and the state that `weir_http2` keeps. Frames and HPACK are not here. Why it is
//! Weir's own: `docs/adr/0009-own-http2-engine.md`.

mod alpn_memory;
pub mod connection;
mod driver;
mod lease;
pub mod pool;
pub mod server;
pub mod stream;
