//! The listeners of the Admin APIs. They answer as soon as the store is open, and say so until then.

use super::Control;
use super::declared::Declareds;
use super::dialect_admin;
use super::health::Health;
use super::plan::{self, Management};
use super::proxy::{Starter, bind};
use super::trust;
use crate::args::RoleArg;
use anyhow::Context;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tower::ServiceExt;
use weir_control::access::password::Passwords;
use weir_control::access::{Audit, Guard, Users, protect};
use weir_control::analytics::Analytics;
use weir_control::api::{Api, ApiOptions, FileTexts, Gateways, ListenerOf, Problem, Ticker};
use weir_control::environment_routes::RoutesOfAllEnvironments;
use weir_control::follow::StateHandle;
use weir_control::http::ForAdminApis;
use weir_control::last_use;
use weir_control::listen::{self, Tls};
use weir_control::operational::OperationalStore;
use weir_control::outbox::{self, Outbox, WebhookAddressPolicy};
use weir_control::quotas::watch::QuotaWatcher;
use weir_control::quotas::{LocalUsage, Meter};
use weir_control::secrets::Cache;
use weir_dialect::{
    AdminApi, AdminContext, Counts, DialectName, DialectSet, ForeignRoutes, Listener, Node, PluginCheck,
    Statistics, ThroughOwnApi,
};
use weir_plugin::SharedRecords;
use weir_plugins::proxy_cache::Caches;
use weir_store::{Store, StoreError};
use weir_telemetry::metrics;

/// For how long the audit log of a process without a store is kept. No API shows it.
const AUDIT_BESIDE_FILES: Duration = Duration::from_secs(60);

/// A dialect, once it is open.
pub type LazyRouter = Arc<OnceLock<Router>>;

/// An Admin API's listener.
struct AdminListener {
    dialect: DialectName,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
}

/// The listeners, bound.
pub struct Listeners(Vec<AdminListener>);

impl Listeners {
    /// Binds those that are wanted.
    pub fn bind(management: &Management) -> anyhow::Result<Self> {
        let each = management
            .admins
            .iter()
            .flat_map(|admin| admin.listeners.iter().map(move |listen| (admin, listen)));
        // All of them show the same.
        let mut tls_config = None;
        let mut bound = Vec::new();
        for (admin, listen) in each {
            if listen.is_tls && tls_config.is_none() {
                tls_config = Some(Arc::new(admin_tls(management)?));
            }
            bound.push(AdminListener {
                dialect: admin.dialect,
                listener: bind(admin.flag, listen.address)?,
                tls: tls_config.clone().filter(|_| listen.is_tls),
            });
        }
        Ok(Self(bound))
    }

    /// Whether none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and addresses of what is served, for the `ready` line.
    pub fn addresses(&self, dialects: &DialectSet) -> std::io::Result<Vec<(String, String)>> {
        let named = |bound: &AdminListener| {
            let title = dialects.get(bound.dialect).map_or("", |it| it.title());
            let name = match bound.dialect {
                DialectName::NATIVE => format!("{title}'s API"),
                _ => format!("{title}'s Admin API"),
            };
            let scheme = if bound.tls.is_some() { "https" } else { "http" };
            let address = format!("{scheme}://{}", bound.listener.local_addr()?);
            let console = match bound.dialect {
                DialectName::NATIVE => Some(("the console".to_owned(), format!("{address}/ui/"))),
                _ => None,
            };
            Ok([Some((name, address)), console].into_iter().flatten())
        };
        let all = self.0.iter().map(named).collect::<std::io::Result<Vec<_>>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Serves them until `control` drains. Returns the part that is to be filled in once the store is open.
    pub fn serve(self, control: &mut Control) -> std::io::Result<AdminApis> {
        let mut dialects: Vec<(DialectName, LazyRouter)> = Vec::new();
        for bound in self.0 {
            // A dialect is opened once, however many listeners it has.
            let known = dialects.iter().find(|(dialect, _)| *dialect == bound.dialect);
            let late = match known {
                Some((_, late)) => Arc::clone(late),
                None => {
                    dialects.push((bound.dialect, Arc::default()));
                    dialects
                        .last()
                        .map(|(_, late)| Arc::clone(late))
                        .unwrap_or_default()
                }
            };
            let listener = tokio::net::TcpListener::from_std(bound.listener)?;
            let router = match bound.dialect {
                // Its pages are shown whether or not the store can be reached.
                DialectName::NATIVE => {
                    weir_console::router(assets()?).merge(Router::new().fallback(pass_on).with_state(late))
                }
                _ => Router::new().fallback(pass_on_foreign).with_state(late),
            };
            control.listen(listen::Listener::new(listener, bound.tls), router);
        }
        Ok(AdminApis(dialects))
    }
}

/// Opens the Admin APIs over files that are served without a store, at their usual addresses. If another program listens
/// there, Weir opens none, as no flag asks for it.
pub async fn open_beside_files(
    control: &mut Control,
    starter: &Starter<'_>,
    (dialects, declared): (DialectSet, Declareds),
    caches: Caches,
) -> anyhow::Result<Vec<(String, String)>> {
    let management = plan::beside_files(&starter.args.management, &declared.dialects());
    let listeners = match Listeners::bind(&management) {
        Ok(listeners) => listeners,
        Err(error) => {
            let wanted = || management.admins.iter().filter(|it| !it.listeners.is_empty());
            let files = wanted().filter_map(|it| Some(dialects.get(it.dialect)?.file_form().name));
            let flags = wanted().map(|it| it.flag);
            let (files, flags): (Vec<_>, Vec<_>) = (files.collect(), flags.collect());
            tracing::warn!(
                "the Admin API for the {} cannot be opened: {error:#}; set another address with {}",
                plan::in_words(&files),
                plan::in_words(&flags)
            );
            return Ok(Vec::new());
        }
    };
    let addresses = listeners.addresses(&dialects)?;
    let shared = Shared {
        dialects,
        followed: StateHandle::default(),
        published: Default::default(),
        gateways: Gateways::default(),
        history: Duration::ZERO,
        audit: AUDIT_BESIDE_FILES,
        recorded: Default::default(),
        node: node(starter, &management),
        admin_listeners: self::listeners(&management),
        health: Arc::new(Health(Arc::clone(&control.status))),
        reach: Arc::default(),
        secret_reach: Arc::default(),
        secrets: Cache::default(),
        caches: Some(caches),
        shared_of_plugins: Vec::new(),
        declared,
        analytics: starter.analytics.kept.clone(),
        files: FileTexts::default(),
        outbox: super::outbox::open(&starter.args.outbox, OperationalStore::in_memory())?,
        counted: Arc::new(|_, _| None),
        operational: OperationalStore::in_memory(),
        is_read_only: true,
        api: Arc::default(),
    };
    // There are no users: nothing outlives the process.
    let store = Arc::new(weir_store::memory::MemoryStore::new());
    listeners.serve(control)?.open(store, &shared).await?;
    Ok(addresses)
}

/// The console's pages.
pub fn assets() -> std::io::Result<weir_console::Archive> {
    weir_console::assets().map_err(std::io::Error::other)
}

/// The TLS settings of Admin APIs: the certificate that they show, and the clients that they let in.
fn admin_tls(management: &Management) -> anyhow::Result<Tls> {
    match &management.admin_tls {
        Some(files) => Tls::from_files(files.clone()).context("TLS of the Admin APIs"),
        None => {
            let (certificate, key) = trust::own_certificate()?;
            let (certificate, key) = (
                certificate.der().clone(),
                PrivatePkcs8KeyDer::from(key.serialize_der()),
            );
            Ok(Tls::showing(certificate, key.into())?)
        }
    }
}

/// What is answered until the store is open.
const NOT_OPEN: &str = "the store is not open yet or unreachable; see /status";

/// Weir's own API, and the portal.
pub async fn pass_on(State(router): State<LazyRouter>, request: Request) -> Response {
    match router.get() {
        Some(router) => router.clone().oneshot(request).await.into_response(),
        None => Problem::new(StatusCode::SERVICE_UNAVAILABLE, NOT_OPEN).into_response(),
    }
}

/// An Admin API of another dialect, whose texts are in `message`.
async fn pass_on_foreign(State(router): State<LazyRouter>, request: Request) -> Response {
    match router.get() {
        Some(router) => router.clone().oneshot(request).await.into_response(),
        None => {
            let body = weir_control::api::Json(serde_json::json!({ "message": NOT_OPEN }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

/// The state that the Admin APIs share with the rest of the process.
pub struct Shared {
    pub dialects: DialectSet,
    pub followed: StateHandle,
    /// What is published in all environments, once the store is open.
    pub published: tokio::sync::OnceCell<Arc<dyn ForeignRoutes>>,
    pub gateways: Gateways,
    /// For how long the store knows what was changed.
    pub history: Duration,
    /// For how long the audit log knows who wrote what.
    pub audit: Duration,
    /// The audit log, once it is opened.
    pub recorded: std::sync::OnceLock<Audit>,
    /// The facts about the process for Admin APIs.
    pub node: Node,
    /// The listeners of each Admin API.
    pub admin_listeners: Vec<(DialectName, Vec<Listener>)>,
    pub health: Arc<Health>,
    /// Which addresses documents are fetched from.
    pub reach: Arc<WebhookAddressPolicy>,
    /// Which addresses secrets are tested at that nothing served refers to.
    pub secret_reach: Arc<WebhookAddressPolicy>,
    /// The values of secrets, as far as this process knows them.
    pub secrets: Cache,
    /// The responses that this process keeps; `None`: it serves no calls.
    pub caches: Option<Caches>,
    /// The records that plugins share over all gateways.
    pub shared_of_plugins: Vec<(&'static str, Arc<dyn SharedRecords>)>,
    /// The configurations that are in files rather than in the store.
    pub declared: Declareds,
    /// The analytics that are kept here.
    pub analytics: Option<Analytics>,
    /// The files that are served, for lists.
    pub files: FileTexts,
    /// The store of what is not configuration.
    pub operational: OperationalStore,
    /// Whether Weir's own API refuses changes: no store would keep them.
    pub is_read_only: bool,
    /// Weir's own API, once it is open.
    pub api: Arc<tokio::sync::OnceCell<Arc<Api>>>,
    /// Sends mails and webhooks.
    pub outbox: Outbox,
    /// The counts of this process's limits.
    pub counted: LocalUsage,
}

/// Counts of connections and requests, for Admin APIs.
struct MetricsRecorder(Arc<metrics::Registry>);

impl Statistics for MetricsRecorder {
    fn counts(&self) -> Counts {
        let totals = self.0.totals();
        Counts {
            open_connections: totals.connections_active,
            accepted_connections: totals.connections_accepted,
            requests: totals.requests,
        }
    }
}

fn listener(address: &SocketAddr, is_tls: bool) -> Listener {
    Listener {
        ip: address.ip().to_string(),
        port: address.port(),
        is_tls,
    }
}

/// The facts for Admin APIs about a process that listens at these addresses.
pub fn node(starter: &Starter<'_>, management: &Management) -> Node {
    let args = starter.args;
    let mut listeners = Vec::new();
    if management.role != RoleArg::Control {
        listeners.extend(args.listen().iter().map(|address| listener(address, false)));
        listeners.extend(args.listen_tls().iter().map(|address| listener(address, true)));
    }
    Node {
        statistics: Some(Arc::new(MetricsRecorder(Arc::clone(&starter.metrics)))),
        plugin_metrics: Arc::clone(&starter.plugin_metrics),
        log_folder: starter.log_folder.clone(),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        listeners,
        http: Some(Arc::new(ForAdminApis {
            reach: Arc::new(WebhookAddressPolicy {
                allowed: args.outbox.webhook_allow.clone(),
            }),
        })),
        ..Node::default()
    }
}

/// The listeners of each Admin API.
pub fn listeners(management: &Management) -> Vec<(DialectName, Vec<Listener>)> {
    let each = management.admins.iter().map(|admin| {
        let all = admin.listeners.iter();
        let all = all.map(|it| listener(&it.address, it.is_tls));
        (admin.dialect, all.collect())
    });
    each.collect()
}

/// The dialects that are waited for.
pub struct AdminApis(Vec<(DialectName, LazyRouter)>);

impl AdminApis {
    /// Whether none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens them over a store.
    ///
    /// # Errors
    /// The store cannot be read. Those that are open by then stay so; the others may be opened again.
    pub async fn open(&self, store: Arc<dyn Store>, shared: &Shared) -> Result<(), StoreError> {
        let users = Users::open(Arc::clone(&store), &shared.operational).await?;
        let audit = shared.audit_log(&store);
        shared.open_published(&store).await?;
        // Weir's own is the last: the others are below it, too.
        let mut others: Vec<(DialectName, Router)> = Vec::new();
        for (name, late) in &self.0 {
            if late.get().is_some() {
                continue;
            }
            let name = *name;
            let Some(dialect) = shared.dialects.get(name) else {
                continue;
            };
            let router = match dialect.open_admin(shared.context(name, &store)) {
                Some(opening) => {
                    let AdminApi { router, revisions } = opening.await?;
                    if let Some(revisions) = revisions {
                        shared.health.0.set_revisions(name, revisions);
                    }
                    others.push((name, router.clone()));
                    router
                }
                // Weir's own.
                None => {
                    let api = shared.api(&store, &users).await?;
                    shared.with_dialects(api.router(), &others, &store)
                }
            };
            let guard = Guard::new(Arc::clone(dialect), users.clone(), audit.clone());
            // Nothing else fills it in.
            let _is_first = late.set(protect(router, guard));
        }
        Ok(())
    }
}

impl Shared {
    /// The audit log of a store. It is opened once and shared.
    pub fn audit_log(&self, store: &Arc<dyn Store>) -> Audit {
        let open = || Audit::open(Arc::clone(store), self.audit);
        self.recorded.get_or_init(open).clone()
    }

    /// What is published in all environments. It is opened once and shared.
    async fn open_published(&self, store: &Arc<dyn Store>) -> Result<(), StoreError> {
        let open = async || {
            let followed = self.followed.clone();
            let opened = RoutesOfAllEnvironments::open(Arc::clone(store), &self.dialects, followed).await?;
            Ok(Arc::new(opened) as Arc<dyn ForeignRoutes>)
        };
        self.published.get_or_try_init(open).await.map(drop)
    }

    /// Weir's own API. It is opened once and shared.
    pub async fn api(&self, store: &Arc<dyn Store>, users: &Users) -> Result<Arc<Api>, StoreError> {
        let shared = self;
        let opened = self.api.get_or_try_init(|| {
            let options = ApiOptions {
                users: users.clone(),
                followed: shared.followed.clone(),
                dialects: shared.dialects.clone(),
                registry: weir_plugins::registry,
                plugin_check: PluginCheck::new(shared.node.log_folder.clone()),
                gateways: shared.gateways.clone(),
                analytics: shared.analytics.clone(),
                files: shared.files.clone(),
                operational: shared.operational.clone(),
                passwords: Passwords::default(),
                outbox: shared.outbox.clone(),
                health: shared.caches.is_some().then(|| Arc::clone(&shared.health) as _),
                is_read_only: shared.is_read_only,
                secrets: Some(Arc::new(shared.secrets.clone())),
                listener: Some(shared.listener()),
                reach: Arc::clone(&shared.reach),
                secret_reach: Arc::clone(&shared.secret_reach),
            };
            async move {
                let api = Api::open(Arc::clone(store), options).await?;
                let ticker = Ticker::new(Arc::clone(&api), shared.outbox.holder());
                tokio::spawn(ticker.run(crate::clock::unix_seconds));
                tokio::spawn(outbox::feed::run(Arc::clone(store), shared.outbox.clone()));
                let meter = Meter::new(Arc::clone(&shared.counted), shared.analytics.clone());
                let watch = QuotaWatcher::new(Arc::clone(store), shared.outbox.clone(), meter);
                tokio::spawn(watch.run());
                let used = shared.gateways.used().clone();
                tokio::spawn(last_use::keep(
                    used,
                    Arc::clone(store),
                    shared.operational.clone(),
                ));
                Ok(api)
            }
        });
        opened.await.cloned()
    }

    /// The address at which this process takes calls over cleartext.
    fn listener(&self) -> ListenerOf {
        let status = Arc::clone(&self.health.0);
        Arc::new(move || {
            let mut address = *status.gateway()?.bound().plain.first()?;
            // A gateway that listens everywhere is here, too.
            match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
                IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
                _ => {}
            }
            Some(address)
        })
    }

    /// Weir's own API with the Admin APIs of the originals below it.
    fn with_dialects(&self, own: Router, opened: &[(DialectName, Router)], store: &Arc<dyn Store>) -> Router {
        let mut whole = own;
        let originals = self.dialects.iter();
        for dialect in originals.filter(|it| it.name() != DialectName::NATIVE) {
            let name = dialect.name();
            let known = opened.iter().find(|(it, _)| *it == name);
            let router = match known {
                Some((_, router)) => router.clone(),
                None => dialect_admin::late(dialect, self.context(name, store)),
            };
            let router = router.layer(Extension(ThroughOwnApi));
            let router = dialect_admin::below(router, dialect, self.is_read_only);
            whole = whole.nest_service(&dialect_admin::path(dialect.as_ref()), router);
        }
        whole
    }

    fn context(&self, name: DialectName, store: &Arc<dyn Store>) -> AdminContext {
        let listeners = self.admin_listeners.iter().find(|(known, _)| *known == name);
        AdminContext {
            store: Arc::clone(store),
            declared: self.declared.get(name).cloned(),
            routes: match self.published.get() {
                Some(published) => Arc::clone(published),
                None => Arc::new(self.followed.clone()),
            },
            node: Node {
                health: Some(Arc::clone(&self.health) as _),
                caches: self.caches.clone(),
                shared: self.shared_of_plugins.clone(),
                admin_listeners: listeners.map_or(Vec::new(), |(_, all)| all.clone()),
                ..self.node.clone()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn until_the_store_is_open_weirs_own_api_answers_with_problems() {
        let answered = async |router: Router| {
            let request = Request::get("/api/v1/environments").body(axum::body::Body::empty());
            let answer = router
                .oneshot(request.expect("a request"))
                .await
                .expect("an answer");
            let kind = answer.headers().get("content-type").cloned().expect("a type");
            let kind = kind.to_str().expect("a text").to_owned();
            (answer.status(), kind)
        };
        let late = LazyRouter::default();
        let own = Router::new().fallback(pass_on).with_state(Arc::clone(&late));
        let foreign = Router::new().fallback(pass_on_foreign).with_state(late);
        for (router, kind) in [(own, "application/problem+json"), (foreign, "application/json")] {
            let expected = (StatusCode::SERVICE_UNAVAILABLE, kind.to_owned());
            assert_eq!(answered(router).await, expected);
        }
    }
}
