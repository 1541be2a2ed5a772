//! What a dialect with workspaces asks of the routes of the others.

use crate::DialectName;
use weir_model::RouteMatch;

/// The routes that are served, of all dialects.
pub trait OtherRoutes: Send + Sync + std::fmt::Debug {
    /// Calls `visit` with what each route of another dialect than `own` takes and the workspace that it is of, until that
    /// says `true`. Returns whether it has.
    fn any(&self, own: DialectName, visit: &mut dyn FnMut(&[RouteMatch], &str) -> bool) -> bool;
}
