//! Weir's native dialect: `weir.yaml`.
//!
//! A `weir.yaml` is the model's own text form with short forms for what most documents say. This crate reads
//! one ([`translate`]), writes one for any model ([`print()`]), describes it as a JSON Schema ([`schema()`]), and
//! answers for native routes ([`NativeErrorRenderer`], RFC 9457).
//!
//! | short | stands for |
//! |---|---|
//! | `routes` in a service | routes of the document, `to` that service, before the document's own |
//! | `hosts`, `paths`, `methods`, `headers` of a route | a `match` for each path |
//! | `service: x` of a route | `to: {service: x}` |
//! | `strip_prefix: true` | `path: {strip_matched: true}` |
//! | `preserve_host: true` | `upstream_host: client` |
//! | `rate-limit: {…}` in a list of plugins | `name: rate-limit` with `config: {…}`, in a chain under `use` |
//! | `key-auth: {…}` in a list of credentials | `plugin: key-auth` with `config: {…}` |
//! | `name` of a consumer | `id` and `username` |
//! | `host:port` in a list of targets | `host` and `port` |
//!
//! Unknown fields are errors, with a guess at what was meant. **What it is not**: it reads no file, and it
//! does not check what needs the whole model (see [`translate`]).

mod dialect;
mod errors;
pub mod incremental;
mod merged_model;
mod messages;
mod overview;
mod print;
mod renamed;
mod schema;
mod shorthand;
mod source_map;
mod translate;
mod yaml;

pub use dialect::{NativeDialect, PREFIX};
pub use errors::NativeErrorRenderer;
pub use incremental::IncrementalModel;
pub use messages::unknown_name;
pub use print::print;
pub use schema::schema;
pub use source_map::locate;
pub use translate::{recognises, translate};
