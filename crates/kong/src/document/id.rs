//! Ids of entities that were written without one: the same document always gives the same ids, and an entity
//! that has a name the very id that Kong gives it.

use super::entity_type::{ENTITY_TYPES, EntityType};
use std::collections::HashMap;
use std::sync::LazyLock;
use uuid::{Builder, Uuid, Variant, Version, uuid};

/// The namespace below which every entity type has its own.
const NAMESPACE: Uuid = uuid!("fd02801f-0957-4a15-a55a-c8d9606f30b5");
/// The namespaces of the entity types by their names.
static NAMESPACES: LazyLock<HashMap<&str, Uuid>> = LazyLock::new(|| {
    let namespace = |entity_type: &EntityType| {
        (
            entity_type.name,
            Uuid::new_v5(&NAMESPACE, entity_type.name.as_bytes()),
        )
    };
    ENTITY_TYPES.iter().map(namespace).collect()
});
/// The name of the workspace in ids that are made from several fields.
const WORKSPACE: &str = "*";

/// The id of the member of `entity_type`, one of [`ENTITY_TYPES`], that is called `key`.
pub fn from_key(entity_type: &str, key: &str) -> Uuid {
    Uuid::new_v5(&NAMESPACES[entity_type], key.as_bytes())
}

/// The id of the member of `entity_type` with these values in the fields that distinguish members.
pub fn from_fields<'v>(entity_type: &str, values: impl Iterator<Item = &'v str>) -> Uuid {
    let mut key = format!("{entity_type}:{WORKSPACE}");
    for value in values {
        key.push(':');
        key.push_str(value);
    }
    from_key(entity_type, &key)
}

/// An id for a member of `entity_type` that nothing lasting distinguishes: made from its place, and in the form of a
/// random one, as it is where Kong makes it up.
pub fn from_place(entity_type: &str, place: &str) -> Uuid {
    let made = from_key(entity_type, place);
    Builder::from_bytes(*made.as_bytes())
        .with_variant(Variant::RFC4122)
        .with_version(Version::Random)
        .into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_that_kong_makes() {
        let upstream = from_key("upstreams", "u.test");
        let route = from_key("routes", "r");
        for (id, text) in [
            (
                from_key("consumers", "nested"),
                "e0738823-015e-54c2-bf4b-a11942b7fc75",
            ),
            (upstream, "05cc4de8-c036-5a51-b680-af84346fbeaa"),
            (
                from_fields(
                    "targets",
                    [upstream.to_string().as_str(), "127.0.0.1:80"].into_iter(),
                ),
                "442d58b4-f14d-53e2-9c15-275fd350a39b",
            ),
            (
                from_fields(
                    "plugins",
                    ["key-auth", route.to_string().as_str(), "", ""].into_iter(),
                ),
                "7fb65597-f0ac-581f-967a-e1413399f0ae",
            ),
        ] {
            assert_eq!(id.to_string(), text);
        }
        assert_eq!(
            from_place("keyauth_credentials", "x").get_version(),
            Some(Version::Random)
        );
    }
}
