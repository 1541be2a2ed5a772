//! The listeners of the Admin APIs. They answer as soon as the store is open, and say so until then.

use super::Control;
use super::declared::Declareds;
use super::health::Health;
use super::plan::{self, Management};
use super::proxy::{Starter, bind};
use super::trust;
use crate::args::{AdminListen, ManagementArgs, RoleArg, RouterArgs, RunArgs};
use anyhow::Context;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tower::ServiceExt;
use weir_control::access::{Audit, Guard, Role, Users, protect};
use weir_control::api::{Api, ApiOptions, Gateways};
use weir_control::follow::{DialectOptions, Followed};
use weir_control::listen::{self, Tls};
use weir_kong::admin::{Counts, Listener, Node, Statistics};
use weir_model::Dialect;
use weir_plugins::proxy_cache::Caches;
use weir_store::{Store, StoreError};
use weir_telemetry::metrics;

/// For how long the audit log of a process without a store is kept. No API shows it.
const AUDIT_BESIDE_FILES: Duration = Duration::from_secs(60);

/// A dialect, once it is open.
type Late = Arc<OnceLock<Router>>;

/// An Admin API's listener.
struct Bound {
    dialect: Dialect,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
}

/// The listeners, bound.
pub struct Listeners(Vec<Bound>);

impl Listeners {
    /// Binds those that are wanted.
    pub fn bind(management: &Management) -> anyhow::Result<Self> {
        let wanted = [
            (Dialect::Kong, "--kong-admin", &management.kong_admin),
            (Dialect::Apisix, "--apisix-admin", &management.apisix_admin),
            (Dialect::Native, "--console", &management.console),
        ];
        let each = wanted
            .into_iter()
            .flat_map(|(dialect, flag, all)| all.iter().map(move |listen| (dialect, flag, listen)));
        // All of them show the same.
        let mut shown = None;
        let mut bound = Vec::new();
        for (dialect, flag, listen) in each {
            if listen.is_tls && shown.is_none() {
                shown = Some(Arc::new(admin_tls(management)?));
            }
            bound.push(Bound {
                dialect,
                listener: bind(flag, listen.address)?,
                tls: shown.clone().filter(|_| listen.is_tls),
            });
        }
        Ok(Self(bound))
    }

    /// What is served where, for the `ready` line.
    pub fn addresses(&self) -> std::io::Result<Vec<(&'static str, String)>> {
        let named = |bound: &Bound| {
            let name = match bound.dialect {
                Dialect::Kong => "Kong's Admin API",
                Dialect::Apisix => "APISIX's Admin API",
                Dialect::Native => "Weir's API",
            };
            let scheme = if bound.tls.is_some() { "https" } else { "http" };
            let address = format!("{scheme}://{}", bound.listener.local_addr()?);
            let console = match bound.dialect {
                Dialect::Native => Some(("the console", format!("{address}/ui/"))),
                _ => None,
            };
            Ok([Some((name, address)), console].into_iter().flatten())
        };
        let all = self.0.iter().map(named).collect::<std::io::Result<Vec<_>>>()?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Serves them until `control` drains. Gives what is to be filled in once the store is open.
    pub fn serve(self, control: &mut Control) -> std::io::Result<AdminApis> {
        let mut dialects: Vec<(Dialect, Late)> = Vec::new();
        for bound in self.0 {
            // However many listeners a dialect has, it is opened once.
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
            let router = Router::new().fallback(pass_on).with_state(late);
            let router = match bound.dialect {
                // Its pages are shown whether or not the store can be reached.
                Dialect::Native => weir_console::router(assets()?).merge(router),
                _ => router,
            };
            control.listen(listen::Listener::new(listener, bound.tls), router);
        }
        Ok(AdminApis(dialects))
    }
}

/// Opens Kong's Admin API beside a `kong.yml` that is served without a store, at its usual address. Another program may
/// listen there; then there is none, as no flag asks for it.
pub async fn open_beside_files(
    control: &mut Control,
    starter: &Starter<'_>,
    declared: Declareds,
    caches: Caches,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let management = plan::beside_files(&starter.args.management);
    let listeners = match Listeners::bind(&management) {
        Ok(listeners) => listeners,
        Err(error) => {
            tracing::warn!(
                "there is no Admin API for the kong.yml: {error:#}; --kong-admin names another address"
            );
            return Ok(Vec::new());
        }
    };
    let routers = starter.args.routers;
    let shared = Shared {
        access: Access::of(&starter.args.management, routers.settings()),
        routers,
        has_kong_config: true,
        dialects: DialectOptions {
            kong: None,
            apisix: None,
            dialect: weir_model::Dialect::Kong,
        },
        followed: Followed::default(),
        gateways: Gateways::default(),
        history: Duration::ZERO,
        audit: AUDIT_BESIDE_FILES,
        node: node(starter.args, &management, Arc::clone(&starter.metrics)),
        health: Arc::new(Health(Arc::clone(&control.status))),
        caches: Some(caches),
        declared,
    };
    let addresses = listeners.addresses()?;
    // There are no users: nothing outlives the process.
    let store = Arc::new(weir_store::memory::MemoryStore::new());
    listeners.serve(control)?.open(store, &shared).await?;
    Ok(addresses)
}

/// The console's pages.
fn assets() -> std::io::Result<weir_console::Archive> {
    weir_console::assets().map_err(std::io::Error::other)
}

/// What Admin APIs show over TLS, and whom they let in.
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

async fn pass_on(State(router): State<Late>, request: Request) -> Response {
    match router.get() {
        Some(router) => router.clone().oneshot(request).await.into_response(),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "{\"message\":\"the store is away\"}\n",
        )
            .into_response(),
    }
}

/// APISIX's control API, which in the original has a port of its own, and the Admin API.
async fn by_path(State((control, admin)): State<(Router, Router)>, request: Request) -> Response {
    let router = match request.uri().path().starts_with("/v1/") {
        true => control,
        false => admin,
    };
    router.oneshot(request).await.into_response()
}

/// What the Admin APIs share with the rest of the process.
pub struct Shared {
    pub access: Access,
    pub routers: RouterArgs,
    /// Whether Kong's Admin API has `/config`.
    pub has_kong_config: bool,
    pub dialects: DialectOptions,
    pub followed: Followed,
    pub gateways: Gateways,
    /// For how long the store knows what was changed.
    pub history: Duration,
    /// For how long the audit log knows who wrote what.
    pub audit: Duration,
    /// What Kong's clients are told of the process.
    pub node: Node,
    pub health: Arc<Health>,
    /// The responses that this process keeps; `None`: it serves no calls.
    pub caches: Option<Caches>,
    /// What is configured by files rather than by the store.
    pub declared: Declareds,
}

/// Tells Kong's clients what is counted.
struct Counted(Arc<metrics::Registry>);

impl Statistics for Counted {
    fn counts(&self) -> Counts {
        let totals = self.0.totals();
        Counts {
            open_connections: totals.connections_active,
            accepted_connections: totals.connections_accepted,
            requests: totals.requests,
        }
    }
}

/// What Kong's clients are told of a process that listens at these addresses.
pub fn node(args: &RunArgs, management: &Management, metrics: Arc<metrics::Registry>) -> Node {
    let at = |address: &SocketAddr, is_tls: bool| Listener {
        ip: address.ip().to_string(),
        port: address.port(),
        is_tls,
    };
    let mut listeners = Vec::new();
    if management.role != RoleArg::Control {
        listeners.extend(args.listen().iter().map(|address| at(address, false)));
        listeners.extend(args.listen_tls().iter().map(|address| at(address, true)));
    }
    Node {
        statistics: Some(Arc::new(Counted(metrics))),
        hostname: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        listeners,
        admin_listeners: management
            .kong_admin
            .iter()
            .map(|listen: &AdminListen| at(&listen.address, listen.is_tls))
            .collect(),
        ..Node::default()
    }
}

/// The dialects that are waited for.
pub struct AdminApis(Vec<(Dialect, Late)>);

impl AdminApis {
    /// Whether none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens them over a store.
    pub async fn open(self, store: Arc<dyn Store>, shared: &Shared) -> Result<(), StoreError> {
        let users = Users::open(Arc::clone(&store)).await?;
        let audit = Audit::open(Arc::clone(&store), shared.audit);
        for (dialect, late) in self.0 {
            let router = match dialect {
                Dialect::Kong => {
                    let options = weir_kong::admin::AdminOptions {
                        translation: shared.routers.kong(),
                        others: Some(Arc::new(shared.followed.clone())),
                        node: Node {
                            health: Some(Arc::clone(&shared.health) as _),
                            caches: shared.caches.clone(),
                            ..shared.node.clone()
                        },
                        // A kong.yml is a Kong without a database, whatever else there is.
                        has_no_config: !shared.has_kong_config && shared.declared.kong.is_none(),
                    };
                    let admin = match &shared.declared.kong {
                        Some(file) => weir_kong::admin::Admin::over_file(Arc::clone(file), options).await?,
                        None => weir_kong::admin::Admin::open(Arc::clone(&store), options).await?,
                    };
                    admin.router()
                }
                Dialect::Apisix => {
                    let settings = shared.routers.settings();
                    let stock = weir_apisix::AdminOptions::new(SystemTime::now);
                    let keys = settings.keyring.as_ref().map(|keys| keys.0.clone());
                    let options = weir_apisix::AdminOptions {
                        // The guard knows them.
                        keys: Vec::new(),
                        health: Some(Arc::clone(&shared.health) as _),
                        settings,
                        keyring: weir_apisix::Keyring {
                            keys: keys.unwrap_or(stock.keyring.keys),
                            encrypts_fields: settings.encrypts_fields,
                        },
                        ..stock
                    };
                    let admin = match &shared.declared.apisix {
                        Some(file) => weir_apisix::Admin::over_file(Arc::clone(file), options).await?,
                        None => weir_apisix::Admin::open(Arc::clone(&store), options).await?,
                    };
                    shared.health.0.set_apisix(Arc::clone(&admin));
                    Router::new()
                        .fallback(by_path)
                        .with_state((admin.control_router(), admin.router()))
                }
                Dialect::Native => {
                    let options = ApiOptions {
                        users: users.clone(),
                        followed: shared.followed.clone(),
                        dialects: shared.dialects,
                        registry: weir_plugins::registry,
                        gateways: shared.gateways.clone(),
                    };
                    Api::open(Arc::clone(&store), options).await?.router()
                }
            };
            let guard = Guard {
                dialect,
                users: users.clone(),
                audit: audit.clone(),
                keys: shared.access.keys(dialect),
                is_open: dialect == Dialect::Apisix && !shared.routers.settings().admin.requires_key,
            };
            // Nobody else fills it in.
            let _is_first = late.set(protect(router, guard));
        }
        shared.health.0.admin_is_open();
        Ok(())
    }
}

/// Keys of the dialects themselves.
#[derive(Clone)]
pub struct Access {
    apisix_keys: Vec<(String, Role)>,
}

impl Access {
    /// Those that the flags name, and those of APISIX's own configuration.
    pub fn of(args: &ManagementArgs, settings: &weir_apisix::Settings) -> Self {
        let admin = args.apisix_admin_key.iter().map(|key| (key.clone(), Role::Admin));
        let viewer = args.apisix_viewer_key.iter().map(|key| (key.clone(), Role::Read));
        let configured = settings.admin.keys.iter().map(|it| {
            let role = match it.role {
                weir_apisix::Role::Admin => Role::Admin,
                weir_apisix::Role::Viewer => Role::Read,
            };
            (it.key.clone(), role)
        });
        Self {
            apisix_keys: admin.chain(viewer).chain(configured).collect(),
        }
    }

    fn keys(&self, dialect: Dialect) -> Vec<(String, Role)> {
        match dialect {
            Dialect::Apisix => self.apisix_keys.clone(),
            Dialect::Kong | Dialect::Native => Vec::new(),
        }
    }
}
