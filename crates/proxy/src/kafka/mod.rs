//! Kafka's protocol, as far as a gateway needs it: [`batch`] makes records for the producer of log targets,
//! [`consumer`] reads records for filters. Both share connections to brokers, and the words of the protocol.

pub mod batch;
pub mod connection;
pub mod consumer;
mod consumer_wire;
pub mod fuzzing;
pub mod records;
mod sasl;
pub mod turns;
pub mod wire;
