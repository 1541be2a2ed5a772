//! Kong's Admin API over a store, or over a `kong.yml` ([`files`]).
//!
//! Everything below `kong/` in the store is kept in memory, indexed ([`state`]). Calls that ask are answered from there
//! ([`read`]); calls that change something are worked out on it ([`write`]) and committed on condition that nothing
//! else was in between ([`commit`]). One engine serves all families: what they are is in
//! [`crate::document::family`], and what is special about a few of them in [`special`].
//!
//! **What it is not**: it knows no users and serves no calls but its own: who may call is decided in front of it, and
//! what is stored reaches gateways by another way ([`crate::stored`]).

mod absent;
mod caches;
mod call;
mod commit;
mod config;
mod endpoints;
mod entity_rules;
mod failure;
mod files;
mod form_body;
mod health;
mod info;
mod lua;
mod node;
mod opening;
mod page;
mod parse_entity;
mod password_hash;
mod path;
mod plan;
mod read;
mod render_entity;
mod response;
mod schemas;
mod scope;
mod server_names;
mod state;
mod table;
mod tags;
mod takeover;
mod unserved;
mod write;
pub use call::{Call, Given};
pub use failure::Failure;
pub use node::{Node, process_id};
pub use opening::open;
pub use response::ApiResponse;
pub use scope::{recordable, scope};

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_HEADERS, ORIGIN, SERVER,
};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response};
use commit::Writer;
use path::ResourcePath;
use plan::WorkspaceView;
use state::{PREFIX, State};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Mutex, watch};
use weir_dialect::{DEFAULT_WORKSPACE, OtherRoutes};
use weir_store::follow::{self, Subscription};
use weir_store::{Changes, Revision, Store, StoreError};
use write::Writing;

/// The version of Kong whose Admin API this is.
pub const VERSION: &str = "3.9.3";

/// How long until a store that cannot be read is tried again.
const PAUSE: Duration = Duration::from_millis(500);
const OF_COLLECTIONS: &str = "GET, HEAD, OPTIONS, POST";
const OF_OTHERS: &str = "GET, HEAD, OPTIONS";
const OF_MEMBERS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, PUT";

/// How the Admin API behaves.
#[derive(Debug, Clone, Default)]
pub struct AdminOptions {
    /// How documents are translated.
    pub translation: crate::Options,
    /// What clients are told of the process.
    pub node: Node,
    /// Routes of other dialects; `None`: there are none.
    pub others: Option<Arc<dyn OtherRoutes>>,
    /// Whether `/config` is refused, as it is where the original has a database.
    pub has_no_config: bool,
}

/// The Admin API.
#[derive(Debug)]
pub struct Admin {
    store: Arc<dyn Store>,
    options: AdminOptions,
    state: RwLock<State>,
    /// Held by the one that writes.
    turn: Mutex<()>,
    /// The configuration that was taken whole.
    taken: std::sync::Mutex<Option<config::AppliedConfig>>,
    /// The file that holds the configuration; `None`: the store does.
    file: Option<files::File>,
    /// The revision that the state is of.
    progress: watch::Sender<Revision>,
}

impl Admin {
    /// Reads what the store holds and follows it from then on, as long as the Admin API is in use.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(store: Arc<dyn Store>, options: AdminOptions) -> Result<Arc<Self>, StoreError> {
        Self::start(store, options, None).await
    }

    async fn start(
        store: Arc<dyn Store>,
        options: AdminOptions,
        file: Option<files::File>,
    ) -> Result<Arc<Self>, StoreError> {
        let (documents, revision, following) = follow::start(Arc::clone(&store), PREFIX).await?;
        let state = State::of(&documents, revision, options.translation.router);
        let admin = Arc::new(Self {
            store,
            options,
            state: RwLock::new(state),
            turn: Mutex::new(()),
            taken: std::sync::Mutex::new(None),
            file,
            progress: watch::Sender::new(revision),
        });
        tokio::spawn(keep_up(Arc::downgrade(&admin), following));
        Ok(admin)
    }

    /// The service for calls.
    pub fn router(self: &Arc<Self>) -> Router {
        let admin = Arc::clone(self);
        Router::new().fallback(move |request: Request<Body>| {
            let admin = Arc::clone(&admin);
            async move { admin.serve(request).await }
        })
    }

    /// How it behaves.
    pub fn options(&self) -> &AdminOptions {
        &self.options
    }

    /// Documents in the store that are no entities, with the reason.
    pub fn broken(&self) -> Vec<(String, String)> {
        let state = self.state();
        let broken = state.broken();
        broken
            .map(|(name, why)| (name.to_owned(), why.to_owned()))
            .collect()
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // A panic leaves no document half applied that would not be applied again.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let begin = Instant::now();
        let is_options = request.method() == Method::OPTIONS;
        let origin = request.headers().get(ORIGIN).cloned();
        let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let answer = match Call::read(request).await {
            Ok(call) => self.answer(call).await,
            Err(Failure(answer)) => answer,
        };
        let mut response = answer.into_response();
        let headers = response.headers_mut();
        headers.insert(
            ACCESS_CONTROL_ALLOW_ORIGIN,
            origin.unwrap_or(HeaderValue::from_static("*")),
        );
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        if is_options {
            let asked = asked.unwrap_or(HeaderValue::from_static("Content-Type"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
        }
        headers.insert(SERVER, HeaderValue::from_static(crate::errors::PSEUDONYM));
        let latency = begin.elapsed().as_millis().to_string();
        if let Ok(latency) = HeaderValue::from_str(&latency) {
            headers.insert(HeaderName::from_static("x-kong-admin-latency"), latency);
        }
        response
    }

    /// Takes the store's documents in the place of what was known.
    async fn read_again(&self) -> Result<(), StoreError> {
        let (documents, revision) = self.store.read(PREFIX).await?;
        *self.state_mut() = State::of(&documents, revision, self.options.translation.router);
        self.progress.send_replace(revision);
        Ok(())
    }

    /// Answers a call.
    async fn answer(&self, mut call: Call) -> ApiResponse {
        if let Err(Failure(answer)) = self.read_file().await {
            return answer;
        }
        self.take_workspace(&mut call);
        let found = match self.aside(&call) {
            _ if config::is_meant(&call) => config::answer(self, &call).await,
            _ if caches::is_meant(&call) => caches::answer(self, &call).await,
            Some(found) => found,
            None => match ResourcePath::of(&call.path).filter(|place| !place.is_closed()) {
                Some(place) => self.at(&call, &place).await,
                None => Err(Failure::not_found()),
            },
        };
        match found {
            Ok(answer) | Err(Failure(answer)) => answer,
        }
    }

    /// Answers calls that are not for entities; `None`: this one is.
    fn aside(&self, call: &Call) -> Option<Result<ApiResponse, Failure>> {
        let state = self.state();
        let site = WorkspaceView::new(&state, &call.workspace, SystemTime::now());
        let node = &self.options.node;
        let hash = self.file.is_some().then(|| self.configuration_hash());
        let found = info::answer(call, site, &self.options, hash.as_deref())
            .or_else(|| health::answer(call, site, node))
            .or_else(|| tags::answer(call, site))
            .or_else(|| absent::answer(call, site))
            .or_else(|| schemas::answer(call, SystemTime::now()))?;
        if call.method == Method::OPTIONS {
            return Some(Ok(ApiResponse::options(OF_OTHERS)));
        }
        Some(found)
    }

    async fn at(&self, call: &Call, place: &ResourcePath) -> Result<ApiResponse, Failure> {
        let methods = match place {
            ResourcePath::Collection(..) => OF_COLLECTIONS,
            ResourcePath::Member(..) | ResourcePath::Foreign { .. } => OF_MEMBERS,
        };
        if call.method == Method::OPTIONS {
            return Ok(ApiResponse::options(methods));
        }
        if !methods.split(", ").any(|method| method == call.method.as_str()) {
            return Ok(ApiResponse::method_not_allowed());
        }
        if call.is_read() {
            let state = self.state();
            return read::answer(call, WorkspaceView::of(&state, call, SystemTime::now()), place);
        }
        if self.file.is_some() {
            return self.refuse_write(call, place);
        }
        let writer = Writer::of(call);
        self.write(&writer, |state| {
            let now = SystemTime::now();
            Writing {
                call,
                site: WorkspaceView {
                    others: self.options.others.as_deref(),
                    ..WorkspaceView::of(state, call, now)
                },
                now,
            }
            .plan(place)
        })
        .await
    }

    /// A path may begin with the name of a workspace. Workspaces themselves stand in none.
    fn take_workspace(&self, call: &mut Call) {
        let Some(first) = call.path.first() else {
            return;
        };
        if !scope::is_reserved(first) && self.state().has_workspace(first) {
            call.workspace = call.path.remove(0);
            // Below a workspace, clients ask so for what stands at `/`.
            if call.path == ["kong"] {
                call.path.clear();
            }
        }
        if call.path.first().is_some_and(|first| first == "workspaces") {
            call.workspace = DEFAULT_WORKSPACE.to_owned();
        }
    }
}

/// Takes over what other writers commit, until the Admin API is gone.
async fn keep_up(admin: Weak<Admin>, mut following: Subscription) {
    let Some(mut progress) = admin.upgrade().map(|admin| admin.progress.subscribe()) else {
        return;
    };
    let mut told = following.revision();
    let mut link = following.link();
    loop {
        let changes = tokio::select! {
            changes = following.next() => Some(changes),
            // The sender lives in what is followed.
            _ = link.changed() => None,
            // What it tells of does not matter: it ends with the Admin API.
            told = progress.changed() => match told {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let is_back = changes.is_none() && link.borrow_and_update().is_connected();
        let is_set_back = changes.as_ref().is_some_and(|it| it.revision < told);
        let Some(admin) = admin.upgrade() else {
            return;
        };
        // A store that was away may have been set back, or be another one. What this process committed may be among
        // what it has forgotten, and cannot be told apart.
        if is_back || is_set_back {
            while let Err(error) = admin.read_again().await {
                tracing::warn!(%error, "the store is back and cannot be read");
                tokio::time::sleep(PAUSE).await;
            }
        }
        let Some(Changes { revision, documents }) = changes else {
            continue;
        };
        told = revision;
        {
            let mut state = admin.state_mut();
            // What this process committed itself is there already.
            if revision <= state.revision {
                continue;
            }
            for (key, document) in &documents {
                state.apply(key, document.as_ref());
            }
            state.revision = revision;
            if !documents.is_empty() {
                state.changed = revision;
            }
        }
        admin.progress.send_replace(revision);
    }
}
