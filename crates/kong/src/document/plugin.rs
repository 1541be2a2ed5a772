//! Plugin instances: the fields that all plugins have. What `config` holds is the plugin's own
//! ([`crate::plugins`]).

use super::common::{CREATED_AT, HTTP_PROTOCOLS, ID, NAME, TAGS, UPDATED_AT};
use crate::plugins::{PluginSupport, known};
use crate::schema::{Check, Default, Field, Fields, Kind, Location, Problems, RawFields, Record, text};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// The fields of a plugin instance.
pub static RECORD: Record = Record::of(&[
    ID,
    Field {
        unique: false,
        required: true,
        ..NAME
    },
    Field::new("instance_name", Kind::String)
        .check(&[Check::Text(text::name)])
        .unique(),
    CREATED_AT,
    UPDATED_AT,
    Field::new("route", Kind::Foreign("routes")),
    Field::new("service", Kind::Foreign("services")),
    Field::new("consumer", Kind::Foreign("consumers")),
    Field::new("config", Kind::OpenRecord),
    Field::new("protocols", Kind::Set(&Field::element(Kind::String)))
        .required()
        .or(Default::Texts(HTTP_PROTOCOLS)),
    Field::new("enabled", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    TAGS,
]);

/// Plugins may work on other protocols than most, unless an instance says which.
pub fn fit_defaults(instance: &mut RawFields<'_>) {
    let Some(PluginSupport::Yes(definition)) = instance.get("name").and_then(Value::as_str).map(known) else {
        return;
    };
    let standard = definition.standard_protocols();
    if standard != HTTP_PROTOCOLS && instance.get("protocols").is_none_or(Value::is_null) {
        instance.insert("protocols", standard.iter().copied().collect());
    }
}

/// Reads the part of an instance that is the plugin's own. `config` is what the document gives for it. `is_nested`:
/// the instance stands inside of another entity, in which it may belong to a consumer whatever the plugin.
pub fn read_config(
    instance: &mut Fields,
    config: Option<&Value>,
    is_nested: bool,
    place: &Location<'_>,
    problems: &mut Problems,
) {
    let Some(name) = instance.get("name").and_then(Value::as_str) else {
        return;
    };
    let definition = match known(name) {
        PluginSupport::Yes(definition) => definition,
        PluginSupport::Unavailable(reason) => {
            let message = format!("plugin \"{name}\" is not available in this version of Weir: {reason}");
            problems.error(&place.field("name"), message);
            return;
        }
        PluginSupport::No => {
            let message =
                format!("plugin '{name}' not enabled; add it to the 'plugins' configuration property");
            problems.error(&place.field("name"), message);
            return;
        }
    };
    for scope in definition.closed_scopes().iter().filter(|_| !is_nested) {
        if instance.get(scope).is_some_and(|it| !it.is_null()) {
            problems.error(&place.field(scope), "value must be null");
        }
    }
    check_protocols(instance, definition.protocols(), place, problems);
    let before = problems.0.len();
    let mut given = config
        .and_then(Value::as_object)
        .map(RawFields::of)
        .unwrap_or_default();
    definition.expand(&mut given);
    let config = definition
        .config
        .read(given.iter(), &place.field("config"), problems);
    let failed: &[&str] = if problems.0.len() == before {
        &[]
    } else {
        &["config"]
    };
    instance.insert("config", config.into());
    for check in definition.checks {
        check.verify(instance, failed, place, problems);
    }
}

/// Without a database the original knows no counts that its nodes share by it.
pub fn refuse_cluster(instance: &Fields, place: &Location<'_>, problems: &mut Problems) {
    let name = instance.get("name").and_then(Value::as_str);
    if !matches!(name, Some("rate-limiting" | "response-ratelimiting")) {
        return;
    }
    let policy = instance.get("config").and_then(|config| config.get("policy"));
    if policy.is_some_and(|policy| policy == "cluster")
        && let Err(message) = Check::OneOf(&["local", "redis"]).verify(&"cluster".into())
    {
        problems.error(&place.field("config").field("policy"), message);
    }
}

fn check_protocols(
    instance: &Fields,
    known: &'static [&'static str],
    place: &Location<'_>,
    problems: &mut Problems,
) {
    let protocols = instance.get("protocols").and_then(Value::as_array);
    let field = place.field("protocols");
    for (index, protocol) in protocols.into_iter().flatten().enumerate() {
        if let Err(message) = Check::OneOf(known).verify(protocol) {
            problems.error(&field.index(index), message);
        }
    }
}

/// A plugin instance with its defaults. Not `Debug`: its configuration may hold secrets.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Plugin {
    pub id: Uuid,
    pub name: String,
    pub route: Option<Uuid>,
    pub service: Option<Uuid>,
    pub consumer: Option<Uuid>,
    #[serde(skip)]
    pub config: Value,
    pub enabled: bool,
}

impl Plugin {
    /// An instance of its fields.
    ///
    /// # Errors
    /// A value that there is no room for.
    pub fn of(mut fields: Fields) -> Result<Self, serde_json::Error> {
        // Moved: deserialised, every value in it would be made once more.
        let config = fields.remove("config").unwrap_or_default();
        Ok(Self {
            config,
            ..fields.typed()?
        })
    }
}
