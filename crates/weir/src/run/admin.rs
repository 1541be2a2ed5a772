//! The listeners of the Admin APIs. They answer as soon as the store is open, and say so until then.

use super::Control;
use super::health::Health;
use super::plan::Management;
use super::proxy::bind;
use crate::args::{ManagementArgs, RoleArg, RouterArgs, RunArgs};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tower::ServiceExt;
use weir_control::access::{Audit, Door, Guard, Role, Users, protect};
use weir_control::api::{Api, ApiOptions, Gateways};
use weir_control::follow::{DoorOptions, Followed};
use weir_kong::admin::{Counts, Listener, Node, Statistics};
use weir_store::{Store, StoreError};
use weir_telemetry::metrics;

/// An Admin API's listener.
struct Bound {
    door: Door,
    listener: TcpListener,
    router: Arc<OnceLock<Router>>,
}

/// The listeners, bound.
pub struct Listeners(Vec<Bound>);

impl Listeners {
    /// Binds those that are wanted.
    pub fn bind(management: &Management) -> anyhow::Result<Self> {
        let wanted = [
            (Door::Kong, "--kong-admin", management.kong_admin),
            (Door::Apisix, "--apisix-admin", management.apisix_admin),
            (Door::Native, "--console", management.console),
        ];
        let wanted = wanted
            .into_iter()
            .filter_map(|(door, flag, address)| Some((door, flag, address?)));
        let bound = wanted.map(|(door, flag, address)| {
            Ok(Bound {
                door,
                listener: bind(flag, address)?,
                router: Arc::default(),
            })
        });
        Ok(Self(bound.collect::<anyhow::Result<_>>()?))
    }

    /// What is served where, for the `ready` line.
    pub fn addresses(&self) -> std::io::Result<Vec<(&'static str, SocketAddr)>> {
        let named = self.0.iter().map(|bound| {
            let name = match bound.door {
                Door::Kong => "Kong's Admin API",
                Door::Apisix => "APISIX's Admin API",
                Door::Native => "console",
            };
            Ok((name, bound.listener.local_addr()?))
        });
        named.collect()
    }

    /// Serves them until `control` drains. Gives what is to be filled in once the store is open.
    pub fn serve(self, control: &mut Control) -> std::io::Result<Doors> {
        let mut doors = Vec::new();
        for bound in self.0 {
            let listener = tokio::net::TcpListener::from_std(bound.listener)?;
            let late = Router::new()
                .fallback(pass_on)
                .with_state(Arc::clone(&bound.router));
            control.listen(listener, late);
            doors.push((bound.door, bound.router));
        }
        Ok(Doors(doors))
    }
}

async fn pass_on(State(router): State<Arc<OnceLock<Router>>>, request: Request) -> Response {
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
    pub doors: DoorOptions,
    pub followed: Followed,
    pub gateways: Gateways,
    /// For how long the store knows what was changed.
    pub history: Duration,
    /// What Kong's clients are told of the process.
    pub node: Node,
    pub health: Arc<Health>,
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
            .map(|address| at(address, false))
            .collect(),
        ..Node::default()
    }
}

/// The doors that are waited for.
pub struct Doors(Vec<(Door, Arc<OnceLock<Router>>)>);

impl Doors {
    /// Whether none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens them over a store.
    pub async fn open(self, store: Arc<dyn Store>, shared: &Shared) -> Result<(), StoreError> {
        let users = Users::open(Arc::clone(&store)).await?;
        let audit = Audit::open(Arc::clone(&store));
        for (door, late) in self.0 {
            let router = match door {
                Door::Kong => {
                    let options = weir_kong::admin::AdminOptions {
                        translation: shared.routers.kong(),
                        node: Node {
                            health: Some(Arc::clone(&shared.health) as _),
                            ..shared.node.clone()
                        },
                    };
                    weir_kong::admin::Admin::open(Arc::clone(&store), options)
                        .await?
                        .router()
                }
                Door::Apisix => {
                    let options = weir_apisix::AdminOptions {
                        // The guard knows them.
                        keys: Vec::new(),
                        health: Some(Arc::clone(&shared.health) as _),
                        ..weir_apisix::AdminOptions::new(SystemTime::now)
                    };
                    let admin = weir_apisix::Admin::open(Arc::clone(&store), options).await?;
                    Router::new()
                        .fallback(by_path)
                        .with_state((admin.control_router(), admin.router()))
                }
                Door::Native => {
                    let options = ApiOptions {
                        users: users.clone(),
                        followed: shared.followed.clone(),
                        doors: shared.doors,
                        registry: weir_plugins::registry,
                        gateways: shared.gateways.clone(),
                    };
                    Api::open(Arc::clone(&store), options).await?.router()
                }
            };
            let guard = Guard {
                door,
                users: users.clone(),
                audit: audit.clone(),
                keys: shared.access.keys(door),
            };
            // Nobody else fills it in.
            let _is_first = late.set(protect(router, guard));
        }
        Ok(())
    }
}

/// Keys of the doors themselves.
#[derive(Clone)]
pub struct Access {
    apisix_keys: Vec<(String, Role)>,
}

impl Access {
    /// Those that the flags name.
    pub fn of(args: &ManagementArgs) -> Self {
        let admin = args.apisix_admin_key.iter().map(|key| (key.clone(), Role::Admin));
        let viewer = args.apisix_viewer_key.iter().map(|key| (key.clone(), Role::Read));
        Self {
            apisix_keys: admin.chain(viewer).collect(),
        }
    }

    fn keys(&self, door: Door) -> Vec<(String, Role)> {
        match door {
            Door::Apisix => self.apisix_keys.clone(),
            Door::Kong | Door::Native => Vec::new(),
        }
    }
}
