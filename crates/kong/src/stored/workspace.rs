//! The documents of a workspace, and what has been made of each.
//!
//! What depends on others is made again when one of them changes: a route when its service does, its chain when a
//! plugin does that may stand in it. All else is kept from one model to the next.

mod unserved;
use super::{Broken, key_of};
use crate::RouterFlavor;
use crate::document::family::Family;
use crate::document::singly::Shelf;
use crate::document::{Entity, Plugin, Upstream};
use crate::plugins::{Known, known};
use crate::translate::chain::{self, Chains};
use crate::translate::precedence::Rank;
use crate::translate::route::{self, Single};
use crate::translate::service::{Backend, Services};
use crate::translate::{certificate, consumer, route_table};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;
use weir_model::{Certificate, ChainStep, Consumer, Diagnostic, DocPath, Model, Service, Severity, Voice};

/// The documents of a workspace.
#[derive(Default)]
pub struct Workspace {
    shelf: Shelf,
    changed: Changed,
    routes: HashMap<Uuid, Route>,
    /// Routes by their services.
    routes_of: HashMap<Uuid, HashSet<Uuid>>,
    services: Vec<Service>,
    upstreams: Vec<weir_model::Upstream>,
    services_broken: Vec<Broken>,
    consumers: Vec<Consumer>,
    certificates: Vec<Certificate>,
    /// Configurations of plugins for the catalogue.
    configs: HashMap<Uuid, Config>,
    chains: Option<Chains>,
    plugins_broken: BTreeMap<Uuid, Broken>,
}

/// What has been made of a route.
#[derive(Default)]
struct Route {
    single: Option<Single>,
    steps: Vec<ChainStep>,
    broken: Option<Broken>,
}

/// What has been made of a plugin's configuration.
struct Config {
    made: Result<Value, String>,
    /// Whether consumers may have been looked up for it.
    names_consumers: bool,
}

/// What is to be made again.
#[derive(Default)]
struct Changed {
    routes: HashSet<Uuid>,
    all_routes: bool,
    chains: HashSet<Uuid>,
    all_chains: bool,
    services: bool,
    consumers: bool,
    certificates: bool,
    plugins: bool,
}

impl Workspace {
    /// Takes over what became of a document.
    ///
    /// # Errors
    /// Why it is left out.
    pub fn apply(
        &mut self,
        family: &'static Family,
        id: Uuid,
        value: Option<&[u8]>,
        place: DocPath,
    ) -> Result<(), String> {
        // What comes from a store has its passwords hashed.
        self.shelf.document.hashed_passwords = true;
        let was_there = self.shelf.position(family.name, id).is_some();
        self.note(family, id, false);
        let result = match value {
            Some(value) => self.shelf.put(family, id, value, place),
            None => {
                self.shelf.remove(family, id);
                Ok(())
            }
        };
        self.note(family, id, true);
        let is_there = self.shelf.position(family.name, id).is_some();
        // Instances for what is not there are left out.
        if was_there != is_there && matches!(family.name, "routes" | "services" | "consumers") {
            self.changed.plugins = true;
        }
        result
    }

    /// Notes what depends on an entity: as it was, and as it is now.
    fn note(&mut self, family: &Family, id: Uuid, is_new: bool) {
        let position = self.shelf.position(family.name, id);
        let document = &self.shelf.document;
        match family.name {
            "routes" => {
                self.changed.routes.insert(id);
                let service = position.and_then(|at| document.routes[at].value.service);
                if let Some(service) = service {
                    let routes = self.routes_of.entry(service).or_default();
                    if is_new {
                        routes.insert(id);
                    } else {
                        routes.remove(&id);
                    }
                }
            }
            "services" => {
                self.changed.services = true;
                let routes = self.routes_of.get(&id).into_iter().flatten();
                self.changed.routes.extend(routes);
            }
            "targets" => self.changed.services = true,
            "snis" => self.changed.certificates = true,
            "plugins" => {
                self.configs.remove(&id);
                self.changed.plugins = true;
                if let Some(at) = position {
                    let Plugin { route, service, .. } = document.plugins[at].value;
                    match (route, service) {
                        (Some(route), _) => {
                            self.changed.chains.insert(route);
                        }
                        (None, Some(service)) => {
                            let routes = self.routes_of.get(&service).into_iter().flatten();
                            self.changed.chains.extend(routes);
                        }
                        (None, None) => self.changed.all_chains = true,
                    }
                }
            }
            "consumers" => {
                self.changed.consumers = true;
                let before = self.configs.len();
                self.configs.retain(|_, config| !config.names_consumers);
                if self.configs.len() < before {
                    self.changed.plugins = true;
                    self.changed.all_chains = true;
                }
            }
            "upstreams" | "certificates" | "ca_certificates" => {
                self.changed.services = true;
                self.changed.certificates = true;
                self.changed.all_routes = true;
            }
            _ => self.changed.consumers = true,
        }
    }

    /// The model of the workspace; adds what had to be left out to `broken`.
    pub fn model(&mut self, router: RouterFlavor, broken: &mut Vec<Broken>) -> Model {
        self.make_again(router);
        broken.extend(self.services_broken.iter().cloned());
        broken.extend(self.plugins_broken.values().cloned());
        let (plugins, consumer_tables) = self.chains.as_ref().map(Chains::parts).unwrap_or_default();
        Model {
            weir: 1,
            voice: Voice::Kong,
            certificates: self.certificates.clone(),
            services: self.services.clone(),
            routes: self.collect_routes(router, broken),
            upstreams: self.upstreams.clone(),
            consumers: self.consumers.clone(),
            plugins,
            consumer_tables,
            unmatched: self.chains.as_ref().map(Chains::unmatched).unwrap_or_default(),
            route_tables: vec![route_table()],
        }
    }

    fn make_again(&mut self, router: RouterFlavor) {
        let changed = std::mem::take(&mut self.changed);
        if changed.services {
            let mut found = Vec::new();
            let made = Services::translate(&self.shelf.document, &mut found);
            (self.services, self.upstreams) = (made.services, made.upstreams);
            self.services_broken = found.iter().filter_map(left_out).collect();
        }
        if changed.consumers {
            self.consumers = consumer::translate(&self.shelf.document, &mut Vec::new());
        }
        if changed.certificates {
            self.certificates = certificate::translate(&self.shelf.document);
        }
        let has_other_chains = changed.plugins && self.collect_chains();
        self.make_routes(&changed, router);
        let all = || self.shelf.document.routes.iter().map(|route| route.value.id);
        let with_chains: Vec<Uuid> = if changed.all_chains || has_other_chains {
            all().collect()
        } else {
            changed.chains.union(&changed.routes).copied().collect()
        };
        for id in with_chains {
            self.make_chain(id);
        }
        if changed.all_routes {
            let ids: Vec<Uuid> = self.shelf.document.routes.iter().map(|it| it.value.id).collect();
            ids.into_iter().for_each(|id| self.make_chain(id));
        }
    }

    /// Sorts all instances by plugin and scope again. Returns whether others are left out than before.
    fn collect_chains(&mut self) -> bool {
        let before: Vec<Uuid> = self.plugins_broken.keys().copied().collect();
        self.plugins_broken.clear();
        let document = &self.shelf.document;
        let mut finder = None;
        let mut instances: Vec<Entity<Plugin>> = Vec::with_capacity(document.plugins.len());
        for entity in &document.plugins {
            let plugin = &entity.value;
            let is_there = |family: &str, id: Option<Uuid>| {
                id.is_none_or(|id| self.shelf.position(family, id).is_some())
            };
            let has_all = is_there("services", plugin.service)
                && is_there("routes", plugin.route)
                && is_there("consumers", plugin.consumer);
            let config = self.configs.entry(plugin.id).or_insert_with(|| {
                let finder = finder.get_or_insert_with(|| chain::consumer_finder(&document.consumers));
                make_config(plugin, finder)
            });
            let reason = match &config.made {
                _ if !has_all => Some("refers to an entity that is not there".to_owned()),
                Err(reason) => Some(reason.clone()),
                Ok(_) => None,
            };
            if let Some(reason) = reason {
                if let Some(key) = key_of(&entity.place.list) {
                    self.plugins_broken.insert(plugin.id, Broken { key, reason });
                }
                continue;
            }
            instances.push(Entity {
                place: entity.place.clone(),
                value: Plugin {
                    name: plugin.name.clone(),
                    config: Value::Null,
                    ..*plugin
                },
            });
        }
        let configs = &self.configs;
        self.chains = Some(Chains::collect(instances, true, |_, _, plugin| {
            configs
                .get(&plugin.id)?
                .made
                .clone()
                .ok()
                .filter(|config| !config.is_null())
        }));
        !before.iter().eq(self.plugins_broken.keys())
    }

    fn make_routes(&mut self, changed: &Changed, router: RouterFlavor) {
        let document = &self.shelf.document;
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
            let backend = match entity.value.service {
                None => None,
                Some(id) => match self.shelf.position("services", id) {
                    None => return Route::dangling(&entity.place.list),
                    Some(at) => {
                        let service = &document.services[at].value;
                        Some(Backend::of(service, by_name.get(service.host.as_str()).copied()))
                    }
                },
            };
            let mut found = Vec::new();
            let single = route::translate_one(entity, 0, router, backend.as_ref(), &mut found);
            Route {
                single,
                steps: Vec::new(),
                broken: found.iter().find_map(left_out),
            }
        };
        let made: Vec<(Uuid, Option<Route>)> = if changed.all_routes {
            self.routes.clear();
            let routes = document.routes.iter().enumerate();
            routes
                .map(|(at, route)| (route.value.id, Some(make(at))))
                .collect()
        } else {
            let ids = changed.routes.iter().copied();
            ids.map(|id| (id, self.shelf.position("routes", id).map(make)))
                .collect()
        };
        for (id, route) in made {
            match route {
                Some(route) => self.routes.insert(id, route),
                None => self.routes.remove(&id),
            };
        }
    }

    fn make_chain(&mut self, id: Uuid) {
        let service = match self.shelf.position("routes", id) {
            Some(at) => self.shelf.document.routes[at].value.service,
            None => return,
        };
        let steps = self.chains.as_mut().map(|chains| chains.steps(id, service));
        if let Some(route) = self.routes.get_mut(&id) {
            route.steps = steps.unwrap_or_default();
        }
    }

    fn collect_routes(&self, router: RouterFlavor, broken: &mut Vec<Broken>) -> Vec<weir_model::Route> {
        let entities = &self.shelf.document.routes;
        let positions = self.positions(router);
        let mut routes = Vec::with_capacity(entities.len());
        let mut ranks: Vec<(Rank, usize, usize)> = Vec::with_capacity(entities.len());
        for (at, entity) in entities.iter().enumerate() {
            let Some(made) = self.routes.get(&entity.value.id) else {
                continue;
            };
            broken.extend(made.broken.iter().cloned());
            let Some(single) = &made.single else { continue };
            let position = positions.get(at).copied().unwrap_or_default();
            let numbered = single.ranks.iter().enumerate();
            ranks.extend(numbered.map(|(number, rank)| (rank.at(position), routes.len(), number)));
            routes.push(weir_model::Route {
                plugins: made.steps.clone(),
                ..single.route.clone()
            });
        }
        route::number(&mut routes, ranks);
        routes
    }

    /// The positions of routes by their age, for the router that asks for it.
    fn positions(&self, router: RouterFlavor) -> Vec<usize> {
        if router != RouterFlavor::Traditional {
            return Vec::new();
        }
        let routes = &self.shelf.document.routes;
        let mut by_age: Vec<usize> = (0..routes.len()).collect();
        let age = |at: &usize| routes[*at].value.created_at.unwrap_or_default();
        by_age.sort_by(|one, other| age(one).total_cmp(&age(other)));
        let mut positions = vec![0; routes.len()];
        for (position, at) in by_age.into_iter().enumerate() {
            positions[at] = position;
        }
        positions
    }
}

impl Route {
    /// A route whose service is not there is served by nothing, rather than by a refusal that looks like its own.
    fn dangling(place: &DocPath) -> Self {
        Self {
            broken: key_of(place).map(|key| Broken {
                key,
                reason: "refers to an entity that is not there".to_owned(),
            }),
            ..Self::default()
        }
    }
}

fn make_config(plugin: &Plugin, consumers: &dyn Fn(&str) -> Option<String>) -> Config {
    let names_consumers = plugin.config.get("anonymous").is_some_and(Value::is_string);
    let made = match known(&plugin.name) {
        Known::Yes(definition) => match (definition.translate)(&plugin.config, consumers) {
            Ok(config) => Ok(config),
            // Kept, and not served.
            Err(_) if !chain::is_served(definition) => Ok(Value::Null),
            Err(unfit) => Err(unfit.to_string()),
        },
        Known::Unavailable | Known::No => Err(format!("there is no plugin \"{}\"", plugin.name)),
    };
    Config {
        made,
        names_consumers,
    }
}

fn left_out(found: &Diagnostic) -> Option<Broken> {
    (found.severity != Severity::Warning).then_some(())?;
    Some(Broken {
        key: key_of(&found.path)?,
        reason: found.message.clone(),
    })
}
