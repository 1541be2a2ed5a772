//! The resources that are opened before anything runs: keys, stores, listeners, and the places on this disk.

use crate::args::RoleArg;
use crate::run::admin::Listeners;
use crate::run::logs::folder_of_store;
use crate::run::plan::{Management, Origin};
use crate::run::portal;
use anyhow::Context;
use std::path::Path;
use weir_control::drain_state::{DrainState, FILE_NAME as DRAIN_STATE_FILE};
use weir_control::follow::{
    self, ControlSource, LAST_KNOWN_GOOD_FILE, LastKnownGoodFile, OpenStore, Source, StoreSource,
};
use weir_control::operational::OperationalStore;
use weir_dialect::DialectSet;
use weir_store::seal::{self, SealingKeys};
use weir_store::sqlite::FILE_NAME;

/// The resources that are opened before anything runs, so that one that cannot be opened ends the start.
pub struct ManagedResources {
    pub keys: Option<SealingKeys>,
    pub listeners: Listeners,
    pub portal: portal::Listeners,
    pub store: OpenStore,
    pub operational: OperationalStore,
    /// The store in which plugins share records; `None`: none.
    pub shared: Option<OperationalStore>,
    pub last_known_good: Option<LastKnownGoodFile>,
}

impl ManagedResources {
    pub async fn of(management: &Management) -> anyhow::Result<Self> {
        demand_key(management).await?;
        let keys = management.store_key.as_deref().map(SealingKeys::read_or_create);
        let keys = keys.transpose().context("--store-key")?;
        let store = open_local(&management.origin, keys.as_ref()).await?;
        let part = open_operational(management, keys.as_ref()).await?;
        Ok(Self {
            listeners: Listeners::bind(management)?,
            portal: portal::Listeners::bind(management)?,
            store,
            // Mails and sessions are for those that manage.
            operational: match (&part, management.role) {
                (Some(part), role) if role != RoleArg::Gateway => part.clone(),
                _ => OperationalStore::in_memory(),
            },
            shared: part,
            last_known_good: last_known_good_file(management, keys.as_ref())?,
            keys,
        })
    }
}

/// Refuses to start without the key of a store on this disk. A new key would open nothing of what is there, and the gateway
/// would serve what is left.
async fn demand_key(management: &Management) -> anyhow::Result<()> {
    let Origin::Store(location) = &management.origin else {
        return Ok(());
    };
    let has_key = management.store_key.as_deref().is_some_and(Path::exists);
    let is_there = folder_of_store(location).is_some_and(|it| it.join(FILE_NAME).is_file());
    if has_key || !is_there {
        return Ok(());
    }
    let store = follow::open_store(location, None).await;
    let read = store.context("the store cannot be opened")?.read("").await;
    let (documents, _) = read.context("the store cannot be read")?;
    let sealed = documents.iter().filter(|it| seal::is_sealed(&it.value)).count();
    match (sealed, &management.store_key) {
        (0, _) => Ok(()),
        (sealed, Some(path)) => anyhow::bail!(
            "--store-key: the file {} is missing, and {sealed} documents of the store are encrypted with its key: restore the file, or a backup (docs/backup.md)",
            path.display()
        ),
        (sealed, None) => anyhow::bail!(
            "{sealed} documents of the store are sealed: give the file with their key (--store-key FILE)"
        ),
    }
}

/// The file that keeps what is served. What is on this disk already needs no second place there.
fn last_known_good_file(
    management: &Management,
    keys: Option<&SealingKeys>,
) -> anyhow::Result<Option<LastKnownGoodFile>> {
    let Some(folder) = &management.data else {
        return Ok(None);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let file = LastKnownGoodFile {
        path: folder.join(LAST_KNOWN_GOOD_FILE),
        keys: keys.cloned(),
    };
    Ok((!is_local(&management.origin)).then_some(file))
}

/// The sources from which this gateway reads whether it is taken out, before it reports.
pub fn drain_state(store: &OpenStore, last_known_good: Option<&LastKnownGoodFile>) -> DrainState {
    DrainState {
        store: store.clone(),
        file: last_known_good.map(|it| it.path.with_file_name(DRAIN_STATE_FILE)),
    }
}

pub fn is_local(origin: &Origin) -> bool {
    matches!(origin, Origin::Store(location) if !location.contains("://"))
}

/// A store on this machine can be opened at once or not at all; others may be away for a while.
async fn open_local(origin: &Origin, keys: Option<&SealingKeys>) -> anyhow::Result<OpenStore> {
    match origin {
        Origin::Store(location) if is_local(origin) => {
            let store = follow::open_store(location, keys)
                .await
                .context("the store cannot be opened")?;
            Ok(OpenStore::new(store))
        }
        _ => Ok(OpenStore::default()),
    }
}

async fn open_operational(
    management: &Management,
    keys: Option<&SealingKeys>,
) -> anyhow::Result<Option<OperationalStore>> {
    match &management.origin {
        Origin::Store(location) => {
            let opened = OperationalStore::open(location, keys).await;
            opened.map(Some).context("the operational store cannot be opened")
        }
        Origin::Control { .. } => Ok(None),
    }
}

/// The source of documents.
pub fn source(
    origin: &Origin,
    keys: Option<SealingKeys>,
    store: &OpenStore,
    dialects: &DialectSet,
) -> Box<dyn Source> {
    match origin {
        Origin::Store(location) => Box::new(StoreSource::new(location.clone(), keys, store.clone())),
        Origin::Control { url, token } => Box::new(ControlSource::new(url, token.clone(), dialects.clone())),
    }
}
