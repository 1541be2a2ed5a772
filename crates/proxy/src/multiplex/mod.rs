//! The common part of HTTP/2 and HTTP/3: a connection carries many calls, each on a stream of its own.
//!
//! [`connection`] is a client's connection, [`stream`] one call's part of it, [`task_pool`] has its calls run, [`event`]
//! is what comes on a stream, [`fields`] translates heads. How streams are carried is for `h2` and `h3`.

pub mod connection;
pub mod event;
pub mod fields;
pub mod stream;
pub mod task_pool;
