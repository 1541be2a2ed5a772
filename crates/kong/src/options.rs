//! How documents of Kong are translated: what a gateway may choose about it.

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
