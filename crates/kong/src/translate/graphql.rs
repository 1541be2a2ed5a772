//! What entities say about the GraphQL of services, as plugins need it: for each service its costs, its queries, and where its
//! schema comes from.

use crate::document::{DegraphqlRoute, Document, Entity, GraphqlCost, Service};
use crate::schema::text;
use std::collections::HashMap;
use uuid::Uuid;

/// A service of which entities say something.
#[derive(Debug, Clone)]
pub struct GraphqlService {
    /// Its id.
    pub id: Uuid,
    /// The address of its GraphQL; `None`: its host is an upstream without targets.
    pub url: Option<String>,
    /// The `Host` that it expects, if that is not the one of the address.
    pub host: Option<String>,
    /// Whether its certificate must be good.
    pub verify_tls: bool,
    /// What queries cost.
    pub costs: Vec<GraphqlCost>,
    /// Calls that are queries.
    pub routes: Vec<DegraphqlRoute>,
}

/// The port of targets that name none.
const TARGET_PORT: u16 = 8000;

/// All services of which entities say something.
pub fn services(document: &Document) -> Vec<GraphqlService> {
    let costs = &document.graphql_costs;
    let routes = &document.degraphql_routes;
    if costs.is_empty() && routes.is_empty() {
        return Vec::new();
    }
    let mut said: HashMap<Uuid, (Vec<GraphqlCost>, Vec<DegraphqlRoute>)> = HashMap::new();
    let mut of_all = Vec::new();
    for Entity { value, .. } in costs {
        match value.service {
            Some(service) => said.entry(service).or_default().0.push(value.clone()),
            None if of_all.len() < MOST_OF_ALL => of_all.push(value.clone()),
            None => {}
        }
    }
    for Entity { value, .. } in routes {
        said.entry(value.service).or_default().1.push(value.clone());
    }
    let services = document
        .services
        .iter()
        .filter_map(|Entity { value: service, .. }| {
            let (mut costs, routes) = said.remove(&service.id).unwrap_or_default();
            costs.extend(of_all.iter().cloned());
            if costs.is_empty() && routes.is_empty() {
                return None;
            }
            let (url, host) = address(document, service);
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

/// Where a service is asked for its schema, and as which host. Of an upstream that is its first target with a weight.
fn address(document: &Document, service: &Service) -> (Option<String>, Option<String>) {
    let path = service.path.as_deref().unwrap_or("/");
    let url = |host: &str, port: u16| {
        let host = match host.contains(':') && !host.starts_with('[') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        format!("{}://{host}:{port}{path}", service.protocol)
    };
    let upstream = document.upstreams.iter().find(|it| it.value.name == service.host);
    let Some(Entity { value: upstream, .. }) = upstream else {
        return (Some(url(&service.host, service.port)), None);
    };
    let mut targets = document.targets.iter().map(|it| &it.value);
    let target = targets.find(|it| it.upstream == upstream.id && it.weight > 0);
    let address = target.map(|target| {
        let (host, port) = text::split_port(&target.target).unwrap_or((&target.target, None));
        url(host, port.unwrap_or(TARGET_PORT))
    });
    let host = upstream.host_header.as_ref().unwrap_or(&upstream.name);
    (address, Some(host.clone()))
}
