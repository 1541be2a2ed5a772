//! Plugins that change requests and responses: rewrites, redirects, compression, transcoding of gRPC.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect.

pub mod body_transform;
pub mod compression;
pub mod degraphql;
pub mod error_page;
pub mod grpc_transcode;
pub mod grpc_web;
pub mod mocking;
pub mod protobuf;
pub mod redirect;
pub mod request_id;
pub mod request_rewrite;
pub mod response_rewrite;

mod buffered_body;
mod grpc_frames;
mod grpc_status;
