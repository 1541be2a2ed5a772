//! Declarative documents (kong.yml): what they may hold, and their entities with all defaults, references
//! resolved.
//!
//! Reading has three steps: every entity is read by the description of its family, wherever it is nested
//! ([`read`]); references are resolved and doubles found ([`link`]); and the families that something is made of
//! become typed values ([`Document`]).

mod common;
mod consumer;
mod family;
mod id;
mod link;
mod plugin;
mod read;
mod route;
mod secret;
mod service;
mod upstream;

pub use consumer::{Consumer, JwtSecret, KeyauthCredential};
pub use plugin::Plugin;
pub use route::Route;
pub use service::Service;
pub use upstream::{Target, Upstream};

use crate::schema::{Fields, ItemPlace, Problems};
use read::RawEntity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use weir_model::{Diagnostic, Severity};

/// An entity and where it was written.
pub struct Entity<T> {
    /// Its place in the document.
    pub place: ItemPlace,
    /// The entity with its defaults.
    pub value: T,
}

/// The entities of a document that something is made of, in the document's order.
pub struct Document {
    /// Services, disabled ones included.
    pub services: Vec<Entity<Service>>,
    /// Routes.
    pub routes: Vec<Entity<Route>>,
    /// Consumers.
    pub consumers: Vec<Entity<Consumer>>,
    /// Plugin instances, disabled ones included.
    pub plugins: Vec<Entity<Plugin>>,
    /// Upstreams.
    pub upstreams: Vec<Entity<Upstream>>,
    /// Targets.
    pub targets: Vec<Entity<Target>>,
    /// API keys.
    pub keyauth_credentials: Vec<Entity<KeyauthCredential>>,
    /// JWT secrets.
    pub jwt_secrets: Vec<Entity<JwtSecret>>,
}

impl Document {
    /// Reads a whole document.
    ///
    /// # Errors
    /// All that is wrong with it, with the places.
    pub fn read(document: &Value) -> Result<(Self, Vec<Diagnostic>), Vec<Diagnostic>> {
        let mut problems = Problems::default();
        let mut entities = read::document(document, &mut problems);
        link::find_doubles(&entities, &mut problems);
        link::resolve(&mut entities, &mut problems);
        let document = Self::typed(entities, &mut problems);
        if problems.0.iter().any(|found| found.severity == Severity::Error) {
            return Err(problems.0);
        }
        Ok((document, problems.0))
    }

    fn typed(entities: Vec<RawEntity>, problems: &mut Problems) -> Self {
        let mut families: std::collections::HashMap<&str, Vec<RawEntity>> = std::collections::HashMap::new();
        for entity in entities {
            families.entry(entity.family.name).or_default().push(entity);
        }
        for (name, members) in &families {
            if let Some(first) = members.first()
                && !first.family.is_served
            {
                let message = format!("{name} are checked, but not used by this version of Weir");
                problems.warning(first.place.to_path(), message);
            }
        }
        let mut take = |family: &str| families.remove(family).unwrap_or_default();
        Self {
            services: typed(take("services"), Fields::typed, problems),
            routes: typed(take("routes"), Fields::typed, problems),
            consumers: typed(take("consumers"), Fields::typed, problems),
            plugins: typed(take("plugins"), Plugin::of, problems),
            upstreams: typed(take("upstreams"), Fields::typed, problems),
            targets: typed(take("targets"), Fields::typed, problems),
            keyauth_credentials: typed(take("keyauth_credentials"), Fields::typed, problems),
            jwt_secrets: typed(take("jwt_secrets"), Fields::typed, problems),
        }
    }
}

fn typed<T>(
    entities: Vec<RawEntity>,
    make: fn(Fields) -> Result<T, serde_json::Error>,
    problems: &mut Problems,
) -> Vec<Entity<T>> {
    let mut list = Vec::with_capacity(entities.len());
    for entity in entities {
        if entity.is_broken {
            continue;
        }
        match make(entity.fields) {
            Ok(value) => list.push(Entity {
                place: entity.place,
                value,
            }),
            Err(error) => problems.0.push(Diagnostic::error(
                entity.place.to_path(),
                format!("out of range: {error}"),
            )),
        }
    }
    list
}

/// `null` is the empty value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + std::default::Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
