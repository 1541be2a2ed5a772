//! Weir's Kong dialect: `kong.yml` in, the model out, and refusals in Kong's words.
//!
//! [`document`] holds what Kong's users write, as they write it plus the defaults that Kong fills in, in the
//! language of [`schema`]; [`plugins`] what their plugins are called in Weir's catalogue; [`translate()`] makes a
//! [`Model`] of it, with every rule of order and precedence settled; [`errors`] answers as Kong does.
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
mod secrets;
mod translate;

pub use dialect::{KongDialect, NAME};
pub use errors::KongErrorRenderer;

use weir_model::{Diagnostic, Model};

/// Which of Kong's routers orders the routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouterFlavor {
    /// The default since Kong 3.0.
    #[default]
    TraditionalCompatible,
    /// The one before it.
    Traditional,
}

impl RouterFlavor {
    /// The original's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::TraditionalCompatible => "traditional_compatible",
            Self::Traditional => "traditional",
        }
    }
}

/// How a document is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The router.
    pub router: RouterFlavor,
}

/// Whether this is a declarative document of Kong.
pub fn recognises(document: &serde_json::Value) -> bool {
    document.get(dialect::MARK).is_some()
}

/// Checks and translates a whole declarative document. Diagnostics beside the model are warnings, and resources
/// that are left out.
///
/// # Errors
/// The document is refused; all that is wrong with it.
pub fn translate(
    document: &serde_json::Value,
    options: &Options,
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (document, mut found) = document::Document::read(document)?;
    match translate::model(document, options.router) {
        Ok((model, more)) => {
            found.extend(more);
            Ok((model, found))
        }
        Err(more) => {
            found.extend(more);
            Err(found)
        }
    }
}
