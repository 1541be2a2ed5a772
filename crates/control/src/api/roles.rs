//! Roles as a table, and whether a user may do something: which right allows it, or what is missing. What a role allows is
//! decided in `crate::access`; here it is only reported.

use super::Api;
use super::problem::Problem;
use crate::access::{Action, Right, Role, RoleAssignment, Scope};
use crate::api::json_body::Json;
use axum::extract::{Path, Query, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Every role, and every action that one may allow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct RoleTable {
    /// The roles.
    pub roles: Vec<ListedRole>,
    /// The actions that calls of this API require.
    pub actions: Vec<ListedAction>,
}

/// A role.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ListedRole {
    /// Its name.
    pub name: Role,
    /// The actions that it allows.
    pub actions: Vec<Action>,
}

/// An action.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ListedAction {
    /// Its name.
    pub name: Action,
    /// Its meaning, in words.
    pub meaning: String,
}

/// Answers `GET /api/v1/roles`.
pub async fn list() -> Json<RoleTable> {
    let role = |name: Role| ListedRole {
        name,
        actions: Action::ALL
            .iter()
            .copied()
            .filter(|it| name.allows(*it))
            .collect(),
    };
    let action = |name: &Action| ListedAction {
        name: *name,
        meaning: name.meaning().to_owned(),
    };
    Json(RoleTable {
        roles: Role::all().map(role).collect(),
        actions: Action::ALL.iter().map(action).collect(),
    })
}

/// A question about a user.
#[derive(Deserialize, JsonSchema)]
pub struct PermissionQuery {
    /// The action, such as `configuration:write`.
    action: String,
    /// Where: `workspace:NAME`, `environment:NAME`, `api:NAME` or `portal:NAME`; left out: everywhere.
    scope: Option<String>,
}

/// Whether a user may do something somewhere, and why.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether the user may.
    pub allowed: bool,
    /// The answer in words.
    pub reason: String,
    /// The rights of the user that allow it there.
    pub by: Vec<RoleAssignment>,
    /// Those that allow it in other places only.
    pub elsewhere: Vec<RoleAssignment>,
    /// The roles that would allow it there.
    pub roles: Vec<Role>,
}

/// Answers `GET /api/v1/users/{name}/can`.
pub async fn can(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Query(asked): Query<PermissionQuery>,
) -> Result<Json<Verdict>, Problem> {
    let user = api.options.users.by_name(&name);
    let user = user.ok_or_else(|| Problem::not_found(format_args!("the user '{name}'")))?;
    let action = Action::ALL.iter().find(|it| it.as_str() == asked.action);
    let action = action.ok_or_else(|| {
        Problem::bad(format!(
            "there is no action '{}': GET /api/v1/roles lists all",
            asked.action
        ))
    })?;
    let scope = asked.scope.as_deref().filter(|it| !it.is_empty());
    let scope = scope.map_or(Ok(Scope::Everything), Scope::parse);
    let scope = scope.map_err(Problem::bad)?;
    Ok(Json(verdict(&name, &user.rights, *action, &scope)))
}

fn verdict(name: &str, rights: &[Right], action: Action, scope: &Scope) -> Verdict {
    let allowing = rights.iter().filter(|it| it.role.allows(action)).cloned();
    let (by, elsewhere): (Vec<Right>, Vec<Right>) = allowing.partition(|it| it.scope.contains(scope));
    let roles: Vec<Role> = Role::that_allow(action).collect();
    let allowed = action == Action::Own || !by.is_empty();
    let place = |scope: &Scope| match scope {
        Scope::Everything => "everywhere".to_owned(),
        part => format!("in {part}"),
    };
    let describe = |it: &Right| format!("{} {}", it.role.as_str(), place(&it.scope));
    let reason = match (action, by.first(), elsewhere.as_slice()) {
        (Action::Own, ..) => "every user may".to_owned(),
        (_, Some(right), _) => format!("{} allows it", describe(right)),
        (_, None, []) => {
            let roles: Vec<&str> = roles.iter().map(|it| it.as_str()).collect();
            format!("no role of this user allows it; these do: {}", roles.join(", "))
        }
        (_, None, elsewhere) => {
            let rights: Vec<String> = elsewhere.iter().map(describe).collect();
            format!("only allowed in these scopes: {}", rights.join(", "))
        }
    };
    let may = if allowed { "may" } else { "may not" };
    Verdict {
        allowed,
        reason: format!("{name} {may} {} {}: {reason}", action.meaning(), place(scope)),
        by: RoleAssignment::of(&by),
        elsewhere: RoleAssignment::of(&elsewhere),
        roles,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn the_table_says_what_each_role_allows() {
        let Json(table) = list().await;
        assert_eq!(table.actions.len(), Action::ALL.len());
        assert_eq!(table.roles.len(), Role::all().count());
        for role in table.roles {
            for action in Action::ALL {
                assert_eq!(role.actions.contains(action), role.name.allows(*action));
            }
        }
    }

    #[test]
    fn a_verdict_names_the_right_or_what_is_missing() {
        let right = |role, scope: &str| Right {
            role,
            scope: Scope::parse(scope).expect("a scope"),
        };
        let owner = right(Role::ApiOwner, "api:orders");
        let reader = right(Role::Read, "everything");
        for (rights, action, scope, allowed, by, elsewhere, reason) in [
            (
                vec![],
                Action::AuditRead,
                "everything",
                false,
                vec![],
                vec![],
                "ada may not read the audit log everywhere: no role of this user allows it; these do: admin, auditor",
            ),
            (
                vec![],
                Action::Own,
                "everything",
                true,
                vec![],
                vec![],
                "ada may see their own rights and sessions everywhere: every user may",
            ),
            (
                vec![&owner, &reader],
                Action::ApisWrite,
                "api:orders",
                true,
                vec![&owner],
                vec![],
                "ada may define APIs, change drafts, plans and pages in api:orders: api-owner in api:orders allows it",
            ),
            (
                vec![&owner],
                Action::ApisWrite,
                "api:pets",
                false,
                vec![],
                vec![&owner],
                "ada may not define APIs, change drafts, plans and pages in api:pets: only allowed in these scopes: \
                 api-owner in api:orders",
            ),
            (
                vec![&owner, &reader],
                Action::ApisRead,
                "everything",
                true,
                vec![&reader],
                vec![&owner],
                "ada may read API definitions, publications and plans everywhere: read everywhere allows it",
            ),
        ] {
            let rights: Vec<Right> = rights.into_iter().cloned().collect();
            let found = verdict("ada", &rights, action, &Scope::parse(scope).expect("a scope"));
            assert_eq!((found.allowed, found.reason.as_str()), (allowed, reason));
            assert_eq!(json!(found.by), json!(by));
            assert_eq!(json!(found.elsewhere), json!(elsewhere));
            assert_eq!(found.roles, Role::that_allow(action).collect::<Vec<_>>());
        }
    }
}
