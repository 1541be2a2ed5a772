//! From the documents of a store to the model.
//!
//! Each document is read once, when it comes; what is made of it stays until it changes. A document that is invalid, or
//! refers to something that is not there, is left out and named; it never stops the rest. If a plugin is left out
//! that decides about calls, those are refused. **What it is not**: it reads
//! no store; the part that follows one passes the changes on.

mod match_order;
mod takeovers;
mod workspace;
mod workspace_scope;

use crate::Options;
use crate::document::entity_type::{EntityType, entity_type};
use match_order::MatchOrder;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use takeovers::Takeovers;
use uuid::Uuid;
use weir_dialect::{DEFAULT_WORKSPACE, SkippedDocument};
use weir_model::diagnostic::PathStep;
use weir_model::{DocPath, Model};
use workspace::Workspace;

/// The field that says how long an entity stays.
pub(crate) const TTL: &str = "ttl";

/// The documents of this dialect in a store.
#[derive(Default)]
pub struct IncrementalModel {
    options: Options,
    workspaces: BTreeMap<String, Workspace>,
    /// The places of all matches.
    numbers: MatchOrder,
    /// Documents that are no entities, by their names.
    broken: BTreeMap<String, String>,
    /// Routes that take calls of other workspaces.
    takeovers: Takeovers,
}

/// Documents may hold secrets.
impl std::fmt::Debug for IncrementalModel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("IncrementalModel")
            .field("workspaces", &self.workspaces.len())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl IncrementalModel {
    /// No documents yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Takes over what became of a document; `None`: it is gone. `key` is its name without the dialect's own segment:
    /// `WORKSPACE/TYPE/ID`.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        self.broken.remove(key);
        let Some((workspace, entity_type, id)) = parse(key) else {
            if value.is_some() {
                self.broken
                    .insert(key.to_owned(), "not the name of an entity".to_owned());
            }
            return;
        };
        let workspace = self
            .workspaces
            .entry(workspace.to_owned())
            .or_insert_with(|| Workspace::new(workspace));
        let place = key
            .split('/')
            .fold(DocPath::root(), |place, segment| place.field(segment));
        if let Err(reason) = workspace.apply(entity_type, id, value, place) {
            self.broken.insert(key.to_owned(), reason);
        }
        if entity_type.is("routes") {
            self.takeovers.note(workspace.name(), id);
        }
    }

    /// The model of all documents, and those that had to be left out.
    pub fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let mut broken: Vec<SkippedDocument> = self
            .broken
            .iter()
            .map(|(key, reason)| SkippedDocument {
                document: key.clone(),
                reason: reason.clone(),
            })
            .collect();
        let mut whole = Model {
            dialect: crate::NAME,
            ..Model::default()
        };
        self.takeovers.find(&self.workspaces, self.options.router);
        for workspace in self.workspaces.values_mut() {
            workspace.prepare(self.options.router, &mut self.numbers);
        }
        let all_are_numbered = self.numbers.renumber();
        for workspace in self.workspaces.values_mut() {
            whole.merge(workspace.model(&self.numbers, all_are_numbered, &mut broken));
        }
        broken.sort_by(|one, other| one.document.cmp(&other.document));
        broken.dedup_by(|one, other| one.document == other.document);
        (whole, broken)
    }
}

impl IncrementalModel {
    /// Documents that are served otherwise than their owners may think: plugins that are kept, but not served, and
    /// routes that take calls of other workspaces.
    pub fn warnings(&self) -> Vec<SkippedDocument> {
        let unserved = self
            .workspaces
            .values()
            .flat_map(|workspace| workspace.unserved());
        self.takeovers.diagnostics().chain(unserved).collect()
    }
}

impl weir_dialect::IncrementalModel for IncrementalModel {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        Self::model(self)
    }

    fn warnings(&self) -> Vec<SkippedDocument> {
        Self::warnings(self)
    }
}

fn parse(key: &str) -> Option<(&str, &'static EntityType, Uuid)> {
    let mut segments = key.split('/');
    let (workspace, name, id) = (segments.next()?, segments.next()?, segments.next()?);
    if segments.next().is_some() {
        return None;
    }
    Some((workspace, entity_type(name)?, Uuid::try_parse(id).ok()?))
}

/// The name of the document at or above a place.
fn key_of(path: &DocPath) -> Option<String> {
    let segments: Vec<&str> = path
        .0
        .iter()
        .take(3)
        .map_while(|step| match step {
            PathStep::Field(name) => Some(name.as_str()),
            PathStep::Index(_) => None,
        })
        .collect();
    (segments.len() == 3).then(|| segments.join("/"))
}

/// When an entity goes by itself: some credentials stay only so many seconds after they were made.
pub(crate) fn end(entity_type: &EntityType, fields: &Map<String, Value>) -> Option<SystemTime> {
    entity_type.record.field(TTL)?;
    let seconds = fields.get(TTL)?.as_u64().filter(|seconds| *seconds > 0)?;
    let end = fields.get("created_at")?.as_u64()?.saturating_add(seconds);
    UNIX_EPOCH.checked_add(Duration::from_secs(end))
}

/// When a document goes by itself; `None`: it stays. `key` is as in [`IncrementalModel::apply`].
pub fn end_of(key: &str, value: &[u8]) -> Option<SystemTime> {
    let (_, entity_type, _) = parse(key)?;
    entity_type.record.field(TTL)?;
    end(entity_type, &serde_json::from_slice(value).ok()?)
}

/// The name of a workspace's resource in the model of all.
pub(crate) fn name_in(workspace: &str, name: &str) -> String {
    match workspace {
        DEFAULT_WORKSPACE => name.to_owned(),
        workspace => format!("{workspace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: &str = "5f3e1c80-0000-4000-8000-000000000001";
    const ROUTE: &str = "5f3e1c80-0000-4000-8000-000000000002";
    const PLUGIN: &str = "5f3e1c80-0000-4000-8000-000000000003";

    fn stored(documents: &[(&str, &str)]) -> IncrementalModel {
        let mut stored = IncrementalModel::new(Options::default());
        for (key, value) in documents {
            stored.apply(key, Some(value.as_bytes()));
        }
        stored
    }

    fn summary(stored: &mut IncrementalModel) -> (Vec<String>, Vec<String>) {
        let (model, broken) = stored.model();
        let routes = model
            .routes
            .iter()
            .map(|route| format!("{} {}", route.name, route.plugins.len()));
        let broken = broken.iter().map(|it| format!("{}: {}", it.document, it.reason));
        (routes.collect(), broken.collect())
    }

    #[test]
    fn documents_become_a_model_one_by_one() {
        let service = format!("default/services/{SERVICE}");
        let route = format!("default/routes/{ROUTE}");
        let plugin = format!("default/plugins/{PLUGIN}");
        let route_text =
            format!(r#"{{"name":"r","paths":["/r"],"service":{{"id":"{SERVICE}"}},"tags":null}}"#);
        let plugin_text =
            format!(r#"{{"name":"key-auth","route":{{"id":"{ROUTE}"}},"config":{{"anonymous":null}}}}"#);
        let mut stored = stored(&[
            (&route, &route_text),
            (&plugin, &plugin_text),
            ("default/vaults/x", "{}"),
            ("odd", "{}"),
        ]);
        let odd = "not the name of an entity";
        let (routes, broken) = summary(&mut stored);
        // Without its service it refuses its calls, rather than leave them to another one.
        assert_eq!(routes, ["r 1"]);
        assert_eq!(broken.len(), 3, "{broken:?}");
        stored.apply("default/vaults/x", None);
        stored.apply(&service, Some(br#"{"name":"s","host":"x.test"}"#));
        assert_eq!(
            summary(&mut stored),
            (vec!["r 1".to_owned()], vec![format!("odd: {odd}")])
        );
        stored.apply(&plugin, Some(br#"{"name":"key-auth","config":{"key_names":5}}"#));
        let reason = "config.key_names: expected an array; calls that come to it are refused";
        let expected = format!("{plugin}: {reason}");
        // One that refuses calls stands in its place.
        assert_eq!(
            summary(&mut stored),
            (vec!["r 1".to_owned()], vec![expected, format!("odd: {odd}")])
        );
        stored.apply(&plugin, None);
        stored.apply("odd", None);
        stored.apply(&route, None);
        assert_eq!(summary(&mut stored), (Vec::new(), Vec::new()));
    }

    #[test]
    fn keys_of_sets_follow_their_changes() {
        const SET: &str = "5f3e1c80-0000-4000-8000-000000000005";
        let mut stored = IncrementalModel::new(Options::default());
        let key = format!("default/keys/{SERVICE}");
        let mut keys = |document: &str, value: Option<&str>| {
            stored.apply(document, value.map(str::as_bytes));
            let (model, broken) = stored.model();
            assert!(broken.is_empty(), "{broken:?}");
            model.plugins[0].config["keys"].to_string()
        };
        let plugin = r#"{"name":"jwe-decrypt","config":{"key_sets":["s"]}}"#;
        assert_eq!(keys(&format!("default/plugins/{PLUGIN}"), Some(plugin)), "[]");
        let set = format!("default/key_sets/{SET}");
        assert_eq!(keys(&set, Some(r#"{"name":"s"}"#)), "[]");
        let member =
            |text: &str| format!(r#"{{"kid":"k","set":{{"id":"{SET}"}},"pem":{{"private_key":"{text}"}}}}"#);
        assert_eq!(keys(&key, Some(&member("a"))), r#"[{"id":"k","pem":"a"}]"#);
        assert_eq!(keys(&key, Some(&member("b"))), r#"[{"id":"k","pem":"b"}]"#);
        assert_eq!(keys(&set, None), "[]");
        assert_eq!(keys(&set, Some(r#"{"name":"other"}"#)), "[]");
        assert_eq!(keys(&set, Some(r#"{"name":"s"}"#)), r#"[{"id":"k","pem":"b"}]"#);
        assert_eq!(keys(&key, None), "[]");
    }

    /// A plugin of a route has what is said of the GraphQL of the route's service, whichever that is by now.
    #[test]
    fn graphql_of_a_route_follows_its_service() {
        const OTHER: &str = "5f3e1c80-0000-4000-8000-000000000006";
        let route = format!("default/routes/{ROUTE}");
        let at = |service: &str| format!(r#"{{"name":"r","paths":["/r"],"service":{{"id":"{service}"}}}}"#);
        let query = format!(r#"{{"uri":"/q","query":"{{ a }}","service":{{"id":"{SERVICE}"}}}}"#);
        let plugin = format!(r#"{{"name":"degraphql","route":{{"id":"{ROUTE}"}},"config":{{}}}}"#);
        let mut stored = stored(&[
            (&format!("default/plugins/{PLUGIN}"), &plugin),
            (&format!("default/degraphql_routes/{PLUGIN}"), &query),
            (
                &format!("default/services/{SERVICE}"),
                r#"{"name":"s","host":"s.test"}"#,
            ),
            (
                &format!("default/services/{OTHER}"),
                r#"{"name":"o","host":"o.test"}"#,
            ),
        ]);
        stored.model();
        for (service, expected) in [(SERVICE, 1), (OTHER, 0), (SERVICE, 1)] {
            stored.apply(&route, Some(at(service).as_bytes()));
            let (model, broken) = stored.model();
            assert!(broken.is_empty(), "{broken:?}");
            let text = serde_json::to_string(&model).expect("JSON");
            assert_eq!(text.matches(r#""path":"/q""#).count(), expected, "{service}");
        }
    }

    #[test]
    fn plugins_stay_when_what_they_name_goes() {
        let mut stored = IncrementalModel::new(Options::default());
        let vault = format!("default/vault_auth_vaults/{SERVICE}");
        let plugin = format!(r#"{{"name":"vault-auth","config":{{"vault":{{"id":"{SERVICE}"}}}}}}"#);
        stored.apply(&format!("default/plugins/{PLUGIN}"), Some(plugin.as_bytes()));
        let signer = r#"{"name":"jwt-signer","config":{}}"#;
        stored.apply(&format!("default/plugins/{ROUTE}"), Some(signer.as_bytes()));
        let entity = r#"{"name":"v","host":"vault.test","mount":"m","vault_token":"t"}"#;
        for (value, expected) in [
            (None, serde_json::Value::Null),
            (Some(entity), serde_json::json!("http://vault.test:8200")),
            (None, serde_json::Value::Null),
        ] {
            stored.apply(&vault, value.map(str::as_bytes));
            let (model, broken) = stored.model();
            assert!(broken.is_empty(), "{broken:?}");
            let config = |name: &str| {
                let found = model.plugins.iter().find(|it| it.name == name);
                found.expect("it is in the chain").config.clone()
            };
            assert_eq!(config("vault-auth")["vault"]["address"], expected);
            // It cannot be made, so that its routes serve no calls.
            assert_eq!(config("jwt-signer")["access_token"]["signing"].get("keys"), None);
        }
    }

    #[test]
    fn keys_that_do_not_stay_have_an_end() {
        let key = format!("default/keyauth_credentials/{PLUGIN}");
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        for (key, value, expected) in [
            (key.as_str(), r#"{"created_at":100,"ttl":60}"#, at(160)),
            (&key, r#"{"created_at":100,"ttl":0}"#, None),
            (&key, r#"{"created_at":100,"ttl":null}"#, None),
            (&key, r#"{"created_at":100}"#, None),
            (&key, "{", None),
            (&key, r#"{"created_at":18446744073709551615,"ttl":60}"#, None),
            (
                &format!("default/consumers/{PLUGIN}"),
                r#"{"created_at":100,"ttl":60}"#,
                None,
            ),
            ("odd", "{}", None),
        ] {
            assert_eq!(end_of(key, value.as_bytes()), expected, "{key} {value}");
        }
    }

    #[test]
    fn workspaces_do_not_meet() {
        let route_text = format!(r#"{{"name":"r","paths":["/r"],"service":{{"id":"{SERVICE}"}}}}"#);
        let documents: Vec<(String, String)> = ["default", "team"]
            .into_iter()
            .flat_map(|workspace| {
                let service = r#"{"name":"s","host":"x.test"}"#.to_owned();
                [
                    (format!("{workspace}/services/{SERVICE}"), service),
                    (format!("{workspace}/routes/{ROUTE}"), route_text.clone()),
                ]
            })
            .collect();
        let mut stored = IncrementalModel::new(Options::default());
        for (key, value) in &documents {
            stored.apply(key, Some(value.as_bytes()));
        }
        let (model, _) = stored.model();
        let names: Vec<&str> = model.routes.iter().map(|route| route.name.as_str()).collect();
        assert_eq!(names, ["r", "team/r"]);
        assert_eq!(model.services[1].name, "team/s");
    }

    /// A writer of one workspace chooses ids: those of another one's plugins and consumers are no way into it.
    #[test]
    fn equal_names_in_two_workspaces_are_distinguished() {
        const OTHER: &str = "5f3e1c80-0000-4000-8000-000000000004";
        let mut stored = IncrementalModel::new(Options::default());
        for workspace in ["default", "team"] {
            let consumer = format!(r#"{{"consumer":{{"id":"{SERVICE}"}}"#);
            for (entity_type, id, value) in [
                (
                    "routes",
                    ROUTE,
                    r#"{"name":"r","paths":["/r"],"protocols":["http"]}"#.to_owned(),
                ),
                ("consumers", SERVICE, r#"{"username":"alice"}"#.to_owned()),
                (
                    "keyauth_credentials",
                    PLUGIN,
                    format!(r#"{consumer},"key":"k"}}"#),
                ),
                (
                    "plugins",
                    PLUGIN,
                    format!(
                        r#"{{"name":"key-auth","config":{{"key_names":["{workspace}"],"anonymous":"alice"}}}}"#
                    ),
                ),
                (
                    "plugins",
                    OTHER,
                    format!(r#"{consumer},"name":"cors","config":{{"max_age":1}}}}"#),
                ),
            ] {
                stored.apply(&format!("{workspace}/{entity_type}/{id}"), Some(value.as_bytes()));
            }
        }
        let (model, broken) = stored.model();
        assert!(
            broken.is_empty() && model.validate().is_empty(),
            "{broken:?} {:?}",
            model.validate()
        );
        let [one, other] = [&model.consumers[0], &model.consumers[1]];
        assert_eq!((one.own_id(), other.own_id()), (SERVICE, SERVICE));
        assert_eq!(
            (one.workspace.as_deref(), other.workspace.as_deref()),
            (None, Some("team"))
        );
        for (route, prefix) in model.routes.iter().zip(["", "team/"]) {
            let steps = route.plugins.iter();
            let used: Vec<_> = steps.clone().filter_map(|it| it.plugin.clone()).collect();
            assert_eq!(used, [weir_model::PluginRef::Shared(format!("{prefix}{PLUGIN}"))]);
            let tables: Vec<_> = steps.flat_map(|it| it.consumer_overrides.clone()).collect();
            assert_eq!(tables, [format!("{prefix}cors by consumer")]);
            let table = model
                .consumer_tables
                .iter()
                .find(|it| it.id == tables[0])
                .expect("a table");
            let listed: Vec<_> = table.instances.iter().collect();
            let expected = (format!("{prefix}{SERVICE}"), Some(format!("{prefix}{OTHER}")));
            assert_eq!(listed, [(&expected.0, &expected.1)]);
            let plugin = model
                .plugins
                .iter()
                .find(|it| it.id == format!("{prefix}{PLUGIN}"));
            let plugin = plugin.expect("a plugin");
            assert_eq!(
                plugin.config["identity"]["anonymous"],
                format!("{prefix}{SERVICE}"),
                "{:?}",
                plugin.config
            );
            assert_eq!(plugin.workspace.is_some(), !prefix.is_empty());
        }
    }
}
