//! The state of following, for readers while it goes on.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch;
use weir_dialect::{DEFAULT_WORKSPACE, DialectName, DialectSet, ForeignRoutes, RouteOwner, SkippedDocument};
use weir_model::unix_time::seconds;
use weir_model::{Model, Route, RouteMatch, StreamRoute};
use weir_store::Revision;

/// The state of the connection to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contact {
    /// Nothing was heard yet.
    Starting,
    /// It is followed.
    Following,
    /// It cannot be reached.
    Unreachable {
        /// Since when.
        since: SystemTime,
        /// Why.
        reason: String,
    },
}

/// The state of what is served.
#[derive(Debug, Clone)]
pub struct FollowState {
    /// The revision up to which the source was followed, and is served.
    pub revision: Revision,
    /// The hash of the documents that are served.
    pub hash: String,
    /// How many there are.
    pub documents: usize,
    /// When they were taken over; `None`: nothing is served yet.
    pub served_at: Option<SystemTime>,
    /// Whether they are the last known good ones from the disk, because nothing was heard from the source yet.
    pub is_last_known_good: bool,
    /// Documents that are left out.
    pub skipped: Vec<SkippedDocument>,
    /// Documents that are served, but not as they are written.
    pub warnings: Vec<SkippedDocument>,
    /// Why the newest documents are not served at all; `None`: they are.
    pub refusal: Option<String>,
    /// The revision that was kept on disk last; `None`: none was yet.
    pub last_known_good: Option<Revision>,
    /// The state of the connection to the source.
    pub contact: Contact,
}

impl Default for FollowState {
    fn default() -> Self {
        Self {
            revision: Revision(0),
            hash: super::Documents::default().hash(),
            documents: 0,
            served_at: None,
            is_last_known_good: false,
            skipped: Vec::new(),
            warnings: Vec::new(),
            refusal: None,
            last_known_good: None,
            contact: Contact::Starting,
        }
    }
}

impl FollowState {
    /// Notes that documents are served from now on, all but those left out.
    pub(super) fn note_served(
        &mut self,
        documents: &super::Documents,
        revision: Revision,
        skipped: Vec<SkippedDocument>,
        warnings: Vec<SkippedDocument>,
    ) {
        self.revision = revision;
        self.hash = documents.hash();
        self.documents = documents.len();
        self.served_at = Some(SystemTime::now());
        self.skipped = skipped;
        self.warnings = warnings;
    }

    /// For people and their tools.
    pub fn to_json(&self) -> Value {
        let (contact, since, reason) = match &self.contact {
            Contact::Starting => ("starting", None, None),
            Contact::Following => ("following", None, None),
            Contact::Unreachable { since, reason } => ("unreachable", Some(seconds(*since)), Some(reason)),
        };
        json!({
            "contact": contact,
            "unreachable_since": since,
            "unreachable_reason": reason,
            "revision": self.revision.0,
            "hash": self.hash,
            "documents": self.documents,
            "served_at": self.served_at.map(seconds),
            "last_known_good": self.is_last_known_good,
            "last_known_good_revision": self.last_known_good.map(|it| it.0),
            // The name of version 0.1, for one version.
            "kept_revision": self.last_known_good.map(|it| it.0),
            "skipped": self.skipped,
            "warnings": self.warnings,
            "refused_because": self.refusal,
        })
    }
}

/// Something that is served, and the workspace that it is of.
type WorkspaceItem<T> = (&'static str, T);

/// The state that other dialects may ask for.
#[derive(Debug, Clone, Default)]
struct CrossDialectIndex {
    routes: Arc<[WorkspaceItem<Arc<Route>>]>,
    stream_routes: Arc<[WorkspaceItem<StreamRoute>]>,
    server_names: Arc<[WorkspaceItem<ServerNames>]>,
    /// The dialects, in the order in which their routes are looked through.
    order: Arc<[DialectName]>,
    /// Whether it has been read yet.
    are_known: bool,
}

impl CrossDialectIndex {
    /// Whose another dialect's route is.
    fn owner(&self, own: DialectName, workspace: &'static str, other: DialectName) -> RouteOwner<'static> {
        let place = |name| self.order.iter().position(|it| *it == name);
        RouteOwner {
            workspace,
            is_behind: place(other) > place(own),
        }
    }
}

/// The server names of a certificate, and the dialect that it is of; `None`: of files.
pub(super) type ServerNames = (Option<DialectName>, Vec<String>);

/// The state, to be asked for at any time. Cheap to share.
#[derive(Debug, Clone)]
pub struct StateHandle {
    state: Arc<Mutex<Arc<FollowState>>>,
    others: Arc<Mutex<CrossDialectIndex>>,
    changed: Arc<watch::Sender<()>>,
}

impl Default for StateHandle {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            others: Arc::default(),
            changed: Arc::new(watch::Sender::new(())),
        }
    }
}

impl StateHandle {
    /// The state.
    pub fn state(&self) -> Arc<FollowState> {
        Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports new states.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Waits until something is served, or refused.
    pub async fn first_result(&self) {
        let mut changed = self.subscribe();
        loop {
            let state = self.state();
            if state.served_at.is_some() || state.refusal.is_some() {
                return;
            }
            // The sender is here.
            let _never_closed = changed.changed().await;
        }
    }

    /// Notes the routes that are served.
    pub(super) fn note_routes(&self, dialects: &DialectSet, model: &Model) {
        let asking = asking(dialects);
        let is_asked_for = |dialect| asking.iter().any(|name| *name != dialect);
        let workspace = |name| {
            dialects
                .get(name)
                .map_or(DEFAULT_WORKSPACE, |it| it.workspace_for_others())
        };
        let routes = model.routes.iter().filter(|route| is_asked_for(route.dialect));
        let routes = routes.map(|route| (workspace(route.dialect), Arc::clone(route)));
        let streams = model.stream_routes.iter();
        let streams = streams
            .filter(|route| is_asked_for(route.dialect))
            .map(|route| (workspace(route.dialect), route.clone()));
        let mut others = self.others();
        others.order = dialects.iter().map(|it| it.name()).collect();
        others.routes = routes.collect();
        others.stream_routes = streams.collect();
    }

    /// Notes the server names for which certificates are shown; those of files are the operator's. By then all is known.
    pub(super) fn note_server_names(&self, dialects: &DialectSet, names: impl Iterator<Item = ServerNames>) {
        let asking = asking(dialects);
        let names = names.filter(|(dialect, _)| asking.iter().any(|name| Some(*name) != *dialect));
        let workspace = |name| {
            dialects
                .get(name)
                .map_or(DEFAULT_WORKSPACE, |it| it.workspace_for_others())
        };
        let names = names.map(|(dialect, names)| {
            let workspace = workspace(dialect.unwrap_or(DialectName::NATIVE));
            (workspace, (dialect, names))
        });
        let mut others = self.others();
        others.server_names = names.collect();
        others.are_known = true;
    }

    fn others(&self) -> MutexGuard<'_, CrossDialectIndex> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it.
    pub(super) fn update(&self, change: impl FnOnce(&mut FollowState)) {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            change(Arc::make_mut(&mut state));
        }
        self.changed.send_replace(());
    }
}

/// The dialects that ask what others serve.
fn asking(dialects: &DialectSet) -> Vec<DialectName> {
    let asking = dialects.iter().filter(|it| it.asks_for_other_routes());
    asking.map(|it| it.name()).collect()
}

impl ForeignRoutes for StateHandle {
    fn any(&self, own: DialectName, visit: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool {
        let index = self.others().clone();
        let mut others = index.routes.iter().filter(|(_, route)| route.dialect != own);
        others.any(|(workspace, route)| visit(&route.matches, index.owner(own, workspace, route.dialect)))
    }

    fn any_stream(
        &self,
        own: DialectName,
        visit: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool,
    ) -> bool {
        let index = self.others().clone();
        let mut others = index
            .stream_routes
            .iter()
            .filter(|(_, route)| route.dialect != own);
        others.any(|(workspace, route)| visit(route, index.owner(own, workspace, route.dialect)))
    }

    fn any_server_names(&self, own: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool {
        let names = Arc::clone(&self.others().server_names);
        let mut others = names.iter().filter(|(_, (dialect, _))| *dialect != Some(own));
        others.any(|(workspace, (_, names))| visit(names, workspace))
    }

    fn are_known(&self) -> bool {
        self.others().are_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_of_other_dialects_are_known_with_their_workspaces() {
        let dialects = crate::sample::all();
        let route = |dialect: &str| {
            let text = serde_json::json!({"name": "r", "match": [{"path": "/"}], "to": {"service": "s"}});
            Arc::new(Route {
                dialect: DialectName::new(dialect),
                ..serde_json::from_value(text).expect("a route")
            })
        };
        let followed = StateHandle::default();
        let stream = |dialect: &str| {
            let text = serde_json::json!({"name": "s", "protocols": ["tcp"]});
            StreamRoute {
                dialect: DialectName::new(dialect),
                ..serde_json::from_value(text).expect("a route")
            }
        };
        let model = |routes: Vec<Arc<Route>>, stream_routes: Vec<StreamRoute>| Model {
            routes,
            stream_routes,
            ..Model::default()
        };
        let own = DialectName::new("sample");
        followed.note_routes(
            &dialects,
            &model(
                vec![route("sample"), route("other"), route("native")],
                vec![stream("sample"), stream("native")],
            ),
        );
        assert!(!followed.are_known());
        let names = [Some(own), Some(DialectName::new("other")), None];
        let names = names.map(|dialect| (dialect, vec!["a.test".to_owned()]));
        followed.note_server_names(&dialects, names.into_iter());
        assert!(followed.are_known());
        let (mut streams, mut names) = (Vec::new(), Vec::new());
        followed.any_stream(own, &mut |_, owner| {
            streams.push((owner.workspace.to_owned(), owner.is_behind));
            false
        });
        followed.any_server_names(own, &mut |all, workspace| {
            names.push((all.len(), workspace.to_owned()));
            false
        });
        assert_eq!(streams, [("*".to_owned(), true)]);
        assert_eq!(names, [(1, "default".to_owned()), (1, "*".to_owned())]);
        let mut seen = Vec::new();
        let is_found = followed.any(DialectName::new("sample"), &mut |matches, owner| {
            seen.push((matches.len(), owner.workspace.to_owned()));
            false
        });
        assert!(!is_found);
        assert_eq!(seen, [(1, "default".to_owned()), (1, "*".to_owned())]);
        let name = DialectName::new("sample");
        assert!(followed.any(name, &mut |_, owner| owner.workspace == "*"));
        // Routes that no dialect asks for are not kept.
        followed.note_routes(
            &crate::sample::native(),
            &model(vec![route("sample")], Vec::new()),
        );
        assert!(!followed.any(DialectName::NATIVE, &mut |_, _| true));
    }
}
