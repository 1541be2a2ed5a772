//! The scope of a right: everywhere, or one workspace, environment, API or portal.

use super::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The workspace that stands for all.
pub const EVERYWHERE: &str = "*";

/// A part of what Weir manages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All of it.
    Everything,
    /// A workspace: the resources of one team.
    Workspace(String),
    /// An environment with its gateways.
    Environment(String),
    /// An API with its versions and plans.
    Api(String),
    /// A developer portal.
    Portal(String),
}

impl Scope {
    /// A workspace, or everything for `*`.
    pub fn workspace(name: &str) -> Self {
        match name {
            EVERYWHERE => Self::Everything,
            name => Self::Workspace(name.to_owned()),
        }
    }

    /// The scope with this kind (`workspace`, `environment`, `api`, `portal`) and name.
    pub fn of(kind: &str, name: &str) -> Option<Self> {
        Some(match kind {
            "workspace" => Self::workspace(name),
            "environment" => Self::Environment(name.to_owned()),
            "api" => Self::Api(name.to_owned()),
            "portal" => Self::Portal(name.to_owned()),
            _ => return None,
        })
    }

    /// Reads `everything`, or a kind and a name with a colon between them.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if matches!(text, "everything" | EVERYWHERE) {
            return Ok(Self::Everything);
        }
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let found = Self::of(kind, name).filter(|_| !name.is_empty());
        found.ok_or_else(|| {
            format!("'{text}' is not a valid scope: expected everything, workspace:NAME, environment:NAME, api:NAME or portal:NAME")
        })
    }

    /// Whether a right here holds there too: what holds everywhere holds in each part.
    pub fn contains(&self, other: &Self) -> bool {
        *self == Self::Everything || self == other
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => formatter.write_str("everything"),
            Self::Workspace(name) => write!(formatter, "workspace:{name}"),
            Self::Environment(name) => write!(formatter, "environment:{name}"),
            Self::Api(name) => write!(formatter, "api:{name}"),
            Self::Portal(name) => write!(formatter, "portal:{name}"),
        }
    }
}

/// A role in a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "RoleAssignment", try_from = "RoleAssignment")]
pub struct Right {
    /// The role.
    pub role: Role,
    /// Where.
    pub scope: Scope,
}

impl Right {
    /// A role in a workspace; `*` stands for everything.
    pub fn in_workspace(workspace: &str, role: Role) -> Self {
        Self {
            role,
            scope: Scope::workspace(workspace),
        }
    }
}

/// A role, and its scope. At most one of the scopes is given; without one it holds everywhere.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Right")]
pub struct RoleAssignment {
    /// A workspace; `*`: everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// An environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    /// An API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api: Option<String>,
    /// A portal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    portal: Option<String>,
    /// The role.
    role: Role,
}

impl RoleAssignment {
    /// Rights as they are written.
    pub fn of(rights: &[Right]) -> Vec<Self> {
        rights.iter().cloned().map(Into::into).collect()
    }
}

impl From<Right> for RoleAssignment {
    fn from(right: Right) -> Self {
        let mut written = Self {
            workspace: None,
            environment: None,
            api: None,
            portal: None,
            role: right.role,
        };
        let (field, name) = match right.scope {
            Scope::Everything => (&mut written.workspace, EVERYWHERE.to_owned()),
            Scope::Workspace(name) => (&mut written.workspace, name),
            Scope::Environment(name) => (&mut written.environment, name),
            Scope::Api(name) => (&mut written.api, name),
            Scope::Portal(name) => (&mut written.portal, name),
        };
        *field = Some(name);
        written
    }
}

impl TryFrom<RoleAssignment> for Right {
    type Error = String;

    fn try_from(written: RoleAssignment) -> Result<Self, String> {
        let role = written.role;
        let given = [
            ("workspace", written.workspace),
            ("environment", written.environment),
            ("api", written.api),
            ("portal", written.portal),
        ];
        let mut scopes = given
            .into_iter()
            .filter_map(|(kind, name)| Scope::of(kind, &name?));
        let scope = scopes.next().unwrap_or(Scope::Everything);
        match scopes.next() {
            None => Ok(Self { role, scope }),
            Some(_) => Err("a right has one scope: workspace, environment, api or portal".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rights_are_read_and_written_as_before() {
        for (value, scope) in [
            (json!({"role": "read"}), Scope::Everything),
            (json!({"workspace": "*", "role": "read"}), Scope::Everything),
            (
                json!({"workspace": "a", "role": "read"}),
                Scope::Workspace("a".into()),
            ),
            (
                json!({"environment": "prod", "role": "read"}),
                Scope::Environment("prod".into()),
            ),
            (
                json!({"api": "orders", "role": "read"}),
                Scope::Api("orders".into()),
            ),
            (json!({"portal": "p", "role": "read"}), Scope::Portal("p".into())),
        ] {
            let right: Right = serde_json::from_value(value.clone()).expect("a right");
            assert_eq!(right.scope, scope);
            let written = json!(right);
            match value.as_object().expect("a map").len() {
                1 => assert_eq!(written, json!({"workspace": "*", "role": "read"})),
                _ => assert_eq!(written, value),
            }
            assert_eq!(Scope::parse(&scope.to_string()), Ok(scope));
        }
        for wrong in [
            json!({"role": "king"}),
            json!({"workspace": "a"}),
            json!({"role": "read", "x": 1}),
            json!({"role": "read", "api": "a", "portal": "p"}),
        ] {
            assert!(serde_json::from_value::<Right>(wrong.clone()).is_err(), "{wrong}");
        }
        for wrong in ["", "api", "api:", "thing:x"] {
            assert!(Scope::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_holds_everywhere_holds_in_each_part() {
        let (api, other) = (Scope::Api("a".into()), Scope::Api("b".into()));
        for (one, there, expected) in [
            (&Scope::Everything, &api, true),
            (&Scope::Everything, &Scope::Everything, true),
            (&api, &api, true),
            (&api, &other, false),
            (&api, &Scope::Everything, false),
        ] {
            assert_eq!(one.contains(there), expected, "{one} {there}");
        }
    }
}
