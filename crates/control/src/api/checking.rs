//! Whether what a write makes of a configuration could be served.

use crate::follow::{name_of, resource_of};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use weir_model::diagnostic::PathStep;
use weir_model::{Consumer, Diagnostic, DialectName, DocPath, Model, Severity};
use weir_native::incremental::{self, IncrementalModel};
use weir_plugin::{Plugin, Registry};
use weir_snapshot::{CompileCache, PersistentState};

/// What distinguishes credentials: the plugin, the dialect, the workspace, and a field with its value.
type CredentialIdentity<'m> = (&'m str, DialectName, Option<&'m str>, (&'m str, &'m str));

/// Compiles what would be served. To be used on threads that may take their time, by one writer after the other.
pub struct Checker {
    registry: Registry,
    persistent: PersistentState,
    /// The parts that were compiled for an earlier write.
    cache: CompileCache,
    /// The documents, as far as the checker has received them.
    model: IncrementalModel,
}

/// How many rounds of dependents are looked for: more than resources can depend on each other.
const MAX_ROUNDS: usize = 8;

/// A resource that could not be served without another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Dependent {
    /// The kind of its document, such as `routes`.
    pub kind: String,
    /// The name of its document.
    pub name: String,
    /// The part of the document that needs it: the name of a route of a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The field that names the missing resource, such as `service`.
    pub field: String,
    /// The publication that the document was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owned_by: Option<String>,
}

/// A finding that is a write's own fault.
struct NewFault {
    found: Diagnostic,
    /// The list and the name of the resource that it is about.
    resource: Option<(String, String)>,
}

/// The identity of a finding in two models that have the same resources at other positions.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    resource: String,
    /// The place in the resource.
    place: Vec<PathStep>,
    message: String,
}

impl Identity {
    fn of(fault: &Diagnostic, model: &Model) -> Self {
        Self {
            resource: name_of(fault, model),
            place: fault.path.0.iter().skip(2).cloned().collect(),
            message: fault.message.clone(),
        }
    }
}

/// The finding at its place in the document that a write is about; as it is, if it is about none of them.
fn located(resource: &str, fault: Diagnostic, changes: &[(&str, Option<&[u8]>)]) -> Diagnostic {
    let mut documents = changes.iter();
    let found = documents.find_map(|(key, text)| place_in(key, (*text)?, resource, &fault));
    found.unwrap_or(fault)
}

/// The finding in a document that has the resource; `None`: it has none.
fn place_in(key: &str, text: &[u8], resource: &str, fault: &Diagnostic) -> Option<Diagnostic> {
    let (kind, name) = key.split_once('/')?;
    let value: Value = serde_json::from_slice(text).ok()?;
    let (model, _) = incremental::resource(kind, name, &value).ok()?;
    let mut own = fault.clone();
    let mut index = 0;
    loop {
        let Some(PathStep::Index(position)) = own.path.0.get_mut(1) else {
            return None;
        };
        *position = index;
        let found = name_of(&own, &model);
        if found == resource {
            break;
        }
        if found == own.path.to_string() {
            return None;
        }
        index += 1;
    }
    let mut found = weir_native::locate(&json!({ kind: [value] }), own);
    if let [PathStep::Field(list), PathStep::Index(0), ..] = found.path.0.as_slice()
        && list == kind
    {
        found.path.0.drain(..2);
    }
    Some(found)
}

impl Checker {
    /// With these plugins.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            persistent: PersistentState::default(),
            cache: CompileCache::default(),
            model: IncrementalModel::new(),
        }
    }

    /// Takes over what became of documents; the keys are without the prefix of native documents. `is_whole`: these are all.
    pub fn update(&mut self, is_whole: bool, documents: Vec<(String, Option<Arc<[u8]>>)>) {
        if is_whole {
            self.model = IncrementalModel::new();
        }
        for (key, value) in documents {
            self.model.apply(&key, value.as_deref());
        }
    }

    /// The faults that the model of all documents would have with these changes, and does not have now: only those
    /// are the fault of a write. One model is kept, and changed in place.
    pub fn new_faults(&mut self, changes: &[(&str, Option<&[u8]>)]) -> Vec<Diagnostic> {
        self.new_faults_by_resource(changes)
            .into_iter()
            .map(|it| it.found)
            .collect()
    }

    /// The documents that could not be served any more without a document, and those that need these in turn. The key
    /// is without the prefix.
    pub fn dependents(&mut self, key: &str) -> Vec<Dependent> {
        let mut gone = BTreeSet::from([key.to_owned()]);
        let mut dependents = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let changes: Vec<(&str, Option<&[u8]>)> = gone.iter().map(|key| (key.as_str(), None)).collect();
            let faults = self.new_faults_by_resource(&changes);
            let before = gone.len();
            for fault in faults {
                let Some((list, name)) = fault.resource else {
                    continue;
                };
                let Some(key) = self.model.document_of(&list, &name) else {
                    continue;
                };
                if gone.insert(key.clone()) {
                    let (kind, document) = key.split_once('/').unwrap_or_default();
                    dependents.push(Dependent {
                        kind: kind.to_owned(),
                        name: document.to_owned(),
                        part: (kind != list).then_some(name),
                        field: DocPath(fault.found.path.0.into_iter().skip(2).collect()).to_string(),
                        owned_by: None,
                    });
                }
            }
            if gone.len() == before {
                break;
            }
        }
        dependents
    }

    fn new_faults_by_resource(&mut self, changes: &[(&str, Option<&[u8]>)]) -> Vec<NewFault> {
        let mut model = std::mem::take(&mut self.model);
        let found = self.faults_by(&mut model, changes);
        self.model = model;
        found
    }

    fn faults_by(
        &mut self,
        model: &mut IncrementalModel,
        changes: &[(&str, Option<&[u8]>)],
    ) -> Vec<NewFault> {
        let found = model.with(changes, |after| {
            let finding = |found: Diagnostic| {
                let resource = resource_of(&found, after);
                let resource = resource.map(|(list, name)| (list.to_owned(), name.to_owned()));
                (Identity::of(&found, after), NewFault { found, resource })
            };
            self.faults(after).into_iter().map(finding).collect::<Vec<_>>()
        });
        if found.is_empty() {
            return Vec::new();
        }
        let before = model.whole();
        let mut known: HashMap<Identity, usize> = HashMap::new();
        for fault in self.faults(before) {
            *known.entry(Identity::of(&fault, before)).or_default() += 1;
        }
        let new = found
            .into_iter()
            .filter(|(identity, _)| match known.get_mut(identity) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            });
        new.map(|(identity, fault)| NewFault {
            found: located(&identity.resource, fault.found, changes),
            ..fault
        })
        .collect()
    }

    fn faults(&mut self, model: &Model) -> Vec<Diagnostic> {
        // It is not served, so it needs no hash.
        let compiled = weir_snapshot::recompile(model, 0, &self.registry, &self.persistent, &mut self.cache);
        let mut found: Vec<Diagnostic> = match compiled {
            Ok(_) => Vec::new(),
            Err(found) => {
                let errors = found.into_iter().filter(|it| it.severity == Severity::Error);
                errors.collect()
            }
        };
        let repeated = self.repeated_credentials(model);
        found.extend(
            repeated
                .filter(|it| !found.iter().any(|known| known.message == it.message))
                .collect::<Vec<_>>(),
        );
        found
    }

    /// Credentials with the key of another one. A compile finds them if a route asks for such credentials; they
    /// would refuse the first route that does.
    fn repeated_credentials<'m>(&self, model: &'m Model) -> impl Iterator<Item = Diagnostic> + 'm {
        let mut owners: HashMap<CredentialIdentity<'_>, &Consumer> = HashMap::new();
        let mut found = Vec::new();
        for (number, consumer) in model.consumers.iter().enumerate() {
            for (position, credential) in consumer.credentials.iter().enumerate() {
                let plugin = credential.plugin.as_str();
                let kind = self.registry.get(plugin).and_then(Plugin::credentials);
                let fields = kind.map_or(&[][..], |kind| kind.identities);
                let key = fields
                    .iter()
                    .find_map(|field| Some((*field, credential.config.get(*field)?.as_str()?)));
                let settings = model.settings_of(consumer.dialect);
                let may_repeat = settings.is_some_and(|it| it.keys_may_repeat);
                let (Some(key), false) = (key, may_repeat) else {
                    continue;
                };
                let slot = (plugin, consumer.dialect, consumer.workspace.as_deref(), key);
                if let Some(other) = owners.insert(slot, consumer) {
                    let [other, own] = [other, consumer].map(|it| it.username.as_deref().unwrap_or(&it.id));
                    let place = DocPath::root().field("consumers").index(number);
                    found.push(Diagnostic::error(
                        place.field("credentials").index(position),
                        format!(
                            "expected a unique key: '{own}' and '{other}' have {plugin} credentials with the \
                            same key"
                        ),
                    ));
                }
            }
        }
        found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Documents of a store that this API has not written: a service that leads nowhere, and a plugin that is wrong.
    fn stored() -> IncrementalModel {
        let mut stored = IncrementalModel::new();
        for (key, value) in [
            ("services/m", json!({"name": "m", "upstream": "gone"})),
            ("plugins/m", json!({"id": "m", "rate-limit": {"limits": "x"}})),
            (
                "services/good",
                json!({"name": "good", "url": "http://127.0.0.1:1"}),
            ),
        ] {
            stored.apply(key, Some(value.to_string().as_bytes()));
        }
        stored
    }

    #[test]
    fn a_write_is_blamed_for_its_own_faults_only() {
        let gone = |name: &str| json!({"name": name, "upstream": "gone"});
        let wrong = |name: &str| json!({"id": name, "rate-limit": {"limits": "x"}});
        let good = |name: &str| json!({"name": name, "url": "http://127.0.0.1:1"});
        let with_route = |name: &str| {
            json!({"name": name, "url": "http://127.0.0.1:1", "routes": [
                {"name": name, "paths": ["/"], "plugins": [{"cors": {}}, {"rate-limit": {"limits": "x"}}]}]})
        };
        let cases: [(&str, Option<Value>, &[&str]); 10] = [
            // What was wrong before is not, whether it comes to stand elsewhere or not.
            ("services/a", Some(good("a")), &[]),
            ("services/z", Some(good("z")), &[]),
            ("plugins/a", Some(json!({"id": "a", "cors": {}})), &[]),
            ("services/good", None, &[]),
            ("services/m", Some(good("m")), &[]),
            ("services/m", Some(gone("m")), &[]),
            // The same words as before, about another resource.
            ("services/a", Some(gone("a")), &["upstream"]),
            ("services/z", Some(gone("z")), &["upstream"]),
            ("plugins/a", Some(wrong("a")), &["rate-limit"]),
            (
                "services/a",
                Some(with_route("a")),
                &["routes[0].plugins[1].rate-limit"],
            ),
        ];
        for (key, value, expected) in cases {
            let mut checker = Checker::new(weir_plugins::registry());
            checker.model = stored();
            let text = value.map(|it| it.to_string());
            let found = checker.new_faults(&[(key, text.as_deref().map(str::as_bytes))]);
            let places: Vec<String> = found.iter().map(|it| it.path.to_string()).collect();
            let is_expected = places.len() == expected.len()
                && places
                    .iter()
                    .zip(expected)
                    .all(|(place, start)| place.starts_with(start));
            assert!(is_expected, "{key} {text:?}: {found:?}");
        }
    }

    #[test]
    fn what_needs_a_document_is_named_with_what_needs_that() {
        let mut checker = Checker::new(weir_plugins::registry());
        checker.model = stored();
        for (key, value) in [
            (
                "upstreams/u",
                json!({"name": "u", "targets": [{"host": "127.0.0.1", "port": 1}]}),
            ),
            (
                "services/s",
                json!({"name": "s", "upstream": "u", "routes": [{"name": "in", "paths": ["/in"]}]}),
            ),
            ("plugins/k", json!({"id": "k", "cors": {}})),
            (
                "routes/r",
                json!({"name": "r", "paths": ["/r"], "service": "s", "plugins": [{"use": "k"}]}),
            ),
            (
                "services/other",
                json!({"name": "other", "url": "http://127.0.0.1:1", "routes": [{"name": "on", "paths": ["/on"], "plugins": [{"use": "k"}]}]}),
            ),
        ] {
            checker.model.apply(key, Some(value.to_string().as_bytes()));
        }
        for (key, expected) in [
            ("upstreams/u", &["services/s upstream", "routes/r service"][..]),
            ("services/s", &["routes/r service"]),
            ("routes/r", &[]),
            (
                "plugins/k",
                &["routes/r plugins[0].use", "services/other plugins[0].use of on"],
            ),
            ("services/gone", &[]),
        ] {
            let found = checker.dependents(key).into_iter();
            let texts: Vec<String> = found
                .map(|it| {
                    let part = it.part.map(|part| format!(" of {part}")).unwrap_or_default();
                    format!("{}/{} {}{part}", it.kind, it.name, it.field)
                })
                .collect();
            assert_eq!(texts, expected, "{key}");
        }
    }

    /// Whether a route asks for such credentials or not.
    #[test]
    fn a_key_is_one_consumers_alone() {
        let consumer = |name: &str, credential: Value| json!({"name": name, "credentials": [credential]});
        let route =
            json!({"name": "r", "paths": ["/"], "plugins": [{"key-auth": {}}], "to": {"service": "s"}});
        let service = json!({"name": "s", "url": "http://127.0.0.1:1"});
        for (known, new, expected) in [
            (
                json!({"key-auth": {"key": "k"}}),
                json!({"key-auth": {"key": "k"}}),
                1,
            ),
            (
                json!({"key-auth": {"key": "k"}}),
                json!({"key-auth": {"key": "l"}}),
                0,
            ),
            (
                json!({"basic-auth": {"username": "u", "password": "p"}}),
                json!({"basic-auth": {"username": "u", "password": "q"}}),
                1,
            ),
            (
                json!({"hmac-auth": {"key": "k", "secret": "s"}}),
                json!({"key-auth": {"key": "k"}}),
                0,
            ),
        ] {
            for has_route in [false, true] {
                let mut stored = IncrementalModel::new();
                let mut put =
                    |key: &str, value: &Value| stored.apply(key, Some(value.to_string().as_bytes()));
                put("consumers/alice", &consumer("alice", known.clone()));
                if has_route {
                    put("services/s", &service);
                    put("routes/r", &route);
                }
                let text = consumer("bob", new.clone()).to_string();
                let (_, broken) = stored.model();
                assert!(broken.is_empty(), "{broken:?}");
                let mut checker = Checker::new(weir_plugins::registry());
                checker.model = stored;
                let found = checker.new_faults(&[("consumers/bob", Some(text.as_bytes()))]);
                assert_eq!(found.len(), expected, "{known} {new} {has_route}: {found:?}");
                assert!(!format!("{found:?}").contains("\"k\""), "{found:?}");
            }
        }
    }
}
