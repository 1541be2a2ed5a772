//! The configuration of a store, or of a Weir that runs, as its gateways would serve it.

use crate::args::{ConfigSourceArgs, RouterArgs};
use crate::dialects;
use crate::load::{Finding, Loaded};
use anyhow::Context;
use serde_json::Value;
use std::sync::Arc;
use weir_control::api::ENVIRONMENT_KEYS;
use weir_control::follow::{
    ControlSource, DialectModels, OpenStore, ReducedModel, SkippedResource, Source, SourceEvent, StoreSource,
    compile_reduced, is_served, open_store,
};
use weir_control::http::{ClientRequest, StatusCode};
use weir_control::secrets::{Cache, Policy, Secrets};
use weir_dialect::{DEFAULT_ENVIRONMENT, DialectSet, SkippedDocument};
use weir_model::Severity;
use weir_snapshot::PersistentState;
use weir_store::seal::SealingKeys;
use weir_store::{Key, Store};

/// The source of a configuration.
pub enum ConfigSource<'a> {
    /// A store, with the file of its keys.
    Store(String, &'a ConfigSourceArgs),
    /// A Weir that runs.
    Control(&'a str, &'a ConfigSourceArgs),
}

type Documents = Vec<(Key, Arc<[u8]>)>;

impl<'a> ConfigSource<'a> {
    /// Reads the flags; `None`: they name nothing.
    pub fn of(args: &'a ConfigSourceArgs) -> Option<Self> {
        match (&args.data, &args.store, &args.control) {
            (_, _, Some(url)) => Some(Self::Control(url, args)),
            (_, Some(location), _) => Some(Self::Store(location.clone(), args)),
            (Some(folder), ..) => Some(Self::Store(format!("sqlite:{}", folder.display()), args)),
            (None, None, None) => None,
        }
    }

    /// Reads the documents and compiles what can be served.
    pub fn load(&self, routers: RouterArgs, environments: Vec<String>) -> anyhow::Result<Loaded> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let set = match environments.is_empty() {
            true => dialects::of_files(routers),
            false => dialects::of_files(routers).in_environments(environments),
        };
        let documents = runtime.block_on(self.documents(&set))?;
        let mut dialects = DialectModels::new(&set);
        let mut secrets = Secrets::new(&set, Cache::default());
        for (key, value) in documents.into_iter().filter(|(key, _)| is_served(&set, key)) {
            dialects.apply(key.as_str(), Some(&value));
            secrets.apply(key.as_str(), Some(&value));
        }
        let (model, mut skipped) = dialects.model(|dialect, model| {
            let unresolved = secrets.resolve_by(dialect, Policy::Look, model);
            unresolved.into_iter().map(|it| it.broken).collect()
        });
        let ReducedModel {
            model,
            snapshot,
            skipped: more,
            ..
        } = compile_reduced(&model, &weir_plugins::registry(), &PersistentState::default()).map_err(
            |found| {
                let first = found.first().map(|it| format!("{}: {}", it.path, it.message));
                anyhow::anyhow!("the configuration is refused: {}", first.unwrap_or_default())
            },
        )?;
        // The reduced model borrows the documents' models, and their warnings are read next.
        let model = model.into_owned();
        skipped.extend(
            more.into_iter()
                .map(|SkippedResource { name, reason }| SkippedDocument {
                    document: name,
                    reason,
                }),
        );
        skipped.extend(dialects.warnings());
        let finding = |it: SkippedDocument| Finding {
            severity: Severity::Dropped,
            text: format!("not served as written: {}: {}", it.document, it.reason),
        };
        Ok(Loaded::of_store(
            set,
            model,
            snapshot,
            skipped.into_iter().map(finding).collect(),
        ))
    }

    /// The names of the environments that there are; `None`: the caller may not see them, or there is no answer.
    pub fn environments(&self) -> anyhow::Result<Option<Vec<String>>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self {
                Self::Control(url, args) => {
                    let url = format!("{}/api/v1/environments", url.trim_end_matches('/'));
                    let call = ClientRequest::get(url).token(args.token.as_deref());
                    // A gateway's token is for the configuration alone.
                    let Ok((StatusCode::OK, body)) = call.make().await else {
                        return Ok(None);
                    };
                    let answer: Value = serde_json::from_slice(&body)?;
                    let items = answer["items"].as_array().into_iter().flatten();
                    let names = items.filter_map(|it| it["name"].as_str().map(str::to_owned));
                    Ok(Some(names.collect()))
                }
                Self::Store(location, args) => {
                    let (store, _) = opened(location, args).await?;
                    let (documents, _) = store.read(ENVIRONMENT_KEYS).await?;
                    let keys = documents.iter().map(|it| it.key.as_str());
                    let names = keys.filter_map(|it| it.strip_prefix(ENVIRONMENT_KEYS).map(str::to_owned));
                    Ok(Some(names.collect()))
                }
            }
        })
    }

    /// Refuses environments that there are not.
    pub fn check(&self, environments: &[String]) -> anyhow::Result<()> {
        let wanted: Vec<&String> = environments
            .iter()
            .filter(|it| *it != DEFAULT_ENVIRONMENT)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let Some(known) = self.environments()? else {
            return Ok(());
        };
        match wanted.into_iter().find(|it| !known.contains(it)) {
            None => Ok(()),
            Some(name) => anyhow::bail!(
                "the environment '{name}' does not exist: there {}",
                match known.is_empty() {
                    true => "is none".to_owned(),
                    false => format!("are {}", known.join(", ")),
                }
            ),
        }
    }

    async fn documents(&self, dialects: &DialectSet) -> anyhow::Result<Documents> {
        let mut source: Box<dyn Source> = match self {
            Self::Control(url, args) => {
                Box::new(ControlSource::new(url, args.token.clone(), dialects.clone()))
            }
            Self::Store(location, args) => {
                let (store, keys) = opened(location, args).await?;
                Box::new(StoreSource::new(location.clone(), keys, OpenStore::new(store)))
            }
        };
        match source.next().await {
            SourceEvent::Whole { documents, .. } => Ok(documents),
            SourceEvent::Unreachable(reason) => anyhow::bail!("the configuration cannot be read: {reason}"),
            SourceEvent::Changed { .. } => anyhow::bail!("the configuration cannot be read"),
        }
    }
}

async fn opened(
    location: &str,
    args: &ConfigSourceArgs,
) -> anyhow::Result<(Arc<dyn Store>, Option<SealingKeys>)> {
    check_is_there(location)?;
    let keys = args
        .store_key
        .as_deref()
        .map(SealingKeys::read_or_create)
        .transpose();
    let keys = keys.context("--store-key")?;
    let store = open_store(location, keys.as_ref()).await?;
    Ok((store, keys))
}

/// A store that is only looked at is not made.
fn check_is_there(location: &str) -> anyhow::Result<()> {
    let place = location.strip_prefix("sqlite:").unwrap_or(location);
    let folder = place.split('?').next().unwrap_or_default();
    let is_here = !place.contains("://") && place != "memory:";
    anyhow::ensure!(
        !is_here
            || std::path::Path::new(folder)
                .join(weir_store::sqlite::FILE_NAME)
                .is_file(),
        "there is no store in {folder}"
    );
    Ok(())
}
