//! HTTP/3 (RFC 9114) from clients, over `quinn` and the `h3` crate.
//!
//! [`endpoint`] takes connections from UDP, [`handshake`] finds the certificate that a client is shown, [`server`]
//! takes streams in, [`early`] says which of them may be served before the handshake is over. The `h3` crate settles a
//! connection's settings and reads and writes heads; it sees of streams what [`quic`] lets it see, and of heads those
//! that [`field_section`] finds in order. Bodies go by it: [`stream_io`] reads and writes their frames, so that nothing a client
//! sends is gathered without a bound. [`stream`] is one call's part, for `multiplex` to use.

pub mod alt_svc;
pub mod config;
mod early;
pub mod endpoint;
mod field_section;
mod frames;
pub mod fuzzing;
mod handshake;
mod limits;
mod quic;
mod server;
pub mod stream;
mod stream_io;
