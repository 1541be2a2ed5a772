//! Weir's own API: native resources, history, roll back, users, gateways, the audit log, and the stream that gateways
//! follow.
//!
//! | path | |
//! |---|---|
//! | `/api/v1/resources/KIND`, `/api/v1/resources/KIND/NAME` | native resources: what stands in a `weir.yaml`, one document each |
//! | `/api/v1/changes` | several native resources in one commit |
//! | `/api/v1/history`, `/api/v1/diff`, `/api/v1/rollback` | what was changed, in all dialects |
//! | `/api/v1/import/openapi` | a service with its routes from an OpenAPI document |
//! | `/api/v1/schema` | the JSON Schema of native documents |
//! | `/api/v1/events` | what happens, as server-sent events |
//! | `/api/v1/session`, `/api/v1/me` | logging in and out, and what callers may see and change of themselves |
//! | `/api/v1/users`, `/api/v1/audit` | who may, and who did |
//! | `/api/v1/gateways`, `/api/v1/sync` | gateways that follow |
//! | `/api/v1/analytics`, `/api/v1/alerts`, `/api/v1/boards`, `/api/v1/reports` | who called what, rules on it, how it is shown and sent |
//! | `/api/v1/environments`, `/api/v1/apis`, `/api/v1/publications`, `/api/v1/subscriptions`, … | API management: [`apis`] |
//! | `/api/v1/view/LIST`, `/api/v1/plugins`, `/api/v1/health/upstreams` | all dialects' resources as lists, for people |
//! | `/api/v1/portals/PORTAL/developers` | who signed up at a portal, and who waits for approval |
//! | `/api/v1/secrets` | which secrets documents refer to, and whether they can be had |
//! | `/api/v1/try` | sends a call to the gateway of this process |
//! | `/api/v1/explain`, `/api/v1/explain/changes` | what would happen to a call; which calls a change moves to other routes |
//! | `/api/v1/consumers/CONSUMER/routes` | which routes a consumer may call |
//! | `/api/v1/openapi.json` | all of it |
//!
//! Every call is an [`operation::Operation`] of [`table`].

mod accounts;
mod alerts;
mod analytics;
mod analytics_documents;
mod apis;
mod boards;
mod boxed_handler;
mod changes;
mod checking;
mod compiled_config;
mod current_user;
mod delegate;
mod describe;
mod developer_factor;
mod developers;
mod document_cache;
mod draining;
mod events;
mod explain;
mod fleet;
mod gateways;
pub mod health;
mod history;
mod identity;
mod import;
mod json_body;
mod login_operations;
mod openapi;
mod openid_login;
mod operation;
mod plugins;
mod precondition;
mod problem;
mod reports;
mod resources;
mod roles;
mod rollback;
mod schema;
mod scopes;
mod secrets;
mod sending;
mod session;
mod shapes;
mod statistics;
mod sync;
mod table;
mod unique_fields;
mod users;
mod view;
mod writing;

pub use apis::{ENVIRONMENT_KEYS, Ticker};
pub use boxed_handler::BoxedHandler;
pub use delegate::Delegate;
pub(crate) use fleet::MAX_USED;
pub use fleet::{DRAINS, GatewayReport, Gateways, PREFIX as REPORTS, ReportResponse, Rollout};
pub(crate) use history::redact as redact_difference;
pub use json_body::{Json, as_problem};
pub use operation::KnownQuery;
pub use precondition::{names, tag_of};
pub use problem::Problem;
pub use sending::ListenerOf;
pub use view::{FileText, FileTexts};

use crate::access::password::Passwords;
use crate::access::{Attempts, Caller, EVERYWHERE, Role, Token, TokenHash, Users};
use crate::analytics::Analytics;
use crate::analytics::chart_annotations::ChartAnnotations;
use crate::attempt_counter::AttemptCounter;
use crate::events::Events;
use crate::follow::StateHandle;
use crate::operational::OperationalStore;
use crate::outbox::Outbox;
use crate::secrets::SecretReadings;
use crate::webhook_addresses::WebhookAddressPolicy;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::map_response;
use axum::{Extension, Router};
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore};
use weir_dialect::{DialectSet, PluginCheck};
use weir_plugin::Registry;
use weir_store::{Store, StoreError};

/// The largest body of a call, in bytes.
const MAX_BODY: usize = 16 << 20;

/// The settings and services of the API.
pub struct ApiOptions {
    /// The users.
    pub users: Users,
    /// The state of the configuration that this process serves or would serve.
    pub followed: StateHandle,
    /// The dialects, to check what would be served.
    pub dialects: DialectSet,
    /// The plugins, for such checks.
    pub registry: fn() -> Registry,
    /// What gateways can serve of plugins.
    pub plugin_check: PluginCheck,
    /// The gateways that report.
    pub gateways: Gateways,
    /// The analytics that are kept here; `None`: they are off.
    pub analytics: Option<Analytics>,
    /// The configuration files that are served in addition to the store.
    pub files: FileTexts,
    /// The source of the health of upstreams; `None`: no calls are served here.
    pub health: Option<Arc<dyn health::HealthSource>>,
    /// Which addresses documents are fetched from.
    pub reach: Arc<WebhookAddressPolicy>,
    /// Which addresses secrets are tested at that nothing served refers to.
    pub secret_reach: Arc<WebhookAddressPolicy>,
    /// The address at which the gateway of this process takes calls; `None`: it serves none.
    pub listener: Option<ListenerOf>,
    /// The source of the state of secrets; `None`: nothing here asks for them.
    pub secrets: Option<Arc<dyn SecretReadings>>,
    /// The store of what is not configuration.
    pub operational: OperationalStore,
    /// Sends mails and webhooks.
    pub outbox: Outbox,
    /// Whether changes are refused: files are served, and there is no store that would keep them.
    pub is_read_only: bool,
    /// Hashes passwords.
    pub passwords: Passwords,
}

/// Without users, gateways and files; with native documents only.
impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            users: Users::default(),
            followed: StateHandle::default(),
            dialects: DialectSet::new(vec![Arc::new(weir_native::NativeDialect)]),
            registry: weir_plugins::registry,
            plugin_check: PluginCheck::default(),
            gateways: Gateways::default(),
            analytics: None,
            files: FileTexts::default(),
            health: None,
            reach: Arc::default(),
            secret_reach: Arc::default(),
            listener: None,
            secrets: None,
            operational: OperationalStore::in_memory(),
            outbox: Outbox::without_mail(OperationalStore::in_memory()),
            is_read_only: false,
            passwords: Passwords::default(),
        }
    }
}

/// In the extensions of a call: what the store holds is not to be changed.
#[derive(Debug, Clone, Copy)]
struct ReadOnly;

/// The API.
pub struct Api {
    store: Arc<dyn Store>,
    options: ApiOptions,
    resources: document_cache::Resources,
    /// The rows of lists.
    index: view::Index,
    /// The plugins with their names in all dialects.
    catalogue: std::sync::OnceLock<Vec<crate::catalogue::CataloguePlugin>>,
    /// The turn of who writes entities of API management. It is fair.
    managing: Mutex<()>,
    /// Turns of the streams for which everything is read.
    reading: Semaphore,
    /// Logins of the last minutes.
    attempts: Attempts,
    /// Calls, fetched documents and tested secrets of the last minute, by who asked for them.
    tries: AttemptCounter,
    /// The sources of callers' identities.
    identity: identity::CachedSources,
    /// The developers of portals.
    developers: crate::developers::DeveloperStore,
    /// Asks identity providers.
    openid: crate::access::openid::client::Client,
    /// The events for browsers.
    events: Events,
    /// The latest commits, for charts.
    marks: ChartAnnotations,
}

impl Api {
    /// Reads what the store holds and follows it from then on. To be called inside of a tokio runtime.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(store: Arc<dyn Store>, options: ApiOptions) -> Result<Arc<Self>, StoreError> {
        let resources = document_cache::Resources::open(
            Arc::clone(&store),
            (options.registry)(),
            options.dialects.clone(),
            options.plugin_check.clone(),
        )
        .await?;
        let prefixes = options.dialects.prefixes().collect();
        let (commits, waiting) = crate::events::commits();
        options
            .gateways
            .open(Arc::clone(&store), prefixes, commits)
            .await?;
        let (files, dialects) = (options.files.clone(), options.dialects.clone());
        let index = view::Index::open(Arc::clone(&store), files, dialects).await?;
        let (operational, passwords) = (options.operational.clone(), options.passwords.clone());
        let api = Arc::new(Self {
            developers: crate::developers::DeveloperStore::new(operational, passwords),
            store,
            options,
            resources,
            index,
            catalogue: std::sync::OnceLock::new(),
            managing: Mutex::new(()),
            reading: Semaphore::new(sync::MAX_READING),
            attempts: Attempts::default(),
            tries: AttemptCounter::default(),
            identity: identity::CachedSources::default(),
            openid: crate::access::openid::client::Client::default(),
            events: Events::new(epoch()),
            marks: ChartAnnotations::default(),
        });
        if let Some(analytics) = &api.options.analytics {
            let known = Arc::downgrade(&api);
            let services = move || known.upgrade().map(|it| statistics::services(&it));
            analytics.find_services_by(Arc::new(services));
        }
        tokio::spawn(events::watch(Arc::downgrade(&api), waiting));
        Ok(api)
    }

    /// Its paths. Callers are expected in the calls' extensions ([`crate::access::protect`]).
    pub fn router(self: &Arc<Self>) -> Router {
        let router = table::router()
            .fallback(async || Problem::not_found("this path"))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .layer(map_response(|answer| json_body::as_problem(answer, MAX_BODY)))
            .with_state(Arc::clone(self));
        match self.options.is_read_only {
            true => router.layer(Extension(ReadOnly)),
            false => router,
        }
    }
}

/// What distinguishes this process from others.
fn epoch() -> String {
    let random = Token::random().map(|it| TokenHash::of(it.as_str()).to_string());
    random.unwrap_or_default().chars().take(8).collect()
}

/// Whether the caller may do everywhere what the role may.
fn demand(caller: &Caller, role: Role) -> Result<(), Problem> {
    match caller.may(role, EVERYWHERE) {
        true => Ok(()),
        false => {
            let detail = format!("{} may not do this", caller.name());
            Err(Problem::new(StatusCode::FORBIDDEN, detail))
        }
    }
}

/// Whether a call only asks what it would change, or an answer only says that.
pub(crate) fn is_dry_run(headers: &HeaderMap) -> bool {
    headers
        .get("weir-dry-run")
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}
