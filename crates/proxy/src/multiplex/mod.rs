//! What HTTP/2 and HTTP/3 have in common: a connection carries many calls, each on a stream of its own.
//!
//! [`session`] is a client's connection, [`stream`] one call's part of it, [`runners`] has its calls run, [`list`] is a head
//! as it comes, [`fields`] translates it. How streams are carried is for `h2` and `h3`.

pub mod connection;
pub mod event;
pub mod fields;
pub mod stream;
pub mod task_pool;
