//! What is published in environments that this process does not serve: a writer of one workspace must not take calls from
//! there either, and a control plane serves no environment at all.
//!
//! **What it is not**: it compiles nothing, and says of no route who may store it.

use crate::follow::StateHandle;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_dialect::{
    Dialect, DialectName, DialectSet, ENVIRONMENTS, IncrementalModel, OtherRoutes, Replica, ReplicaState,
    RouteOwner,
};
use weir_model::{Model, RouteMatch, StreamRoute};
use weir_store::{Document, Key, Revision, Store, StoreError};

/// The routes and server names of all dialects: those that this process serves, and those of all other environments.
#[derive(Debug)]
pub struct RoutesOfAllEnvironments {
    served: StateHandle,
    others: Arc<Replica<OtherEnvironments>>,
    /// The dialects, in the order in which their routes are looked through.
    order: Vec<DialectName>,
}

impl RoutesOfAllEnvironments {
    /// Reads the documents of the environments that these dialects do not serve, and follows them from then on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(
        store: Arc<dyn Store>,
        dialects: &DialectSet,
        served: StateHandle,
    ) -> Result<Self, StoreError> {
        let others = OtherEnvironments {
            dialect: dialects.get(DialectName::NATIVE).cloned(),
            served: dialects.environment_prefixes().into(),
            models: Mutex::default(),
        };
        Ok(Self {
            served,
            others: Replica::open(store, ENVIRONMENTS, others).await?,
            order: dialects.iter().map(|it| it.name()).collect(),
        })
    }

    /// Whether `is_it` holds for the model of another environment, which is asked with whose its routes are.
    fn any_model(&self, own: DialectName, mut is_it: impl FnMut(&Model, RouteOwner<'_>) -> bool) -> bool {
        let others = self.others.state();
        let Some(dialect) = others.dialect.as_ref().filter(|it| it.name() != own) else {
            return false;
        };
        let place = |name| self.order.iter().position(|it| *it == name);
        let owner = RouteOwner {
            workspace: dialect.workspace_for_others(),
            is_behind: place(dialect.name()) > place(own),
        };
        let mut models = others.models();
        models.values_mut().any(|it| is_it(it.model(), owner))
    }
}

impl OtherRoutes for RoutesOfAllEnvironments {
    fn any(&self, own: DialectName, visit: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool {
        self.served.any(own, visit)
            || self.any_model(own, |model, owner| {
                model.routes.iter().any(|it| visit(&it.matches, owner))
            })
    }

    fn any_stream(
        &self,
        own: DialectName,
        visit: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool,
    ) -> bool {
        self.served.any_stream(own, visit)
            || self.any_model(own, |model, owner| {
                model.stream_routes.iter().any(|it| visit(it, owner))
            })
    }

    fn any_server_names(&self, own: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool {
        self.served.any_server_names(own, visit)
            || self.any_model(own, |model, owner| {
                let mut certificates = model.certificates.iter();
                certificates.any(|it| visit(&it.names, owner.workspace))
            })
    }

    fn are_known(&self) -> bool {
        self.served.are_known()
    }
}

/// The documents of the environments that are not served here.
struct OtherEnvironments {
    /// The dialect that they are of.
    dialect: Option<Arc<dyn Dialect>>,
    /// What the keys of documents begin with that are served here.
    served: Arc<[String]>,
    /// By what the keys of an environment's documents begin with.
    models: Mutex<BTreeMap<String, EnvironmentModel>>,
}

impl OtherEnvironments {
    fn models(&self) -> MutexGuard<'_, BTreeMap<String, EnvironmentModel>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for OtherEnvironments {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OtherEnvironments")
            .finish_non_exhaustive()
    }
}

/// The documents of an environment. Their model is made when it is asked for.
struct EnvironmentModel {
    documents: Box<dyn IncrementalModel>,
    /// `None`: they have changed since.
    model: Option<Model>,
}

impl EnvironmentModel {
    fn model(&mut self) -> &Model {
        self.model.get_or_insert_with(|| self.documents.model().0)
    }
}

impl ReplicaState for OtherEnvironments {
    fn empty(&self) -> Self {
        Self {
            dialect: self.dialect.clone(),
            served: Arc::clone(&self.served),
            models: Mutex::default(),
        }
    }

    fn apply(&mut self, key: &Key, document: Option<&Document>) {
        let key = key.as_str();
        if self.served.iter().any(|prefix| key.starts_with(prefix)) {
            return;
        }
        let Some((dialect, (prefix, rest))) = self
            .dialect
            .as_ref()
            .and_then(|dialect| Some((dialect, parts(key, dialect.prefix())?)))
        else {
            return;
        };
        let models = self.models.get_mut().unwrap_or_else(PoisonError::into_inner);
        let environment = models
            .entry(prefix.to_owned())
            .or_insert_with(|| EnvironmentModel {
                documents: dialect.incremental_model(),
                model: None,
            });
        environment.documents.apply(rest, document.map(|it| &*it.value));
        environment.model = None;
    }

    fn note(&mut self, _revision: Revision, _has_changed: bool) {}
}

/// What the keys of an environment's documents begin with, and the rest of this one: `env/prod/native/` and `routes/a`.
fn parts<'k>(key: &'k str, dialect: &str) -> Option<(&'k str, &'k str)> {
    let name = key.strip_prefix(ENVIRONMENTS)?.find('/')?;
    let (environment, rest) = key.split_at_checked(ENVIRONMENTS.len() + name + 1)?;
    let (_, rest) = rest
        .split_at_checked(dialect.len())
        .filter(|(it, _)| *it == dialect)?;
    Some((&key[..environment.len() + dialect.len()], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cut_behind_the_environment_and_the_dialect() {
        for (key, expected) in [
            ("env/prod/native/routes/a", Some(("env/prod/native/", "routes/a"))),
            ("env/a/native/routes/a/b", Some(("env/a/native/", "routes/a/b"))),
            ("env/prod/other/routes/a", None),
            ("env/prod", None),
            ("native/routes/a", None),
        ] {
            assert_eq!(parts(key, "native/"), expected, "{key}");
        }
    }
}
