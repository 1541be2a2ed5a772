//! The author: the name under which the record of a change stands. Whether the author may write is decided before.

use std::sync::Arc;

/// The name under which a change is recorded. The guard of an Admin API puts it into the call's
/// extensions; the API puts it into its transactions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Author(pub Arc<str>);

impl Author {
    /// The caller of an Admin API without users.
    pub fn anonymous() -> Self {
        Self("anonymous".into())
    }
}

/// In the extensions of a call: its caller may write in some workspaces only. What concerns the machine itself, such as
/// files that are written there, is not for this caller to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspaceScoped;
