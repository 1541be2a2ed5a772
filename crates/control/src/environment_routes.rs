//! What is published in environments that this process does not serve: a writer of one workspace must not take calls from
//! there either, and a control plane serves no environment at all.
//!
//! **What it is not**: it compiles nothing, and says of no route who may store it.

use crate::follow::StateHandle;
use crate::run_blocking::run_blocking;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_dialect::{
    Dialect, DialectName, DialectSet, ENVIRONMENTS, ForeignRoutes, IncrementalModel, Replica, ReplicaState,
    RouteOwner,
};
use weir_model::{Model, RouteMatch, StreamRoute};
use weir_store::{Document, Key, Revision, Store, StoreError};

/// The routes and server names of all dialects: those that this process serves, and those of all other environments.
#[derive(Debug)]
pub struct RoutesOfAllEnvironments {
    served: StateHandle,
    others: Arc<Replica<UnservedEnvironments>>,
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
        let others = UnservedEnvironments {
            dialect: dialects.get(DialectName::NATIVE).cloned(),
            served: dialects.environment_prefixes().into(),
            environments: BTreeMap::new(),
        };
        Ok(Self {
            served,
            others: Replica::open(store, ENVIRONMENTS, others).await?,
            order: dialects.iter().map(|it| it.name()).collect(),
        })
    }

    /// Whether `is_it` holds for the routes of another environment, which is asked with whose they are. Making them takes its
    /// time, and so does looking through them: neither keeps what follows the store waiting, nor a thread that answers calls.
    fn any_environment(
        &self,
        own: DialectName,
        mut is_it: impl FnMut(&EnvironmentRoutes, RouteOwner<'_>) -> bool,
    ) -> bool {
        let (dialect, environments): (_, Vec<EnvironmentDocuments>) = {
            let others = self.others.state();
            let Some(dialect) = others.dialect.clone().filter(|it| it.name() != own) else {
                return false;
            };
            (dialect, others.environments.values().cloned().collect())
        };
        let place = |name| self.order.iter().position(|it| *it == name);
        let owner = RouteOwner {
            workspace: dialect.workspace_for_others(),
            is_behind: place(dialect.name()) > place(own),
        };
        run_blocking(|| environments.iter().any(|it| is_it(it.routes(&*dialect), owner)))
    }
}

impl ForeignRoutes for RoutesOfAllEnvironments {
    fn any(&self, own: DialectName, visit: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool {
        self.served.any(own, visit)
            || self.any_environment(own, |it, owner| it.matches.iter().any(|it| visit(it, owner)))
    }

    fn any_stream(
        &self,
        own: DialectName,
        visit: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool,
    ) -> bool {
        self.served.any_stream(own, visit)
            || self.any_environment(own, |it, owner| it.streams.iter().any(|it| visit(it, owner)))
    }

    fn any_server_names(&self, own: DialectName, visit: &mut dyn FnMut(&[String], &str) -> bool) -> bool {
        self.served.any_server_names(own, visit)
            || self.any_environment(own, |it, owner| {
                it.server_names.iter().any(|it| visit(it, owner.workspace))
            })
    }

    fn are_known(&self) -> bool {
        self.served.are_known()
    }
}

/// The documents of the environments that are not served here.
struct UnservedEnvironments {
    /// The dialect that they are of.
    dialect: Option<Arc<dyn Dialect>>,
    /// What the keys of documents begin with that are served here.
    served: Arc<[String]>,
    /// By what the keys of an environment's documents begin with.
    environments: BTreeMap<String, EnvironmentDocuments>,
}

impl std::fmt::Debug for UnservedEnvironments {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UnservedEnvironments")
            .finish_non_exhaustive()
    }
}

/// Texts by the rests of their keys, as the store gave them.
type Texts = BTreeMap<String, Arc<[u8]>>;

/// The documents of an environment.
#[derive(Clone, Default)]
struct EnvironmentDocuments {
    documents: Arc<Texts>,
    /// Made when they are asked for. A change brings a new one.
    routes: Arc<OnceLock<EnvironmentRoutes>>,
    /// Stays over changes, so that only what has changed is read.
    reader: Arc<Mutex<Option<DocumentReader>>>,
}

/// Documents as they were read last.
struct DocumentReader {
    model: Box<dyn IncrementalModel>,
    known: Arc<Texts>,
}

impl DocumentReader {
    /// The model of these documents. Reads those that are not the ones that it knows.
    fn read(&mut self, documents: &Arc<Texts>) -> Model {
        for (key, value) in &**documents {
            let is_known = self.known.get(key).is_some_and(|it| Arc::ptr_eq(it, value));
            if !is_known {
                self.model.apply(key, Some(value));
            }
        }
        for key in self.known.keys().filter(|it| !documents.contains_key(*it)) {
            self.model.apply(key, None);
        }
        self.known = Arc::clone(documents);
        self.model.model().0
    }
}

/// Which calls the routes of an environment take, without what becomes of those calls.
struct EnvironmentRoutes {
    matches: Vec<Vec<RouteMatch>>,
    streams: Vec<StreamRoute>,
    server_names: Vec<Vec<String>>,
}

impl EnvironmentDocuments {
    fn routes(&self, dialect: &dyn Dialect) -> &EnvironmentRoutes {
        self.routes.get_or_init(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let reader = reader.get_or_insert_with(|| DocumentReader {
                model: dialect.incremental_model(),
                known: Arc::default(),
            });
            let model = reader.read(&self.documents);
            EnvironmentRoutes {
                matches: model.routes.iter().map(|it| it.matches.clone()).collect(),
                streams: model.stream_routes.clone(),
                server_names: model.certificates.iter().map(|it| it.names.clone()).collect(),
            }
        })
    }
}

impl ReplicaState for UnservedEnvironments {
    fn empty(&self) -> Self {
        Self {
            dialect: self.dialect.clone(),
            served: Arc::clone(&self.served),
            environments: BTreeMap::new(),
        }
    }

    fn apply(&mut self, key: &Key, document: Option<&Document>) {
        let key = key.as_str();
        if self.served.iter().any(|prefix| key.starts_with(prefix)) {
            return;
        }
        let dialect = self.dialect.as_ref().map(|it| it.prefix());
        let Some((prefix, rest)) = dialect.and_then(|it| parts(key, it)) else {
            return;
        };
        let environment = self.environments.entry(prefix.to_owned()).or_default();
        let documents = Arc::make_mut(&mut environment.documents);
        match document {
            Some(document) => documents.insert(rest.to_owned(), Arc::clone(&document.value)),
            None => documents.remove(rest),
        };
        if documents.is_empty() {
            self.environments.remove(prefix);
        } else {
            environment.routes = Arc::default();
        }
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

    /// What asks has the documents of the moment in which it asked: what follows the store goes on meanwhile.
    #[test]
    fn routes_are_made_of_what_is_there_and_only_once() {
        let dialect: Arc<dyn Dialect> = Arc::new(weir_native::NativeDialect);
        let mut others = UnservedEnvironments {
            dialect: Some(Arc::clone(&dialect)),
            served: ["env/test/native/".to_owned()].into(),
            environments: BTreeMap::new(),
        };
        let mut put = |key: &str, paths: Option<&str>| {
            let name = key.rsplit('/').next();
            let key = Key::new(key).expect("a key");
            let document = paths.map(|path| Document {
                key: key.clone(),
                value: serde_json::json!({"name": name, "paths": [path], "to": {"respond": {"status": 204}}})
                    .to_string()
                    .into_bytes()
                    .into(),
                created: Revision(1),
                modified: Revision(1),
            });
            others.apply(&key, document.as_ref());
            others.environments.values().cloned().collect::<Vec<_>>()
        };
        assert!(put("env/test/native/routes/r", Some("/served")).is_empty());
        let first = put("env/prod/native/routes/r", Some("/a"));
        let made: *const EnvironmentRoutes = first[0].routes(&*dialect);
        assert!(std::ptr::eq(made, first[0].routes(&*dialect)), "made once");
        let second = put("env/prod/native/routes/s", Some("/b"));
        assert_eq!(first[0].routes(&*dialect).matches.len(), 1);
        assert_eq!(second[0].routes(&*dialect).matches.len(), 2);
        put("env/prod/native/routes/r", None);
        assert!(put("env/prod/native/routes/s", None).is_empty());
    }

    /// Records what a reader is given: documents with their texts, or without one.
    struct ModelRecorder(Arc<Mutex<Vec<String>>>);

    impl IncrementalModel for ModelRecorder {
        fn apply(&mut self, key: &str, value: Option<&[u8]>) {
            let text = value.map(String::from_utf8_lossy);
            let line = format!("{key}={}", text.as_deref().unwrap_or("-"));
            self.0.lock().expect("whole").push(line);
        }

        fn model(&mut self) -> (Model, Vec<weir_dialect::SkippedDocument>) {
            (Model::default(), Vec::new())
        }
    }

    #[test]
    fn only_changed_documents_are_read_again() {
        let lines = Arc::default();
        let mut reader = DocumentReader {
            model: Box::new(ModelRecorder(Arc::clone(&lines))),
            known: Arc::default(),
        };
        let mut documents = Texts::new();
        for (key, text, expected) in [
            ("a", Some("1"), vec!["a=1"]),
            ("b", Some("1"), vec!["b=1"]),
            ("a", Some("2"), vec!["a=2"]),
            ("b", None, vec!["b=-"]),
        ] {
            match text {
                Some(text) => documents.insert(key.to_owned(), text.as_bytes().into()),
                None => documents.remove(key),
            };
            let now = Arc::new(documents.clone());
            reader.read(&now);
            reader.read(&now);
            assert_eq!(
                std::mem::take(&mut *lines.lock().expect("whole")),
                expected,
                "{key}"
            );
        }
    }

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
