//! HTTP/1.1 through a whole gateway: what goes in on one side, what comes out on the other.

mod bodies;
mod body_variables;
mod connections;
mod headers;
mod lifecycle;
mod request_framing;
mod response_framing;
mod upgrade;
mod upstreams;

#[path = "../support/mod.rs"]
mod support;
