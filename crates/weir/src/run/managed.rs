//! Serving what a store or a control plane holds.

mod opening;
mod reporting;
mod resources;
mod serving;
mod startup_notice;

use super::admin::{self, Shared};
use super::declared::Declareds;
use super::files::{WatchedFiles, log_refused};
use super::health::Health;
use super::plan::{Management, Origin};
use super::proxy::Starter;
use super::quotas::counted_in;
use super::{Control, ServeEnd};
use crate::args::RoleArg;
use opening::open_admin_apis;
use reporting::{drain, limit_target, report_target, reporter, spawn_limit_sync};
use resources::{ManagedResources, drain_state, source};
use serving::Serving;
use startup_notice::report_wait;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot;
use weir_control::acme::{AcmeConfigs, Issuer};
use weir_control::api::{FileTexts, Gateways};
use weir_control::drain_state::DrainState;
use weir_control::follow::{self, Engine, EngineEvent, FileContent, Inputs, OpenStore, StateHandle};
use weir_control::operational::OperationalStore;
use weir_control::outbox::Outbox;
use weir_control::report::{ReportTarget, ReporterInfo, is_drained_by_control_plane, report};
use weir_control::secrets::{Cache, Secrets};
use weir_control::shared_records;
use weir_dialect::{DialectName, DialectSet};
use weir_model::Model;
use weir_plugin::{Registry, SharedRecords};
use weir_plugins::proxy_cache::{Caches, Purge};
use weir_snapshot::PersistentState;

/// How long the store may take at the end.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The files that are served in addition to the store.
pub struct Files {
    pub watched: WatchedFiles,
    pub model: Model,
    /// The vaults that they describe, each under a key.
    pub vaults: Vec<(String, Vec<u8>)>,
    /// The notes about them.
    pub notes: Vec<String>,
    /// The dialects of the files.
    pub in_files: Vec<DialectName>,
    /// The configurations that Admin APIs share with them.
    pub declared: Declareds,
    /// Their texts that are served, for lists.
    pub texts: FileTexts,
}

/// Serves until shutdown.
pub async fn serve(
    control: &mut Control,
    starter: &Starter<'_>,
    management: &Management,
    (dialects, files): (DialectSet, Option<Files>),
) -> anyhow::Result<ServeEnd> {
    let environments = starter.args.management.environment.clone();
    let dialects = with_files(dialects, management, files.as_ref()).in_environments(environments);
    let opened = ManagedResources::of(management).await?;
    let mut addresses = opened.listeners.addresses(&dialects)?;
    addresses.extend(opened.portal.addresses()?);
    // Before anything of the store is followed: until they are open, the process is not ready.
    if !opened.listeners.is_empty() || !opened.portal.is_empty() {
        control.status.await_admin();
    }
    let store = opened.store;
    let followed = followed_state(control, management);
    let is_gateway = management.role != RoleArg::Control;
    let serving = Arc::new(Serving::new(&control.status));
    let (wanted, gateways, caches) = (AcmeConfigs::default(), Gateways::default(), Caches::default());
    if let Origin::Store(_) = &management.origin {
        issue(control, &store, &wanted, &followed, &gateways);
    }
    let cache = Cache::new(tokio::runtime::Handle::current());
    let taking = is_gateway.then(|| Arc::clone(&serving));
    let secrets = Secrets::new(&dialects, cache.clone());
    let persistent = super::trust::persistent_state(starter.args.upstreams.zone.as_deref());
    let parts = (starter.registry(caches.clone()), persistent, secrets);
    let counts: Vec<_> = parts.0.shared_counts().collect();
    let shared_of_plugins = prepare_plugins(starter, &parts.0, is_gateway, opened.shared.as_ref());
    let engine = engine(taking, parts, followed.clone(), wanted, caches.clone());
    control
        .status
        .metrics()
        .observe_evictions(engine.registry.evictions());
    let drain_state = drain_state(&store, opened.last_known_good.as_ref());
    let inputs = follow::start(engine, dialects.clone(), opened.last_known_good.clone())?;
    tokio::spawn(cache.clone().refresh(inputs.clone()));
    let is_read_only = files.is_some() && management.is_forgotten();
    let (mut watched, mut declared, mut texts) = (None, Declareds::default(), FileTexts::default());
    if let Some(files) = files {
        declared = files.declared;
        texts = files.texts;
        control.status.set_notes(files.notes);
        let content = FileContent::new(files.model, files.vaults);
        inputs.send(EngineEvent::Files(content)).await;
        watched = Some(files.watched);
    }
    let source = source(&management.origin, opened.keys, &store, &dialects);
    tokio::spawn(follow::follow(source, inputs.clone(), opened.last_known_good));
    let environments = starter.args.management.environment.clone();
    let outbox = outbox(starter, &opened.operational)?;
    let shared = Shared {
        counted: counted_in(environments.clone(), starter.counts.lookup()),
        dialects,
        followed: followed.clone(),
        published: Default::default(),
        gateways: gateways.clone(),
        history: starter.args.management.kept_history(),
        audit: starter.args.management.kept_audit(),
        recorded: Default::default(),
        node: admin::node(starter, management),
        admin_listeners: admin::listeners(management),
        health: Arc::new(Health(Arc::clone(&control.status))),
        reach: Arc::new(super::outbox::document_reach(&starter.args.outbox)),
        secret_reach: Arc::new(super::outbox::reach(&starter.args.outbox)),
        secrets: cache,
        caches: is_gateway.then_some(caches),
        shared_of_plugins,
        declared,
        analytics: starter.analytics.kept.clone(),
        files: texts.clone(),
        outbox: outbox.clone(),
        operational: opened.operational,
        is_read_only,
        api: Arc::default(),
    };
    let portal = opened.portal.serve(control, environments)?;
    let listeners = opened.listeners.serve(control)?;
    let opening = tokio::spawn(open_admin_apis((listeners, portal), store.clone(), shared));
    if is_gateway {
        let target = report_target(management, &store, gateways.clone());
        let started = start_workers(control, starter, &serving, (&drain_state, &followed, &target)).await?;
        let Some((reporter, is_drained)) = started else {
            return Ok(ServeEnd::Drained);
        };
        spawn_limit_sync(&reporter, limit_target(management, &gateways, &reporter), counts);
        let drain = drain(drain_state, &reporter, &control.status);
        tokio::spawn(report(reporter, followed.clone(), target, is_drained, drain));
    }
    let is_known = is_gateway && followed.state().is_last_known_good;
    if !is_known && !wait_until_ready(control, opening, &followed).await? {
        return Ok(ServeEnd::Drained);
    }
    control.announce_ready(&addresses)?;
    attend(control, watched, &inputs, &texts).await;
    drain_and_release(control, &outbox).await
}

/// The state of what is followed, which the status tells from now on.
fn followed_state(control: &Control, management: &Management) -> StateHandle {
    let followed = StateHandle::default();
    let (is_kept, source) = (!management.is_forgotten(), management.origin.named());
    tokio::spawn(report_wait(source.clone(), followed.clone()));
    control.status.set_followed(followed.clone(), is_kept, source);
    followed
}

/// Ends, and lets the next process or another control plane do at once what this one did alone.
async fn drain_and_release(control: &mut Control, outbox: &Outbox) -> anyhow::Result<ServeEnd> {
    let end = control.drain().await;
    let released = tokio::time::timeout(RELEASE_TIMEOUT, outbox.release(SystemTime::now())).await;
    if !matches!(released, Ok(Ok(()))) {
        tracing::warn!("scheduled changes are delayed by some seconds: the lease could not be released");
    }
    end
}

/// Waits until the Admin APIs are open and the first state is known: a client that waits for the `ready` line may write
/// at once. Returns `false` if Weir is to stop before that.
async fn wait_until_ready(
    control: &mut Control,
    opening: tokio::task::JoinHandle<anyhow::Result<()>>,
    followed: &StateHandle,
) -> anyhow::Result<bool> {
    tokio::select! {
        opened = opening => opened??,
        () = control.stop.wait_for_signal() => return Ok(false),
    }
    tokio::select! {
        () = followed.first_result() => Ok(true),
        () = control.stop.wait_for_signal() => Ok(false),
    }
}

/// Gives plugins the counts of before, and makes them share their records, if there is a store. Returns these records,
/// for Admin APIs.
fn prepare_plugins(
    starter: &Starter<'_>,
    registry: &Registry,
    is_gateway: bool,
    store: Option<&OperationalStore>,
) -> Vec<(&'static str, Arc<dyn SharedRecords>)> {
    if is_gateway {
        starter.counts.keep(registry);
    }
    if let Some(store) = store {
        shared_records::share(registry, store);
    }
    registry.shared_records().collect()
}

/// Sends mails and webhooks, alerts among them.
fn outbox(starter: &Starter<'_>, store: &OperationalStore) -> anyhow::Result<Outbox> {
    let outbox = super::outbox::open(&starter.args.outbox, store.clone())?;
    if let Some(kept) = &starter.analytics.kept {
        kept.send_by(outbox.clone());
    }
    Ok(outbox)
}

/// Starts the workers once there is something to serve. Returns the reporter, and whether the gateway is taken out;
/// `None` if Weir is to stop before that.
async fn start_workers(
    control: &mut Control,
    starter: &Starter<'_>,
    serving: &Serving,
    (drain_state, followed, target): (&DrainState, &StateHandle, &ReportTarget),
) -> anyhow::Result<Option<(ReporterInfo, bool)>> {
    let snapshot = tokio::select! {
        snapshot = serving.first() => snapshot,
        () = control.stop.wait_for_signal() => return Ok(None),
    };
    let gateway = starter.start(snapshot)?;
    let reporter = reporter(starter, &gateway);
    starter.analytics.start(&reporter.name)?;
    // With a gateway it is ready, unless it is out.
    let is_drained = match is_drained_by_control_plane(&reporter, followed, target).await {
        Some(is_drained) => {
            drain_state.keep(&reporter.name, is_drained);
            is_drained
        }
        None => drain_state.at_start(&reporter.name).await,
    };
    control.status.set_drained(is_drained);
    serving.begin(gateway);
    Ok(Some((reporter, is_drained)))
}

/// Orders the certificates that the engine asks for, and keeps them in the store.
fn issue(
    control: &Control,
    store: &OpenStore,
    wanted: &AcmeConfigs,
    followed: &StateHandle,
    gateways: &Gateways,
) {
    let issuer = Issuer {
        store: store.clone(),
        wanted: wanted.subscribe(),
        followed: followed.clone(),
        gateways: gateways.clone(),
        status: weir_control::acme::AcmeStatus::default(),
    };
    control.status.set_acme(issuer.status.clone());
    tokio::spawn(issuer.run());
}

/// The engine that makes snapshots of documents. In a process that serves no calls, it only finds their faults.
fn engine(
    serving: Option<Arc<Serving>>,
    (registry, persistent, secrets): (Registry, PersistentState, Secrets),
    followed: StateHandle,
    acme: AcmeConfigs,
    caches: Caches,
) -> Engine {
    Engine {
        registry,
        persistent,
        // Half of a core at most if a caller waits for a change to be served, and little if none does.
        duty_factor: if serving.is_some() { 1 } else { 15 },
        secrets,
        followed,
        acme,
        serve: Box::new(move |snapshot| {
            if let Some(serving) = &serving {
                serving.take(snapshot);
            }
        }),
        purge: Box::new(move |document| match serde_json::from_slice::<Purge>(document) {
            Ok(purge) => drop(caches.forget(&purge)),
            Err(error) => tracing::warn!(%error, "cache purge entry cannot be read"),
        }),
    }
}

/// Passes changed files on to the engine until shutdown.
async fn attend(
    control: &mut Control,
    mut watched: Option<WatchedFiles>,
    inputs: &Inputs,
    texts: &FileTexts,
) {
    let status = Arc::clone(&control.status);
    loop {
        // Nothing but the end may interrupt a load: what has changed is not seen a second time.
        let next = async {
            match &mut watched {
                Some(watched) => watched.changed(&mut control.hangup).await,
                None => std::future::pending().await,
            }
        };
        let loaded = tokio::select! {
            loaded = next => loaded,
            () = control.stop.wait_for_signal() => return,
        };
        match loaded {
            Ok(good) => {
                for note in &good.notes {
                    tracing::warn!("{note}");
                }
                texts.set(super::files::for_lists(&good.texts));
                status.set_notes(good.notes);
                let (done, served) = oneshot::channel();
                let content = FileContent {
                    model: Box::new(good.model),
                    vaults: good.vaults,
                    done: Some(done),
                };
                inputs.send(EngineEvent::Files(content)).await;
                // It is over when the other side is dropped.
                let _over = served.await;
                good.after.done();
            }
            Err(report) => {
                log_refused(&report);
                status.refused(report);
            }
        }
    }
}

/// A dialect whose documents stand in a file is not read from the store: global rules of one would miss the other's
/// routes. Its Admin API is one over that file.
fn with_files(dialects: DialectSet, management: &Management, files: Option<&Files>) -> DialectSet {
    let in_files = files.map_or(Vec::new(), |files| files.in_files.clone());
    // Native files and documents stand side by side.
    let apart = in_files.into_iter().filter(|name| {
        let dialect = dialects.get(*name);
        dialect.is_some_and(|it| !it.file_form().may_be_several)
    });
    let apart: Vec<DialectName> = apart.collect();
    let of_originals = management
        .admins
        .iter()
        .filter(|it| it.dialect != DialectName::NATIVE && !it.listeners.is_empty());
    let names: Vec<DialectName> = of_originals.map(|it| it.dialect).collect();
    let unmatched = match names.as_slice() {
        [only] => *only,
        _ => DialectName::NATIVE,
    };
    dialects.with_files_of(apart).answering_as(unmatched)
}
