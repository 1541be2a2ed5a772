//! Weir's Kong dialect: `kong.yml` in, the model out, and refusals in Kong's words.
//!
//! [`document`] holds what Kong's users write, as they write it plus the defaults that Kong fills in, in the
//! language of [`schema`]; [`plugins`] what their plugins are called in Weir's catalogue; [`translate()`] makes a
//! [`Model`] of it, with every rule of order and precedence applied; [`errors`] answers as Kong does.
//!
//! **What it is not**: it serves nothing, and no document of Kong's leaves it.

pub mod admin;
pub mod describe;
pub mod document;
pub mod errors;
pub mod incremental;
pub mod metrics;
mod overview;
pub mod plugins;
pub mod schema;

mod claims;
mod dialect;
mod name;
mod options;
mod secrets;
mod translate;

pub use dialect::{KongDialect, recognises};
pub use errors::KongErrorRenderer;
pub use name::NAME;
pub use options::{Options, RouterFlavor};
pub use translate::translate;
