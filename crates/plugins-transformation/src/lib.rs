//! Plugins that change requests and responses: rewrites, redirects, compression, transcoding of gRPC.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
pub mod body_transform;
mod buffered_body;
mod buffered_rewrite;
mod call_parts;
pub mod compression;
pub mod degraphql;
pub mod dubbo;
pub mod error_page;
mod grpc_frames;
mod grpc_status;
pub mod grpc_transcode;
pub mod grpc_web;
pub mod jq;
pub mod kafka_consume;
pub mod kafka_upstream;
pub mod mocking;
pub mod orchestration;
pub mod protobuf;
pub mod redirect;
pub mod remote_function;
pub mod request_id;
pub mod request_rewrite;
pub mod response_rewrite;
mod xml;
// End of the modules.
