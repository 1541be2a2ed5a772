//! HTTP/2 (RFC 9113), from clients and to upstreams, over the `h2` crate.
//!
//! A stream has the two halves of a connection, and a client's stream is a client: calls do not know the difference
//! but where heads and trailers are concerned. [`server`] takes streams in, [`pool`] keeps connections to upstreams,
//! [`wire`] gathers what many streams write.

pub mod pool;
pub mod server;
pub mod stream;
mod wire;
