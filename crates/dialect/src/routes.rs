//! What an Admin API asks of what other dialects serve.

use crate::DialectName;
use weir_model::{RouteMatch, StreamRoute};

/// Whose a route of another dialect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteOwner<'o> {
    /// The workspace that the route is of.
    pub workspace: &'o str,
    /// Whether the routes of its dialect are looked through behind those of the one that asks, which can take its calls
    /// therefore.
    pub is_behind: bool,
}

/// The routes and server names that are served, of all dialects.
pub trait ForeignRoutes: Send + Sync + std::fmt::Debug {
    /// Calls `visit` with what each route of another dialect than `own` takes and whose it is, until that says `true`.
    /// Returns whether it has.
    fn any(&self, own: DialectName, visit: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool;

    /// As [`ForeignRoutes::any`], of the routes of streams.
    fn any_stream(
        &self,
        own: DialectName,
        visit: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool,
    ) -> bool;

    /// As [`ForeignRoutes::any`], of the server names for which certificates are shown, with the workspace alone.
    fn any_server_names(&self, own: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool;

    /// Whether what is served has been read yet.
    fn are_known(&self) -> bool;
}
