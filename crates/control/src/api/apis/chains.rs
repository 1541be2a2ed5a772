//! Plugins that a draft or an environment names, before they are stored: whether there are such plugins, and whether they
//! take what is written. Without this, the first publish would tell.

use crate::api::{Api, Problem};
use serde_json::{Value, json};
use weir_apis::entities::Draft;
use weir_store::Key;

/// The service that chains are tried in. It is not stored.
const SERVICE: &str = "native/services/weir.chains-that-are-tried";

/// A chain, and the field that it stands in.
pub type PlacedChain<'c> = (String, &'c [Value]);

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

/// The chains of a draft that are not as they were, and that can be checked before it is known where they will be
/// published: each environment may have shared plugins of its own.
pub fn of_draft<'d>(draft: &'d Draft, before: &Draft) -> Vec<PlacedChain<'d>> {
    let mut chains = Vec::new();
    let mut add = |place: String, steps: &'d [Value], known: Option<&[Value]>| {
        if !steps.is_empty() && known != Some(steps) && !steps.iter().any(is_shared) {
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
    step.is_string() || step.get("use").is_some_and(Value::is_string)
}
