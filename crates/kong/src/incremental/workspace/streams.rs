//! Routes of connections and datagrams. There are few, so all are made again with every model.

use super::{SkippedDocument, Workspace, name_in, skipped};
use crate::document::Upstream;
use crate::incremental::workspace_scope::qualify_steps;
use crate::translate::service::ServiceInfo;
use crate::translate::stream::{self, UnorderedStreamRoute};
use std::collections::HashMap;
use uuid::Uuid;
use weir_model::StreamRoute;

impl Workspace {
    /// Notes whether there is such a route of this id.
    pub(super) fn note_stream(&mut self, id: Uuid) {
        let position = self.store.position("routes", id);
        let routes = &self.store.document.routes;
        match position.is_some_and(|at| stream::is_stream(&routes[at].value)) {
            true => self.streams.insert(id),
            false => self.streams.remove(&id),
        };
    }

    /// The routes, those made first first; adds what had to be left out to `broken`.
    pub(super) fn stream_routes(&mut self, broken: &mut Vec<SkippedDocument>) -> Vec<StreamRoute> {
        if self.streams.is_empty() {
            return Vec::new();
        }
        let document = &self.store.document;
        let by_name: HashMap<&str, &Upstream> = document
            .upstreams
            .iter()
            .map(|upstream| (upstream.value.name.as_str(), &upstream.value))
            .collect();
        let places = self
            .streams
            .iter()
            .filter_map(|id| self.store.position("routes", *id));
        let mut places: Vec<usize> = places.collect();
        let age = |at: &usize| document.routes[*at].value.created_at.unwrap_or_default();
        places.sort_by(|one, other| age(one).total_cmp(&age(other)));
        let mut made: Vec<UnorderedStreamRoute> = Vec::with_capacity(places.len());
        for (position, at) in places.into_iter().enumerate() {
            let entity = &document.routes[at];
            let (id, service) = (entity.value.id, entity.value.service);
            // That there is none has been reported before.
            let backend = service.and_then(|id| self.store.position("services", id));
            let backend = backend.map(|at| {
                let service = &document.services[at].value;
                ServiceInfo::of(service, by_name.get(service.host.as_str()).copied())
            });
            let mut found = Vec::new();
            let single = stream::translate_one(entity, position, self.router, backend.as_ref(), &mut found);
            broken.extend(found.iter().find_map(skipped));
            let Some(mut single) = single else { continue };
            match self.chains.as_mut().map(|it| it.stream_steps(id, service)) {
                Some(Some(steps)) => single.route.plugins = steps,
                Some(None) => single.route.refuse_sessions(),
                None => {}
            }
            if let Some(prefix) = &self.prefix {
                qualify_steps(&mut single.route.plugins, prefix);
                single.route.name = name_in(prefix, &single.route.name);
                let service = single.route.service.as_mut();
                if let Some(service) = service {
                    *service = name_in(prefix, service);
                }
            }
            made.push(single);
        }
        stream::number(made)
    }
}
