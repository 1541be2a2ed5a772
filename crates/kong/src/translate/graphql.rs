//! The GraphQL of services for plugins: for each service its costs, its queries, and where its
//! schema comes from.

use crate::document::{DegraphqlRoute, Document, Entity, GraphqlCost, Service, Target, Upstream};
use crate::schema::text;
use std::collections::HashMap;
use uuid::Uuid;
use weir_plugin::headers::is_value;
use weir_plugins::HttpServer;

/// A service of which entities say something.
#[derive(Debug, Clone)]
pub struct GraphqlService {
    /// Its id.
    pub id: Uuid,
    /// The address of its GraphQL; `None`: it has none, as its host is an upstream without targets, or its protocol is not
    /// HTTP.
    pub url: Option<String>,
    /// The `Host` that it expects, if that is not the one of the address.
    pub host: Option<String>,
    /// Whether its certificate must be good.
    pub verify_tls: bool,
    /// The costs of queries.
    pub costs: Vec<GraphqlCost>,
    /// Calls that are queries.
    pub routes: Vec<DegraphqlRoute>,
}

/// The port of targets that name none.
const TARGET_PORT: u16 = 8000;

/// All services of which entities say something, found once for all plugins that ask.
#[derive(Debug, Default)]
pub struct GraphqlServices {
    /// In the order of the document.
    all: Vec<GraphqlService>,
    /// The places of services in that list.
    places: HashMap<Uuid, usize>,
    /// The services of routes.
    of_routes: HashMap<Uuid, Uuid>,
}

impl GraphqlServices {
    /// Those of a document.
    pub fn of(document: &Document) -> Self {
        let all = services(document);
        if all.is_empty() {
            return Self::default();
        }
        let places = all.iter().enumerate().map(|(at, it)| (it.id, at)).collect();
        let routes = document.routes.iter().map(|it| &it.value);
        Self {
            all,
            places,
            of_routes: routes.filter_map(|it| Some((it.id, it.service?))).collect(),
        }
    }

    /// Those that an instance of this service and this route can meet: its service, or that of its route; all, if it has
    /// neither.
    pub fn for_plugin(&self, service: Option<Uuid>, route: Option<Uuid>) -> Vec<GraphqlService> {
        let service = match (service, route) {
            (None, None) => return self.all.clone(),
            (Some(service), _) => Some(service),
            (None, Some(route)) => self.of_routes.get(&route).copied(),
        };
        let place = service.and_then(|service| self.places.get(&service));
        place.map(|at| self.all[*at].clone()).into_iter().collect()
    }
}

fn services(document: &Document) -> Vec<GraphqlService> {
    let costs = &document.graphql_costs;
    let routes = &document.degraphql_routes;
    if costs.is_empty() && routes.is_empty() {
        return Vec::new();
    }
    let mut by_service: HashMap<Uuid, (Vec<GraphqlCost>, Vec<DegraphqlRoute>)> = HashMap::new();
    let mut of_all = Vec::new();
    for Entity { value, .. } in costs {
        match value.service {
            Some(service) => by_service.entry(service).or_default().0.push(value.clone()),
            None if of_all.len() < MOST_OF_ALL => of_all.push(value.clone()),
            None => {}
        }
    }
    for Entity { value, .. } in routes {
        by_service.entry(value.service).or_default().1.push(value.clone());
    }
    let servers = Servers::of(document);
    let services = document
        .services
        .iter()
        .filter_map(|Entity { value: service, .. }| {
            let (mut costs, routes) = by_service.remove(&service.id).unwrap_or_default();
            costs.extend(of_all.iter().cloned());
            if costs.is_empty() && routes.is_empty() {
                return None;
            }
            let (url, host) = servers.address(service).unzip();
            let host = host.flatten();
            Some(GraphqlService {
                id: service.id,
                url,
                host,
                verify_tls: service.tls_verify.unwrap_or(false),
                costs,
                routes,
            })
        });
    services.collect()
}

/// Costs without a service that are looked at: each counts for all services.
const MOST_OF_ALL: usize = 100;

/// Upstreams by their names, and the first target with a weight of each.
struct Servers<'d> {
    upstreams: HashMap<&'d str, &'d Upstream>,
    targets: HashMap<Uuid, &'d Target>,
}

impl<'d> Servers<'d> {
    fn of(document: &'d Document) -> Self {
        let mut servers = Self {
            upstreams: HashMap::new(),
            targets: HashMap::new(),
        };
        for Entity { value, .. } in &document.upstreams {
            servers.upstreams.entry(&value.name).or_insert(value);
        }
        let targets = document.targets.iter().map(|it| &it.value);
        for target in targets.filter(|it| it.weight > 0) {
            servers.targets.entry(target.upstream).or_insert(target);
        }
        servers
    }

    /// The address and the host for a service's schema. `None`: it cannot be asked over HTTP, which concerns
    /// this service alone.
    fn address(&self, service: &Service) -> Option<(String, Option<String>)> {
        matches!(service.protocol.as_str(), "http" | "https").then_some(())?;
        let path = service.path.as_deref().unwrap_or("/");
        let url = |host: &str, port: u16| {
            let host = match host.contains(':') && !host.starts_with('[') {
                true => format!("[{host}]"),
                false => host.to_owned(),
            };
            let url = format!("{}://{host}:{port}{path}", service.protocol);
            HttpServer::parse(&url).map(|_| url)
        };
        let Some(upstream) = self.upstreams.get(service.host.as_str()) else {
            return Some((url(&service.host, service.port)?, None));
        };
        let target = &self.targets.get(&upstream.id)?.target;
        let (host, port) = text::split_port(target).unwrap_or((target, None));
        let name = upstream.host_header.as_ref().unwrap_or(&upstream.name);
        let is_name = !name.is_empty() && is_value(name.as_bytes());
        is_name.then_some(())?;
        Some((url(host, port.unwrap_or(TARGET_PORT))?, Some(name.clone())))
    }
}
