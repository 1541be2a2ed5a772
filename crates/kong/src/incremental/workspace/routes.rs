//! The routes of a workspace: each is made again when something changes that it depends on, and is the same shared
//! value until then.

use super::{Invalidation, Route, Workspace, dangling, skipped};
use crate::RouterFlavor;
use crate::document::{self, Upstream};
use crate::incremental::match_order::{MatchOrder, SortKey};
use crate::incremental::workspace_scope::{qualify_route, qualify_steps};
use crate::translate::route;
use crate::translate::service::ServiceInfo;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;
use weir_dialect::SkippedDocument;

impl Workspace {
    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its routes.
    pub fn routes(&self) -> impl Iterator<Item = &document::Route> {
        self.store.document.routes.iter().map(|it| &it.value)
    }

    /// One of its routes.
    pub fn route(&self, id: Uuid) -> Option<&document::Route> {
        let position = self.store.position("routes", id)?;
        Some(&self.store.document.routes[position].value)
    }

    pub(super) fn make_routes(
        &mut self,
        changed: &Invalidation,
        router: RouterFlavor,
        numbers: &mut MatchOrder,
    ) {
        let document = &self.store.document;
        if changed.routes.is_empty() && !changed.all_routes {
            return;
        }
        let by_name: HashMap<&str, &Upstream> = document
            .upstreams
            .iter()
            .map(|upstream| (upstream.value.name.as_str(), &upstream.value))
            .collect();
        let make = |at: usize| {
            let entity = &document.routes[at];
            let service = (entity.value.service).map(|id| self.store.position("services", id));
            let backend = service.flatten().map(|at| {
                let service = &document.services[at].value;
                ServiceInfo::of(service, by_name.get(service.host.as_str()).copied())
            });
            let mut found = Vec::new();
            let single = route::translate_one(entity, 0, router, backend.as_ref(), &mut found);
            let created_at = entity.value.created_at.unwrap_or_default();
            let by_age = router == RouterFlavor::Traditional;
            let key = |(number, rank)| {
                SortKey::new((rank, number), created_at, entity.value.id, &self.name, by_age)
            };
            let keys = single.iter().flat_map(|it| it.ranks.iter().enumerate().map(key));
            Route {
                keys: keys.collect(),
                made: single.map(|it| Arc::new(qualify_route(it.route, self.prefix.as_deref()))),
                broken: match service {
                    Some(None) => dangling(&entity.place.list),
                    _ => found.iter().find_map(skipped),
                },
            }
        };
        let made: Vec<(Uuid, Option<Route>)> = if changed.all_routes {
            let gone: Vec<Uuid> = self.routes.keys().copied().collect();
            let gone = gone
                .into_iter()
                .filter(|id| self.store.position("routes", *id).is_none());
            let gone: Vec<_> = gone.map(|id| (id, None)).collect();
            let routes = document.routes.iter().enumerate();
            routes
                .map(|(at, route)| (route.value.id, Some(make(at))))
                .chain(gone)
                .collect()
        } else {
            let ids = changed.routes.iter().copied();
            ids.map(|id| (id, self.store.position("routes", id).map(make)))
                .collect()
        };
        for (id, route) in made {
            self.put_route(id, route, numbers);
        }
    }

    /// Puts a route in the place of what was made of it before; one that comes out as it was stays the same.
    fn put_route(&mut self, id: Uuid, route: Option<Route>, numbers: &mut MatchOrder) {
        let before = self.routes.remove(&id);
        let keys = |route: &Option<Route>| route.as_ref().map_or(Vec::new(), |it| it.keys.clone());
        let (old, new) = (keys(&before), keys(&route));
        if old != new {
            old.iter().for_each(|key| numbers.remove(key));
            new.into_iter().for_each(|key| numbers.add(key));
        }
        if let Some(route) = route {
            self.routes.insert(id, route);
        }
    }

    pub(super) fn make_chain(&mut self, id: Uuid) {
        let Some(at) = self.store.position("routes", id) else {
            return;
        };
        let route = &self.store.document.routes[at].value;
        let service = route.service;
        let of_service = service.and_then(|id| self.store.position("services", id));
        let of_service = of_service.map(|at| &self.store.document.services[at].value);
        let labels = self
            .chains
            .as_ref()
            .map(|chains| chains.labels(route, of_service, self.prefix.as_deref()));
        let steps = self.chains.as_mut().map(|chains| chains.steps(id, service));
        let mut steps = steps.unwrap_or_default();
        let labels = labels.unwrap_or_default();
        if let Some(prefix) = &self.prefix {
            qualify_steps(&mut steps, prefix);
        }
        if let Some(made) = self.routes.get_mut(&id).and_then(|route| route.made.as_mut())
            && (made.plugins != steps || made.labels != labels)
        {
            let made = Arc::make_mut(made);
            (made.plugins, made.labels) = (steps, labels);
        }
    }

    pub(super) fn collect_routes(
        &mut self,
        numbers: &MatchOrder,
        all_are_numbered: bool,
        broken: &mut Vec<SkippedDocument>,
    ) -> Vec<Arc<weir_model::Route>> {
        let entities = &self.store.document.routes;
        let mut routes = Vec::with_capacity(entities.len());
        for entity in entities {
            let Some(route) = self.routes.get_mut(&entity.value.id) else {
                continue;
            };
            broken.extend(route.broken.iter().cloned());
            let Some(made) = &mut route.made else { continue };
            let is_new = made.matches.iter().any(|it| it.precedence.is_none());
            if is_new || all_are_numbered {
                let places = route.keys.iter().map(|key| numbers.get(key));
                for (route_match, place) in Arc::make_mut(made).matches.iter_mut().zip(places) {
                    route_match.precedence = place;
                }
            }
            routes.push(Arc::clone(made));
        }
        routes
    }
}
