//! `acl`: lets calls pass by the groups of the consumer.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::acl::{AclSubject, AuthenticatedGroups, Config, GroupHolders, LabelHeader, Rule};
use weir_plugins::identity::GROUPS_HEADER;

/// The consumers' label that holds their groups.
pub const GROUPS: &str = "groups";

/// The definition of `acl`.
pub const DEFINITION: Definition = Definition {
    name: "acl",
    priority: 950,
    config: Record::of(&[
        Field::new("allow", Kind::Array(&Field::element(Kind::String))),
        Field::new("deny", Kind::Array(&Field::element(Kind::String))),
        Field::new("hide_groups_header", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        Field::new("always_use_authenticated_groups", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
    ]),
    checks: &[
        EntityCheck::ExactlyOneOf(&["config.allow", "config.deny"]),
        EntityCheck::AtLeastOneOf(&["config.allow", "config.deny"]),
    ],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "acl",
    translate,
};

#[derive(Deserialize)]
struct Acl {
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    hide_groups_header: bool,
    always_use_authenticated_groups: bool,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Acl = typed(config)?;
    let rule = |values: Option<Vec<String>>| {
        let values = values.filter(|values| !values.is_empty())?;
        let of = AclSubject::Label(GROUPS.to_owned());
        Some(Rule { of, values })
    };
    Ok(untyped(Config {
        allow: rule(config.allow).into_iter().collect(),
        deny: rule(config.deny).into_iter().collect(),
        anonymous_must_have: true,
        authenticated_groups: Some(AuthenticatedGroups {
            of: match config.always_use_authenticated_groups {
                true => GroupHolders::Everybody,
                false => GroupHolders::WithoutCredential,
            },
            header: (!config.hide_groups_header).then(|| GROUPS_HEADER.to_owned()),
        }),
        label_header: (!config.hide_groups_header).then(|| LabelHeader {
            header: "X-Consumer-Groups".to_owned(),
            label: GROUPS.to_owned(),
            if_empty: true,
        }),
        ..Config::default()
    }))
}
