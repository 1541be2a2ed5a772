//! Plugins that a draft or an environment names, before they are stored: whether the caller may use what they use, whether
//! there are such plugins, and whether they take what is written. Without this, the first publish would tell.

use super::library::PREFIX;
use crate::access::{Action, Caller, Scope};
use crate::api::{Api, Problem};
use crate::secrets::Syntaxes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use weir_apis::entities::{Backend, Draft, Runtime};
use weir_dialect::DialectName;
use weir_store::Key;

/// The service that chains are tried in. It is not stored.
const SERVICE: &str = "native/services/weir.chains-that-are-tried";

/// A chain, and the field that it stands in.
pub type PlacedChain<'c> = (String, &'c [Value]);

/// What a step may not use: the place, what it is, and why.
type RejectReason = (String, String);

/// Fields in which steps name plugins, tables, consumers and counters by their ids.
const NAMING: [&str; 4] = ["use", "overrides", "anonymous", "scope"];

/// Log files that are no files of the machine.
const STREAMS: [&str; 2] = ["/dev/stdout", "/dev/stderr"];

/// Refuses steps that use more than their author may. Who defines an API decides about its calls alone: other parts of the
/// configuration, secrets and files of gateways are for callers who may read or write all of it. What management names
/// is its own for all callers.
pub async fn permit(api: &Api, caller: &Caller, chains: &[PlacedChain<'_>]) -> Result<(), Problem> {
    if chains.is_empty() {
        return Ok(());
    }
    let environments = format!("{PREFIX}environments/");
    let (documents, _) = api.store.read(&environments).await?;
    let names = documents
        .iter()
        .filter_map(|it| it.key.as_str().strip_prefix(&environments));
    let syntaxes = Syntaxes::of(&api.options.dialects);
    let references = syntaxes.within(Some(DialectName::NATIVE));
    let check = ChainRights {
        environments: names.collect(),
        is_reference: &|text: &str| references.is_reference(text),
        reads_all: caller.can(Action::ConfigurationRead, &Scope::Everything),
        writes_all: caller.can(Action::ConfigurationWrite, &Scope::Everything),
    };
    let refused: Vec<RejectReason> = chains.iter().flat_map(|it| check.refused(it)).collect();
    forbid(refused)
}

/// Refuses references to secrets in addresses, for the same reason.
pub fn permit_runtime(api: &Api, caller: &Caller, known: &Runtime, wanted: &Runtime) -> Result<(), Problem> {
    let (known, wanted) = (&known.backends, &wanted.backends);
    permit_backends(api, caller, "runtime.backends", known, wanted)
}

/// The same of backends.
pub fn permit_backends(
    api: &Api,
    caller: &Caller,
    place: &str,
    known: &BTreeMap<String, Backend>,
    wanted: &BTreeMap<String, Backend>,
) -> Result<(), Problem> {
    if caller.can(Action::ConfigurationWrite, &Scope::Everything) {
        return Ok(());
    }
    let syntaxes = Syntaxes::of(&api.options.dialects);
    let references = syntaxes.within(Some(DialectName::NATIVE));
    let new = wanted.iter().filter(|(name, it)| known.get(*name) != Some(*it));
    let refused = new.filter(|(_, it)| references.are_in(&json!(it)));
    forbid(
        refused
            .map(|(name, _)| (format!("{place}.{name}"), SECRET.to_owned()))
            .collect(),
    )
}

const SECRET: &str = "to refer to a secret takes a right to write the whole configuration";

fn forbid(refused: Vec<RejectReason>) -> Result<(), Problem> {
    let Some((place, message)) = refused.first() else {
        return Ok(());
    };
    let detail = format!("{place}: {message}");
    Err(Problem::listing(
        axum::http::StatusCode::FORBIDDEN,
        detail,
        refused,
    ))
}

/// The rights that a chain is held to.
struct ChainRights<'r> {
    environments: BTreeSet<&'r str>,
    /// Whether a text refers to a secret.
    is_reference: &'r dyn Fn(&str) -> bool,
    reads_all: bool,
    writes_all: bool,
}

impl ChainRights<'_> {
    fn refused(&self, (place, steps): &PlacedChain<'_>) -> Vec<RejectReason> {
        let mut refused = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            self.look(&format!("{place}[{index}]"), step, &mut refused);
        }
        refused
    }

    fn look(&self, place: &str, value: &Value, refused: &mut Vec<RejectReason>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let place = format!("{place}.{name}");
                    if let Some(message) = self.fault(name, value) {
                        refused.push((place, message));
                    } else {
                        self.look(&place, value, refused);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look(&format!("{place}[{index}]"), item, refused);
                }
            }
            Value::String(text) if !self.writes_all && (self.is_reference)(text) => {
                refused.push((place.to_owned(), SECRET.to_owned()));
            }
            _ => {}
        }
    }

    /// What speaks against a field, whatever else it holds.
    fn fault(&self, name: &str, value: &Value) -> Option<String> {
        if NAMING.contains(&name) {
            let texts = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            let mut texts = texts.iter().filter_map(Value::as_str);
            if let Some(made) = texts.clone().find(|it| self.is_made(it)) {
                return Some(format!(
                    "'{made}' is a name that publications and subscriptions have"
                ));
            }
            let is_shared = matches!(name, "use" | "overrides") && texts.next().is_some();
            if is_shared && !self.reads_all {
                let message = "to use shared plugins takes a right to read the whole configuration";
                return Some(message.to_owned());
            }
        }
        let file = match name {
            "proxy-cache" => value.get("disk").filter(|it| !it.is_null()),
            "logger" => value.pointer("/target/file").filter(|it| {
                let path = it.get("path").and_then(Value::as_str);
                !path.is_some_and(|it| STREAMS.contains(&it))
            }),
            _ => None,
        };
        (file.is_some() && !self.writes_all)
            .then(|| "to use files of gateways takes a right to write the whole configuration".to_owned())
    }

    /// Whether management makes such names: `sub.ID`, `products.NAME.…` and `ENV.API.VERSION.…`.
    fn is_made(&self, text: &str) -> bool {
        match text.split_once('.') {
            Some(("sub" | "products", _)) => true,
            Some((environment, rest)) => {
                self.environments.contains(environment) && rest.matches('.').count() >= 2
            }
            None => false,
        }
    }
}

/// Whether a chain can be checked before it is known where it will be published: each environment may have shared plugins of
/// its own.
pub fn is_complete((_, steps): &PlacedChain<'_>) -> bool {
    !steps.iter().any(is_shared)
}

/// Refuses chains that no gateway could serve, each fault with its place.
pub async fn check(api: &Api, chains: Vec<PlacedChain<'_>>) -> Result<(), Problem> {
    if chains.is_empty() {
        return Ok(());
    }
    let name = SERVICE.rsplit('/').next();
    let routes: Vec<Value> = chains
        .iter()
        .enumerate()
        .map(|(index, (_, steps))| {
            json!({ "name": format!("{}.{index}", name.unwrap_or_default()), "paths": [format!("=/{index}")], "plugins": steps })
        })
        .collect();
    let service = json!({ "name": name, "url": "http://127.0.0.1:1", "routes": routes });
    let key = Key::new(SERVICE).map_err(|error| Problem::bad(error.to_string()))?;
    let checked = api.resources.check(&key, Some(&service)).await;
    checked.map(|_| ()).map_err(|problem| {
        let places = chains.iter().enumerate();
        places.fold(problem, |problem, (index, (place, _))| {
            problem.renamed(&format!("routes[{index}].plugins"), place)
        })
    })
}

/// The chains of a draft that are not as they were.
pub fn of_draft<'d>(draft: &'d Draft, before: &Draft) -> Vec<PlacedChain<'d>> {
    let mut chains = Vec::new();
    let mut add = |place: String, steps: &'d [Value], known: Option<&[Value]>| {
        if !steps.is_empty() && known != Some(steps) {
            chains.push((place, steps));
        }
    };
    add("chain".to_owned(), &draft.chain, Some(&before.chain));
    for (index, component) in draft.components.iter().enumerate() {
        let known = before.components.iter().find(|it| it.name == component.name);
        let known = known.map(|it| it.plugins.as_slice());
        add(format!("components[{index}].plugins"), &component.plugins, known);
    }
    for (id, settings) in &draft.operations {
        let known = before.operations.get(id).map(|it| it.plugins.as_slice());
        add(format!("operations.{id}.plugins"), &settings.plugins, known);
    }
    chains
}

/// Whether a step is a shared plugin, named by its id.
fn is_shared(step: &Value) -> bool {
    step.get("use").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps, and the end of what is said to somebody who may write all, read all, or neither; empty: nothing.
    #[test]
    fn steps_are_held_to_the_rights_of_their_author() {
        let (shared, file) = ("read the whole configuration", "files of gateways");
        let made = "subscriptions have";
        for (step, expected) in [
            (json!({"cors": {}}), ["", "", ""]),
            (
                json!({"cors": {"allow_origins": ["$env://HOME"]}}),
                ["", SECRET, SECRET],
            ),
            (json!({"use": "corp"}), ["", "", shared]),
            (json!({"cors": {}, "overrides": ["corp"]}), ["", "", shared]),
            (json!({"use": "test.b.1.plan.gold"}), [made; 3]),
            (json!({"use": "other.b.1.plan.gold"}), ["", "", shared]),
            (
                json!({"rate-limit": {"scope": "test.b.1.2.plan.gold"}}),
                [made; 3],
            ),
            (
                json!({"rate-limit": {"scope": "products.x.plan.gold"}}),
                [made; 3],
            ),
            (json!({"rate-limit": {"scope": "mine"}}), ["", "", ""]),
            (
                json!({"key-auth": {"identity": {"anonymous": "sub.s1"}}}),
                [made; 3],
            ),
            (
                json!({"multi-auth": {"any_of": [{"key-auth": {"identity": {"anonymous": "sub.s1"}}}]}}),
                [made; 3],
            ),
            (
                json!({"proxy-cache": {"disk": {"path": "/tmp/x"}}}),
                ["", file, file],
            ),
            (json!({"proxy-cache": {"disk": null}}), ["", "", ""]),
            (
                json!({"logger": {"target": {"file": {"path": "a.log"}}}}),
                ["", file, file],
            ),
            (
                json!({"logger": {"target": {"file": {"path": "/dev/stdout"}}}}),
                ["", "", ""],
            ),
        ] {
            for ((reads_all, writes_all), expected) in [(true, true), (true, false), (false, false)]
                .into_iter()
                .zip(expected)
            {
                let rights = ChainRights {
                    environments: BTreeSet::from(["test"]),
                    is_reference: &|text: &str| text.starts_with("$env://"),
                    reads_all,
                    writes_all,
                };
                let steps = [step.clone()];
                let refused = rights.refused(&("chain".to_owned(), &steps));
                let told = refused.first().map_or("", |(_, message)| message);
                assert_eq!(told.is_empty(), expected.is_empty(), "{step} {refused:?}");
                assert!(told.contains(expected), "{step} {refused:?}");
                assert!(
                    refused.iter().all(|it| it.0.starts_with("chain[0].")),
                    "{refused:?}"
                );
            }
        }
    }
}
