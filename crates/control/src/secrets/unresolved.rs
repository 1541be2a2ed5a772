//! References that lead nowhere, and what becomes of that which holds them.

use weir_dialect::SkippedDocument;

/// The purpose for which a model is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// To serve it.
    Serve,
    /// To look at it, perhaps on a machine that has no secrets.
    Look,
}

/// A reference to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedReference {
    /// What, and why.
    pub broken: SkippedDocument,
    /// Its consequence.
    pub effect: UnresolvedEffect,
    /// Whether it names no place at all, so that no machine has a value for it.
    pub leads_nowhere: bool,
}

/// The consequence of a reference to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnresolvedEffect {
    /// It is there, with the reference as a text.
    AsText,
    /// A credential or a certificate that is left out, or an entry of `acme` that orders none.
    Dropped,
    /// A plugin without which calls are refused, or the plugins of calls that match no route.
    Skipped,
}
