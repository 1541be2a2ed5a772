//! Whether the parts that rights name are there. A right in an environment or a portal that there is not would be one
//! that does not exist: a typing error in it is found when a caller is refused.
//!
//! A right may come before its part where its holder makes that: an API, and a workspace, which is known by what lies
//! in it. Such a right is stored, and the answer says so.

use super::apis::{EntitySnapshot, PREFIX};
use super::{Api, Problem};
use crate::access::{Right, Scope};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_dialect::DEFAULT_ENVIRONMENT;
use weir_model::overview::List;

/// What is to be said of rights that are stored; `None`: nothing.
#[derive(Debug)]
pub struct RightsWarning(Option<HeaderValue>);

impl RightsWarning {
    /// Puts it into the answer.
    pub fn with_warning(self, mut answer: Response) -> Response {
        if let Some(warning) = self.0 {
            answer.headers_mut().insert(header::WARNING, warning);
        }
        answer
    }
}

/// Checks the parts that rights name, each with its place in the body. Those that were given before may stay: what they
/// name may be gone by now.
pub async fn check_scopes(
    api: &Arc<Api>,
    rights: &[(String, &Right)],
    before: &[Right],
) -> Result<RightsWarning, Problem> {
    let new: Vec<&(String, &Right)> = rights.iter().filter(|(_, it)| !before.contains(it)).collect();
    if new.iter().all(|(_, it)| it.scope == Scope::Everything) {
        return Ok(RightsWarning(None));
    }
    let (documents, _) = api.store.read(PREFIX).await?;
    let snapshot = EntitySnapshot::new(documents);
    let is_known = |kind: &str, name: &str| snapshot.bytes(&format!("{PREFIX}{kind}/{name}")).is_some();
    let (mut wrong, mut empty) = (Vec::new(), BTreeSet::new());
    let workspaces = workspaces(api).await?;
    for (place, right) in new {
        let (is_there, field, what) = match &right.scope {
            Scope::Everything => continue,
            Scope::Workspace(name) => {
                if !workspaces.contains(name) {
                    empty.insert(format!("the workspace '{name}' is empty"));
                }
                continue;
            }
            Scope::Api(name) => {
                if !is_known("apis", name) {
                    empty.insert(format!("the API '{name}' does not exist yet"));
                }
                continue;
            }
            Scope::Environment(name) => (
                name == DEFAULT_ENVIRONMENT || is_known("environments", name),
                "environment",
                format!("the environment '{name}'"),
            ),
            Scope::Portal(name) => (
                is_known("portals", name),
                "portal",
                format!("the portal '{name}'"),
            ),
        };
        if !is_there {
            wrong.push((format!("{place}.{field}"), format!("{what} does not exist")));
        }
    }
    if !wrong.is_empty() {
        let detail = wrong.iter().map(|(place, message)| format!("{place}: {message}"));
        let detail = detail.collect::<Vec<_>>().join("; ");
        return Err(Problem::listing(StatusCode::UNPROCESSABLE_ENTITY, detail, wrong));
    }
    Ok(RightsWarning(weir_dialect::warning(empty)))
}

/// Rights with their places in a body of rights.
pub fn placed(rights: &[Right]) -> Vec<(String, &Right)> {
    let placed = rights.iter().enumerate();
    placed
        .map(|(place, it)| (format!("rights[{place}]"), it))
        .collect()
}

/// The workspaces in which something lies.
async fn workspaces(api: &Arc<Api>) -> Result<BTreeSet<String>, Problem> {
    let working = Arc::clone(api);
    let named = tokio::task::spawn_blocking(move || {
        let rows = List::ALL
            .into_iter()
            .flat_map(|list| working.index.rows(list).to_vec());
        let named = rows.filter_map(|it| match &it.scope {
            Scope::Workspace(name) => Some(name.clone()),
            _ => None,
        });
        named.collect()
    });
    let named = named.await;
    named.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
