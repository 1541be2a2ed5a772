//! What a dialect with workspaces asks of what the others serve.

use crate::DialectName;
use weir_model::{RouteMatch, StreamRoute};

/// The routes and server names that are served, of all dialects.
pub trait OtherRoutes: Send + Sync + std::fmt::Debug {
    /// Calls `visit` with what each route of another dialect than `own` takes and the workspace that it is of, until that
    /// says `true`. Returns whether it has.
    fn any(&self, own: DialectName, visit: &mut dyn FnMut(&[RouteMatch], &str) -> bool) -> bool;

    /// As [`OtherRoutes::any`], of the routes of streams.
    fn any_stream(&self, own: DialectName, visit: &mut dyn FnMut(&StreamRoute, &str) -> bool) -> bool;

    /// As [`OtherRoutes::any`], of the server names for which certificates are shown.
    fn any_server_names(&self, own: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool;

    /// Whether what is served has been read yet.
    fn are_known(&self) -> bool;
}
