//! Which workspace a call to Kong's Admin API is for.

/// The workspace of calls that name none.
pub const DEFAULT: &str = "default";

/// What a call is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// What is in one workspace.
    Workspace(String),
    /// What holds for all workspaces.
    Everywhere,
    /// What tells nothing of any workspace, such as schemas: a right in any one will do.
    Anywhere,
}

/// What of the Admin API is no workspace's, but first in a path all the same.
const COLLECTIONS: [&str; 25] = [
    "acls",
    "basic-auths",
    "ca_certificates",
    "certificates",
    "consumer_groups",
    "consumers",
    "filter-chains",
    "hmac-auths",
    "jwts",
    "key-auths",
    "key-sets",
    "keys",
    "oauth2",
    "oauth2_tokens",
    "plugins",
    "routes",
    "services",
    "snis",
    "tags",
    "targets",
    "upstreams",
    "vaults",
    "vault-entities",
    "clustering",
    "debug",
];
const EVERYWHERE: [&str; 3] = ["config", "workspaces", "cache"];
const ANYWHERE: [&str; 5] = ["status", "schemas", "endpoints", "timers", "userinfo"];

/// The workspace is the first segment of the path, unless that is something else.
pub fn of_kong(path: &str) -> Place {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty()).map(decoded);
    let Some(first) = segments.next() else {
        return Place::Anywhere;
    };
    let first = first.as_str();
    if ANYWHERE.contains(&first) {
        Place::Anywhere
    } else if EVERYWHERE.contains(&first) {
        Place::Everywhere
    } else if COLLECTIONS.contains(&first) {
        Place::Workspace(DEFAULT.to_owned())
    } else {
        match segments.next() {
            Some(second) if EVERYWHERE.contains(&second.as_str()) => Place::Everywhere,
            _ => Place::Workspace(first.to_owned()),
        }
    }
}

/// A segment without its percent-encoding.
fn decoded(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = (*first == b'%').then(|| more.get(..2)).flatten();
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_into_workspaces() {
        for (path, place) in [
            ("/", Place::Anywhere),
            ("/schemas/services", Place::Anywhere),
            ("/services/a/routes", Place::Workspace("default".into())),
            ("//services", Place::Workspace("default".into())),
            ("/%73ervices", Place::Workspace("default".into())),
            ("/team/services", Place::Workspace("team".into())),
            ("/t%20m%/services", Place::Workspace("t m%".into())),
            ("/config", Place::Everywhere),
            ("/team/config", Place::Everywhere),
            ("/workspaces/team", Place::Everywhere),
        ] {
            assert_eq!(of_kong(path), place, "{path}");
        }
    }
}
