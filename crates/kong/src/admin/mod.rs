//! Kong's Admin API over a store, or over a `kong.yml` ([`files`]).
//!
//! Everything below `kong/` in the store is kept in memory, indexed ([`state`]). Calls that ask are answered from there
//! ([`read`]); calls that change something are worked out on it ([`write`]) and committed on condition that nothing
//! else was in between ([`commit`]). One engine serves all entity types: what they are is in
//! [`crate::document::entity_type`], and what is special about a few of them in [`entity_rules`].
//!
//! **What it is not**: it knows no users and serves no calls but its own: who may call is decided in front of it, and
//! what is stored reaches gateways by another way ([`crate::stored`]).

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
mod issued_tokens;
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
mod server_name_changes;
mod server_names;
mod signing_keys;
mod state;
mod table;
mod tags;
mod takeover;
mod unserved;
mod unserved_paths;
mod unsupported_config;
mod vault_credentials;
mod write;
pub use call::{ApiCall, RequestBody};
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
use commit::writer_of;
use path::ResourcePath;
use plan::WorkspaceView;
use signing_keys::NewKeys;
use state::{AdminState, PREFIX};
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use weir_dialect::{DEFAULT_WORKSPACE, FileBacking, ForeignRoutes, Replica, StateRef};
use weir_store::{Store, StoreError};
use write::WriteRequest;

/// The version of Kong whose Admin API this is.
pub const VERSION: &str = "3.9.3";

const OF_COLLECTIONS: &str = "GET, HEAD, OPTIONS, POST";
const OF_OTHERS: &str = "GET, HEAD, OPTIONS";
const OF_MEMBERS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, PUT";

/// How the Admin API behaves.
#[derive(Debug, Clone, Default)]
pub struct AdminOptions {
    /// How documents are translated.
    pub translation: crate::Options,
    /// The facts about the process.
    pub node: Node,
    /// Routes of other dialects; `None`: there are none.
    pub others: Option<Arc<dyn ForeignRoutes>>,
    /// Whether `/config` is refused, as in the original with a database.
    pub has_no_config: bool,
}

/// The Admin API.
#[derive(Debug)]
pub struct Admin {
    options: AdminOptions,
    replica: Arc<Replica<AdminState>>,
    /// The configuration that was taken whole.
    taken: std::sync::Mutex<Option<config::AppliedConfig>>,
    /// The file that holds the configuration; `None`: the store does.
    file: Option<FileBacking>,
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
        file: Option<FileBacking>,
    ) -> Result<Arc<Self>, StoreError> {
        let empty = AdminState::new(options.translation.router);
        Ok(Arc::new(Self {
            replica: Replica::open(store, PREFIX, empty).await?,
            options,
            taken: std::sync::Mutex::new(None),
            file,
        }))
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
            .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
            .collect()
    }

    fn state(&self) -> StateRef<'_, AdminState> {
        self.replica.state()
    }

    async fn serve(&self, request: Request<Body>) -> Response<Body> {
        let begin = Instant::now();
        let is_options = request.method() == Method::OPTIONS;
        let origin = request.headers().get(ORIGIN).cloned();
        let asked = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let answer = match ApiCall::read(request).await {
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

    /// Answers a call.
    async fn answer(&self, mut call: ApiCall) -> ApiResponse {
        if let Err(Failure(answer)) = self.read_file().await {
            return answer;
        }
        self.take_workspace(&mut call);
        if let Some(Ok(answer) | Err(Failure(answer))) = issued_tokens::answer(self, &call).await {
            return answer;
        }
        if let Some(Ok(answer) | Err(Failure(answer))) = vault_credentials::answer(self, &call).await {
            return answer;
        }
        if let Some(Ok(answer) | Err(Failure(answer))) = signing_keys::change(self, &call).await {
            return answer;
        }
        let found = match self.non_entity_endpoint(&call) {
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
    fn non_entity_endpoint(&self, call: &ApiCall) -> Option<Result<ApiResponse, Failure>> {
        let state = self.state();
        let view = WorkspaceView::new(&state, &call.workspace, SystemTime::now());
        let node = &self.options.node;
        let hash = self.file.is_some().then(|| self.configuration_hash());
        let found = info::answer(call, view, &self.options, hash.as_deref())
            .or_else(|| health::answer(call, view, node))
            .or_else(|| tags::answer(call, view))
            .or_else(|| signing_keys::answer(call, view))
            .or_else(|| unserved_paths::answer(call, view))
            .or_else(|| schemas::answer(call, SystemTime::now()))?;
        if call.method == Method::OPTIONS {
            return Some(Ok(ApiResponse::options(OF_OTHERS)));
        }
        Some(found)
    }

    async fn at(&self, call: &ApiCall, place: &ResourcePath) -> Result<ApiResponse, Failure> {
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
        let writer = writer_of(call);
        let mut new_keys = NewKeys::default();
        loop {
            let written = self.write(&writer, |state| {
                let now = SystemTime::now();
                WriteRequest {
                    call,
                    view: WorkspaceView {
                        others: self.options.others.as_deref(),
                        ..WorkspaceView::of(state, call, now)
                    },
                    now,
                    new_keys: Some(&new_keys),
                    plugin_check: Some(&self.options.node.plugin_check),
                }
                .plan(place)
            });
            let written = written.await;
            if !new_keys.make().await? {
                return written;
            }
        }
    }

    /// A path may begin with the name of a workspace. Workspaces themselves stand in none.
    fn take_workspace(&self, call: &mut ApiCall) {
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
