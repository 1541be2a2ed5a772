//! Which workspace a path of the Admin API is for. The router of calls and the check of rights both ask
//! here, so that both mean the same.

use super::endpoints;
use super::path::segments;
use crate::document::entity_type::ENTITY_TYPES;
use weir_dialect::{DEFAULT_WORKSPACE, Scope};
use weir_model::secrets;

/// First segments of what holds for all workspaces.
const EVERYWHERE: [&str; 4] = ["config", "workspaces", "cache", "debug"];
/// First segments of paths that reveal nothing about any workspace.
const ANYWHERE: [&str; 6] = [
    "status",
    "schemas",
    "endpoints",
    "timers",
    "clustering",
    "userinfo",
];
/// First segments that the original has with more than this Admin API has.
const ELSEWHERE: [&str; 15] = [
    "admins",
    "applications",
    "audit",
    "auth",
    "developers",
    "entities",
    "event-hooks",
    "files",
    "groups",
    "keyring",
    "license",
    "licenses",
    "oauth2",
    "oauth2_tokens",
    "rbac",
];

/// Whether a path that begins with this segment does not belong to the workspace of this name.
pub fn is_reserved(segment: &str) -> bool {
    let mut entity_types = ENTITY_TYPES.iter();
    entity_types.any(|entity_type| entity_type.path.split('/').next() == Some(segment))
        || endpoints::first_segments().any(|known| known == segment)
        || [&EVERYWHERE[..], &ANYWHERE, &ELSEWHERE]
            .iter()
            .any(|list| list.contains(&segment))
}

/// The scope of a path.
pub fn scope(path: &str) -> Scope {
    let segments = segments(path);
    let mut segments = segments.iter().map(String::as_str);
    let Some(first) = segments.next() else {
        return Scope::Anywhere;
    };
    if EVERYWHERE.contains(&first) {
        return Scope::Everywhere;
    }
    if ANYWHERE.contains(&first) {
        return Scope::Anywhere;
    }
    if is_reserved(first) {
        return Scope::Workspace(DEFAULT_WORKSPACE.to_owned());
    }
    match segments.next() {
        Some(second) if EVERYWHERE.contains(&second) => Scope::Everywhere,
        _ => Scope::Workspace(first.to_owned()),
    }
}

/// The next segment after these is a secret, if it is no id.
const SECRETS_BELOW: [&str; 6] = [
    "key-auth",
    "key-auth-enc",
    "key-auths",
    "key-auths-enc",
    "oauth2_tokens",
    "token",
];

/// A path as it may stand in a record: members can be named by their keys, which are secrets.
pub fn recordable(path: &str) -> String {
    let mut is_below = false;
    let hidden = path.split('/').map(|segment| {
        if segment.is_empty() {
            return segment;
        }
        let decoded = segments(segment).concat();
        let is_secret = is_below && uuid::Uuid::try_parse(&decoded).is_err();
        is_below = SECRETS_BELOW.contains(&decoded.as_str());
        if is_secret { secrets::HIDDEN } else { segment }
    });
    hidden.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_into_workspaces() {
        let workspace = |name: &str| Scope::Workspace(name.to_owned());
        for (path, expected) in [
            ("/", Scope::Anywhere),
            ("/schemas/services", Scope::Anywhere),
            ("/%73tatus", Scope::Anywhere),
            ("/services/a/routes", workspace("default")),
            ("//services", workspace("default")),
            ("/%73ervices", workspace("default")),
            ("/tags/x", workspace("default")),
            ("/proxy-cache", workspace("default")),
            ("/team/services", workspace("team")),
            ("/team/schemas", workspace("team")),
            ("/t%20m%/services", workspace("t m%")),
            ("/a+b/services", workspace("a+b")),
            ("/config", Scope::Everywhere),
            ("/team/config", Scope::Everywhere),
            ("/workspaces/team", Scope::Everywhere),
        ] {
            assert_eq!(scope(path), expected, "{path}");
        }
    }

    #[test]
    fn keys_in_paths_are_not_recorded() {
        for (path, expected) in [
            ("/consumers/c/key-auth/k1", "/consumers/c/key-auth/***"),
            ("/key-auths-enc/k1", "/key-auths-enc/***"),
            ("/team/key-auths/k1/consumer", "/team/key-auths/***/consumer"),
            ("/%6bey-auths//k1", "/%6bey-auths//***"),
            ("/consumers/c/key-auth", "/consumers/c/key-auth"),
            (
                "/key-auths/5f3e1c80-0000-4000-8000-000000000001",
                "/key-auths/5f3e1c80-0000-4000-8000-000000000001",
            ),
            ("/routes/r", "/routes/r"),
            (
                "/vault-auth/v/credentials/token/a",
                "/vault-auth/v/credentials/token/***",
            ),
            (
                "/vault-auth/v/credentials/alice",
                "/vault-auth/v/credentials/alice",
            ),
        ] {
            assert_eq!(recordable(path), expected);
        }
    }

    #[test]
    fn no_path_of_the_api_begins_with_the_name_of_a_workspace() {
        for path in endpoints::endpoints() {
            let first = path.split('/').nth(1).unwrap_or_default();
            assert!(first.is_empty() || is_reserved(first), "{path}");
        }
        for name in ["default", "team", "Status", "service"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
