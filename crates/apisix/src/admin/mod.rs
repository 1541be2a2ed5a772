//! APISIX's Admin API over a store, or over an `apisix.yaml` ([`file`]), and the part of its control API that shows
//! what is configured.
//!
//! The dialect's documents are held in memory by the engine that all Admin APIs share ([`weir_dialect::Replica`]), with
//! indexes ([`state`]); reads are answered from there. A write is planned against them ([`write`], [`configs`]) and
//! committed by the engine ([`commit`]).
//!
//! **What it is not**: it knows no users beyond APISIX's two kinds of key, and serves nothing of what it stores:
//! [`IncrementalModel`](crate::IncrementalModel) makes models of the same documents.

mod call;
mod check;
mod commit;
mod configs;
mod configuration;
mod control;
mod cost_decoration;
mod delete_checks;
mod dispatch;
mod encrypted_fields;
mod file;
mod key;
mod kind;
mod opening;
mod patch;
mod read;
mod references;
mod response;
mod schemas;
mod state;
mod takeover_detection;
mod takeover_rights;
mod token;
mod unserved;
mod validate;
mod write;
pub use encrypted_fields::Keyring;
pub(crate) use encrypted_fields::hide_secrets;
pub use key::{Key, Role, STOCK_KEYS};
pub(crate) use kind::Kind;
pub use opening::open;
pub use schemas::{in_order as plugin_names, plugin_fields, plugin_schemas};

use crate::settings::Settings;
use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{Extensions, Request, Response, StatusCode};
use call::ApiCall;
use response::ApiResponse;
use state::{AdminState, PREFIX};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::{
    DEFAULT_WORKSPACE, FileBacking, ForeignRoutes, HealthSource, PluginCheck, Replica, Rights, StateRef,
};
use weir_store::{Author, Store, StoreError, WorkspaceScoped};

/// The largest body of a call, in bytes, as in APISIX.
const MAX_BODY: usize = 1_572_864;
/// How much of a body that is too large is read, in bytes.
const MAX_DISCARDED: usize = 16 << 20;
/// The largest whole configuration, in bytes.
const MAX_CONFIGS: usize = 128 << 20;

/// How the API behaves.
#[derive(Clone)]
pub struct AdminOptions {
    /// The keys that let calls in. None: every call is let in, and [`Rights`] in its extensions say what its caller
    /// may see.
    pub keys: Vec<Key>,
    /// The keys by which secrets are encrypted in responses to the client that wrote them.
    pub keyring: Keyring,
    /// Whether stream routes may be written.
    pub stream: bool,
    /// The clock.
    pub clock: fn() -> SystemTime,
    /// APISIX's `config.yaml`.
    pub settings: &'static Settings,
    /// How routes are found.
    pub router: crate::Router,
    /// The health of upstreams' nodes; `None`: unknown.
    pub health: Option<Arc<dyn HealthSource>>,
    /// The routes and server names of other dialects; `None`: there are none.
    pub others: Option<Arc<dyn ForeignRoutes>>,
    /// What gateways can serve of plugins.
    pub plugin_check: PluginCheck,
}

impl fmt::Debug for AdminOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AdminOptions")
            .field("keys", &self.keys)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl AdminOptions {
    /// The stock keys and keyring of APISIX, stream routes, no health. `clock` returns the time.
    pub fn new(clock: fn() -> SystemTime) -> Self {
        Self {
            keys: Key::stock(),
            keyring: Keyring::stock(),
            stream: true,
            clock,
            settings: Settings::stock(),
            router: crate::Router::default(),
            health: None,
            others: None,
            plugin_check: PluginCheck::default(),
        }
    }
}

/// The API.
#[derive(Debug)]
pub struct Admin {
    options: AdminOptions,
    replica: Arc<Replica<AdminState>>,
    /// The file that holds the configuration; `None`: the store does.
    file: Option<FileBacking>,
}

impl Admin {
    /// Reads the dialect's documents and begins to follow the store, until the API is dropped. To be called inside of
    /// a tokio runtime.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn open(store: Arc<dyn Store>, options: AdminOptions) -> Result<Arc<Self>, StoreError> {
        Self::start(store, options, None).await
    }

    async fn start(
        store: Arc<dyn Store>,
        options: AdminOptions,
        file: Option<FileBacking>,
    ) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self {
            options,
            replica: Replica::open(store, PREFIX, AdminState::default()).await?,
            file,
        }))
    }

    /// The Admin API, with its paths from `/apisix/admin` on, and the control API, with its paths from `/v1` on.
    pub fn router(self: &Arc<Self>) -> Router {
        Router::new().fallback(by_path).with_state(Arc::clone(self))
    }

    /// The revisions for metrics: by the original's key, that of the last document of a kind, and of all.
    pub fn modify_indexes(&self) -> Vec<(&'static str, u64)> {
        const KINDS: [Kind; 8] = [
            Kind::Consumer,
            Kind::GlobalRule,
            Kind::Proto,
            Kind::Route,
            Kind::Service,
            Kind::Ssl,
            Kind::StreamRoute,
            Kind::Upstream,
        ];
        let state = self.state();
        let mut indexes: Vec<_> = (KINDS.iter())
            .map(|kind| (kind.name(), state.last_modified(*kind).0))
            .collect();
        let last_modified = indexes.iter().map(|(_, index)| *index).max().unwrap_or(0);
        indexes.extend([("max_modify_index", last_modified), ("prev_index", last_modified)]);
        indexes.push(("x_etcd_index", state.revision.0));
        indexes
    }

    fn state(&self) -> StateRef<'_, AdminState> {
        self.replica.state()
    }
}

async fn admin(Shared(admin): Shared<Arc<Admin>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let author = parts.extensions.get::<Author>().cloned();
    let time = (admin.options.clock)();
    let author = author.unwrap_or_else(Author::anonymous);
    let mut call = ApiCall::new(parts.method, &parts.uri, parts.headers, author, time);
    call.settings = admin.options.settings;
    call.is_confined = parts.extensions.get::<WorkspaceScoped>().is_some();
    let caller_role = role_of(&parts.extensions);
    let answer = match token::check(&admin.options.keys, &call) {
        Err(answer) => answer,
        Ok(role) => {
            call.role = caller_role.or(role).unwrap_or(Role::Viewer);
            match body_of(&call, body).await {
                Err(answer) => answer,
                Ok(body) => {
                    call.body = body;
                    match admin.read_file().await {
                        Ok(()) => admin.dispatch(&call).await,
                        Err(answer) => answer,
                    }
                }
            }
        }
    };
    answer.into_response(admin.options.settings)
}

async fn control(Shared(admin): Shared<Arc<Admin>>, request: Request<Body>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let time = (admin.options.clock)();
    let mut call = ApiCall::new(parts.method, &parts.uri, parts.headers, Author::anonymous(), time);
    // In the original, callers from this machine show no key. A guard in front may know more.
    call.role = role_of(&parts.extensions).unwrap_or(Role::Viewer);
    let answer = match admin.read_file().await {
        Ok(()) => control::answer(&admin, &call),
        Err(answer) => answer,
    };
    answer.into_response(admin.options.settings)
}

/// The control API, which in the original has a port of its own, and the Admin API.
async fn by_path(state: Shared<Arc<Admin>>, request: Request<Body>) -> Response<Body> {
    if request.uri().path().starts_with("/v1/") {
        control(state, request).await
    } else {
        admin(state, request).await
    }
}

/// The caller's role by a guard in front; `None`: there is no guard.
fn role_of(extensions: &Extensions) -> Option<Role> {
    let rights = extensions.get::<Rights>()?;
    Some(if rights.may_write(DEFAULT_WORKSPACE) {
        Role::Admin
    } else {
        Role::Viewer
    })
}

/// The body of a call, if it is not too large. Of one that is, up to so much more is read, so that its sender
/// comes to read the answer.
async fn body_of(call: &ApiCall, body: Body) -> Result<Vec<u8>, ApiResponse> {
    let most = match call.path.as_str() {
        "/apisix/admin/configs" => MAX_CONFIGS,
        _ => MAX_BODY,
    };
    let too_large = |size: u64| {
        ApiResponse::bad(format!(
            "invalid request body: request size {size} is greater than the maximum size {most} allowed"
        ))
    };
    let content_length = call
        .header("content-length")
        .and_then(|length| length.parse::<u64>().ok());
    if let Some(size) = content_length.filter(|size| *size > most as u64) {
        let _ = axum::body::to_bytes(body, MAX_DISCARDED).await;
        return Err(too_large(size));
    }
    match axum::body::to_bytes(body, most).await {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) if content_length.is_none() => Err(too_large(most as u64 + 1)),
        Err(_) => Err(ApiResponse::empty(StatusCode::BAD_REQUEST)),
    }
}
