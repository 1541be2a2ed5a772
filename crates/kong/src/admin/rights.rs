//! What a caller may do, as far as answers depend on it. Callers are known to the guard in front of the Admin API,
//! which tells it of each call.

use std::fmt;
use std::sync::Arc;

type MayWrite = dyn Fn(&str) -> bool + Send + Sync;

/// In which workspaces a caller may write. In the extensions of a request; without it, the caller may write everywhere.
#[derive(Clone, Default)]
pub struct Rights(Option<Arc<MayWrite>>);

impl fmt::Debug for Rights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rights").finish_non_exhaustive()
    }
}

impl Rights {
    /// To write everywhere.
    pub const ALL: &Self = &Self(None);

    /// To write in the workspaces for which this says so.
    pub fn new(may_write: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(may_write)))
    }

    /// Whether the caller may write in a workspace. Who may not is shown no secrets of it.
    pub fn may_write(&self, workspace: &str) -> bool {
        self.0.as_ref().is_none_or(|may_write| may_write(workspace))
    }

    /// Whether there is nothing to ask.
    pub fn are_all(&self) -> bool {
        self.0.is_none()
    }
}
