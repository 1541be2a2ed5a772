//! The names that analytics forget with a developer who is erased, and those that take their places.

use super::entity_snapshot::PREFIX;
use crate::api::{Api, Problem};
use crate::developers::{key, random_id};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;
use weir_analytics::Renames;
use weir_apis::entities::{Publication, Subscription};
use weir_apis::naming;
use weir_apis::render::consumer_of;
use weir_model::overview::List;

/// The prefix of the ids of consumers of subscriptions.
const CONSUMERS: &str = "sub.";

/// Names that analytics are to forget, each with the one that takes its place. It is kept until all is done.
#[derive(Default, Serialize, Deserialize)]
pub struct RenameTable(BTreeMap<String, String>);

impl RenameTable {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Those of applications. Those of consumers have a dot.
    pub fn applications(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().filter(|(name, _)| !name.contains('.'))
    }

    /// The new names for analytics. A consumer of a subscription is counted under the name of its application. Others
    /// may have that name, too: in that case it is forgotten in the calls of APIs alone, which only subscribers call.
    pub async fn new_names(&self, api: &Arc<Api>) -> Result<Renames, Problem> {
        let working = Arc::clone(api);
        let named = tokio::task::spawn_blocking(move || {
            let rows = working.index.rows(List::Consumers);
            let others = rows.iter().filter(|it| !it.own_id.starts_with(CONSUMERS));
            others.map(|it| it.row.name.clone()).collect::<BTreeSet<String>>()
        });
        let others = named
            .await
            .map_err(|error| Problem::unreadable(error.to_string()))?;
        let pair = |(old, new): (&String, &String)| (old.clone(), new.clone());
        let applications: Vec<(String, String)> = self.applications().map(pair).collect();
        let is_shared = |it: &(String, String)| others.contains(&it.0);
        let (shared, own): (Vec<_>, Vec<_>) = applications.iter().cloned().partition(is_shared);
        let of_subscriptions = self.0.iter().filter(|(name, _)| name.contains('.')).map(pair);
        let publications: Vec<Publication> = api.snapshot().await?.list(&format!("{PREFIX}publications/"))?;
        let services = publications
            .iter()
            .map(|it| format!("{}.", naming::publication(&it.environment, &it.api, &it.version)));
        Ok(Renames {
            consumers: of_subscriptions.chain(own).collect(),
            consumers_of_services: shared,
            services: services.collect(),
            applications,
        })
    }
}

/// Notes which names go, with those that an earlier attempt has noted.
pub async fn note_names(
    api: &Api,
    (portal, id): (&str, &str),
    (applications, subscriptions): (&[String], &[Subscription]),
    now: SystemTime,
) -> Result<RenameTable, Problem> {
    let (store, key) = (&api.developers.store, key(portal, &format!("erasing/{id}"))?);
    let known = store.read::<RenameTable>(&key, now).await?;
    let mut renamed = known.map(|it| it.value).unwrap_or_default();
    let consumers = subscriptions.iter().map(consumer_of);
    for name in applications.iter().cloned().chain(consumers) {
        let place = renamed.0.len();
        renamed
            .0
            .entry(name)
            .or_insert(format!("removed-{}-{place}", &random_id()?[..8]));
    }
    store.put(&key, &renamed, (None, now)).await?;
    Ok(renamed)
}
