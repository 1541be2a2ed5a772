//! Serving what a store or a control plane holds.

use super::admin::{self, AdminApis, Listeners, Shared};
use super::declared::Declareds;
use super::files::{WatchedFiles, tell_refused};
use super::health::Health;
use super::plan::{Management, Origin};
use super::portal::{self, OpenPortal};
use super::proxy::{Starter, first_address};
use super::quotas::counted_in;
use super::{Control, ServeEnd};
use crate::args::RoleArg;
use crate::status::Status;
use anyhow::Context;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use weir_control::access::recording;
use weir_control::acme::{AcmeConfigs, Issuer};
use weir_control::api::{FileTexts, Gateways};
use weir_control::follow::{
    self, ControlSource, Engine, EngineEvent, Inputs, LAST_KNOWN_GOOD_FILE, LastKnownGoodFile, OpenStore,
    Source, StateHandle, StoreSource,
};
use weir_control::operational::{self, OperationalStore};
use weir_control::outbox::Outbox;
use weir_control::report::{ReportTarget, ReporterInfo, report};
use weir_control::secrets::{Cache, Secrets};
use weir_control::shared_limits::{LimitTarget, settle_limits};
use weir_control::shared_records;
use weir_control::taken_out::{FILE_NAME as TAKEN_OUT_FILE, TakenOut};
use weir_dialect::{DEFAULT_ENVIRONMENT, DialectName, DialectSet};
use weir_model::Model;
use weir_plugin::{Registry, SharedCounts, SharedRecords};
use weir_plugins::proxy_cache::{Caches, Purge};
use weir_snapshot::{PersistentState, Snapshot};
use weir_store::StoreError;
use weir_store::seal::SealingKeys;

/// How long until a store that cannot be read is tried again; each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Takes snapshots over from the thread that compiles.
struct Serving {
    status: Arc<Status>,
    /// What came before there was a gateway.
    waiting: Mutex<Option<Snapshot>>,
    came: Notify,
}

impl Serving {
    /// Called by the thread that compiles.
    fn take(&self, snapshot: Snapshot) {
        let mut waiting = self.waiting();
        if self.status.gateway().is_some() {
            drop(waiting);
            self.status.publish(snapshot);
            self.status.served(Vec::new());
        } else {
            *waiting = Some(snapshot);
            self.came.notify_one();
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Option<Snapshot>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first snapshot. Workers must not be started by the thread that compiles: they would be as low in priority.
    async fn first(&self) -> Snapshot {
        loop {
            if let Some(snapshot) = self.waiting().take() {
                return snapshot;
            }
            self.came.notified().await;
        }
    }

    /// From now on there is a gateway.
    fn begin(&self, gateway: weir_proxy::Gateway) {
        let newer = {
            let mut waiting = self.waiting();
            self.status.set_gateway(gateway);
            waiting.take()
        };
        if let Some(snapshot) = newer {
            self.status.publish(snapshot);
        }
        self.status.served(Vec::new());
    }
}

/// The files that are served beside the store.
pub struct Files {
    pub watched: WatchedFiles,
    pub model: Model,
    /// The dialects of the files.
    pub in_files: Vec<DialectName>,
    /// What Admin APIs share with them.
    pub declared: Declareds,
    /// What is served of them, for lists.
    pub texts: FileTexts,
}

/// What is opened before anything runs, so that what cannot be opened ends the start.
struct ManagedResources {
    keys: Option<SealingKeys>,
    listeners: Listeners,
    portal: portal::Listeners,
    store: OpenStore,
    operational: OperationalStore,
    /// Where plugins share what they keep; `None`: nowhere.
    shared: Option<OperationalStore>,
    last_known_good: Option<LastKnownGoodFile>,
}

impl ManagedResources {
    async fn of(management: &Management) -> anyhow::Result<Self> {
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

/// Serves until it is told to stop.
pub async fn serve(
    control: &mut Control,
    starter: &Starter<'_>,
    management: &Management,
    (dialects, files): (DialectSet, Option<Files>),
) -> anyhow::Result<ServeEnd> {
    let environments = starter.args.management.environment.clone();
    let dialects = with_files(dialects, management, files.as_ref()).in_environments(environments);
    let opened = ManagedResources::of(management).await?;
    let mut addresses = opened.listeners.addresses()?;
    addresses.extend(opened.portal.addresses()?);
    let store = opened.store;
    let followed = StateHandle::default();
    let is_kept = !management.is_forgotten();
    control.status.set_followed(followed.clone(), is_kept);
    let is_gateway = management.role != RoleArg::Control;
    let serving = Arc::new(Serving {
        status: Arc::clone(&control.status),
        waiting: Mutex::default(),
        came: Notify::new(),
    });
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
    let taken_out = taken_out(&store, opened.last_known_good.as_ref());
    let inputs = follow::start(engine, dialects.clone(), opened.last_known_good.clone())?;
    tokio::spawn(cache.clone().refresh(inputs.clone()));
    let is_read_only = files.is_some() && management.is_forgotten();
    let (mut watched, mut declared, mut texts) = (None, Declareds::default(), FileTexts::default());
    if let Some(files) = files {
        declared = files.declared;
        texts = files.texts;
        inputs.tell(EngineEvent::Files(Box::new(files.model))).await;
        watched = Some(files.watched);
    }
    let source = source(&management.origin, opened.keys, &store, &dialects);
    tokio::spawn(follow::follow(source, inputs.clone(), opened.last_known_good));
    let environments = starter.args.management.environment.clone();
    let shared = Shared {
        counted: counted_in(environments.clone(), starter.counts.asked()),
        dialects,
        followed: followed.clone(),
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
        outbox: outbox(starter, &opened.operational)?,
        operational: opened.operational,
        is_read_only,
        api: Arc::default(),
    };
    let portal = opened.portal.serve(control, environments)?;
    let listeners = opened.listeners.serve(control)?;
    if !listeners.is_empty() || portal.is_some() {
        control.status.await_admin();
    }
    let opening = tokio::spawn(open_admin_apis((listeners, portal), store.clone(), shared));
    if is_gateway {
        let Some((reporter, is_out)) = start_workers(control, starter, (&serving, &taken_out)).await? else {
            return Ok(ServeEnd::Drained);
        };
        settle(&reporter, limit_target(management, &gateways, &reporter), counts);
        let target = report_target(management, &store, gateways);
        let drain = drain(taken_out, &reporter, &control.status);
        tokio::spawn(report(reporter, followed.clone(), target, is_out, drain));
    }
    let is_known = is_gateway && followed.state().is_last_known_good;
    if !is_known && !settled(control, opening, &followed).await? {
        return Ok(ServeEnd::Drained);
    }
    control.tell_ready(&addresses)?;
    attend(control, watched, &inputs, &texts).await;
    control.drain().await
}

/// Takes this gateway out, or back.
fn drain(
    taken_out: TakenOut,
    reporter: &ReporterInfo,
    status: &Arc<Status>,
) -> impl Fn(bool) + Send + Sync + use<> {
    let (name, status) = (reporter.name.clone(), Arc::clone(status));
    move |is_out| {
        // Who sees that it is out may end it at once.
        taken_out.keep(&name, is_out);
        status.set_out(is_out);
    }
}

/// Waits until the Admin APIs are open and the first state is known: a client that waits for the `ready` line may write at
/// once. Gives `false` if Weir is told to stop before.
async fn settled(
    control: &mut Control,
    opening: tokio::task::JoinHandle<anyhow::Result<()>>,
    followed: &StateHandle,
) -> anyhow::Result<bool> {
    tokio::select! {
        opened = opening => opened??,
        () = control.stop.asked() => return Ok(false),
    }
    tokio::select! {
        () = followed.settled() => Ok(true),
        () = control.stop.asked() => Ok(false),
    }
}

/// Gives plugins the counts of before, and has them share what they keep, if there is a store. Gives what they share, for
/// Admin APIs.
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

/// What sends mails and webhooks, alerts among them.
fn outbox(starter: &Starter<'_>, store: &OperationalStore) -> anyhow::Result<Outbox> {
    let outbox = super::outbox::open(&starter.args.outbox, store.clone())?;
    if let Some(kept) = &starter.analytics.kept {
        kept.send_by(outbox.clone());
    }
    Ok(outbox)
}

/// Starts the workers once there is something to serve, and says who reports and whether it is taken out; `None`: it is told to
/// stop before.
async fn start_workers(
    control: &mut Control,
    starter: &Starter<'_>,
    (serving, taken_out): (&Serving, &TakenOut),
) -> anyhow::Result<Option<(ReporterInfo, bool)>> {
    let snapshot = tokio::select! {
        snapshot = serving.first() => snapshot,
        () = control.stop.asked() => return Ok(None),
    };
    let gateway = starter.start(snapshot)?;
    let reporter = reporter(starter, &gateway);
    starter.analytics.start(&reporter.name)?;
    // With a gateway it is ready, unless it is out.
    let is_out = taken_out.at_start(&reporter.name).await;
    control.status.set_out(is_out);
    serving.begin(gateway);
    Ok(Some((reporter, is_out)))
}

/// Orders certificates where the engine says that some are wanted, and keeps them in the store.
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

/// What makes snapshots of documents. Where no calls are served, it only finds out what is wrong with them.
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
            Err(error) => tracing::warn!(%error, "what caches are to forget is not understood"),
        }),
    }
}

/// Where what is served is kept. What is on this disk already needs no second place there.
fn last_known_good_file(
    management: &Management,
    keys: Option<&SealingKeys>,
) -> anyhow::Result<Option<LastKnownGoodFile>> {
    let Some(folder) = &management.data else {
        return Ok(None);
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let file = LastKnownGoodFile {
        path: folder.join(LAST_KNOWN_GOOD_FILE),
        keys: keys.cloned(),
    };
    Ok((!is_local(&management.origin)).then_some(file))
}

/// Where this gateway learns whether it is taken out, before it reports.
fn taken_out(store: &OpenStore, last_known_good: Option<&LastKnownGoodFile>) -> TakenOut {
    TakenOut {
        store: store.clone(),
        file: last_known_good.map(|it| it.path.with_file_name(TAKEN_OUT_FILE)),
    }
}

async fn open_admin_apis(
    (apis, portal): (AdminApis, Option<OpenPortal>),
    store: OpenStore,
    shared: Shared,
) -> anyhow::Result<()> {
    if apis.is_empty() && portal.is_none() {
        return Ok(());
    }
    let store = store.opened().await;
    for (store, kept) in [
        (&store, shared.history),
        (shared.operational.store(), operational::HISTORY),
    ] {
        tokio::spawn(weir_control::compact_periodically(Arc::clone(store), kept));
    }
    // The audit log says what calls have changed.
    let store = recording(Arc::clone(&store));
    let (apis, portal, shared) = (&apis, &portal, &shared);
    let opened = until_read(FIRST_PAUSE, || async {
        apis.open(Arc::clone(&store), shared).await?;
        match portal {
            Some(portal) => portal.open(Arc::clone(&store), shared).await,
            None => Ok(()),
        }
    });
    let opened = opened.await;
    let opened = opened.context("the Admin APIs cannot be opened");
    // A gateway that serves what it knows does not wait for them.
    opened.inspect_err(|error| tracing::error!("{error:#}"))
}

/// Tries again, less and less often, what a store that cannot be reached fails.
async fn until_read<T, R: Future<Output = Result<T, StoreError>>>(
    mut pause: Duration,
    mut read: impl FnMut() -> R,
) -> R::Output {
    loop {
        match read().await {
            Ok(done) => return Ok(done),
            Err(error @ StoreError::Damaged(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the Admin APIs cannot be opened; it is tried again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// What this gateway is called, and where it takes calls.
fn reporter(starter: &Starter<'_>, gateway: &weir_proxy::Gateway) -> ReporterInfo {
    let mut environments = starter.args.management.environment.clone();
    if environments.is_empty() {
        environments.push(DEFAULT_ENVIRONMENT.to_owned());
    }
    ReporterInfo {
        name: starter.gateway_name(gateway),
        address: first_address(gateway),
        version: env!("CARGO_PKG_VERSION"),
        environments,
    }
}

/// To whom this gateway reports.
fn report_target(management: &Management, store: &OpenStore, gateways: Gateways) -> ReportTarget {
    match &management.origin {
        Origin::Control { url, token } => ReportTarget::Control {
            url: url.clone(),
            token: token.clone(),
        },
        Origin::Store(_) if is_local(&management.origin) => ReportTarget::Here(gateways, store.clone()),
        Origin::Store(_) => ReportTarget::Store(store.clone()),
    }
}

/// Settles limits that are for all gateways, until the process ends.
fn settle(reporter: &ReporterInfo, target: LimitTarget, counts: Vec<Arc<dyn SharedCounts>>) {
    tokio::spawn(settle_limits(reporter.name.clone(), target, counts));
}

/// With whom this gateway settles limits that are for all gateways.
fn limit_target(management: &Management, gateways: &Gateways, reporter: &ReporterInfo) -> LimitTarget {
    let environments = reporter.environments.clone();
    match &management.origin {
        Origin::Control { url, token } => LimitTarget::Control {
            url: url.clone(),
            token: token.clone(),
            environments,
        },
        Origin::Store(_) if is_local(&management.origin) => {
            let exchange = gateways.limits(environments);
            exchange.map_or(LimitTarget::Nowhere, LimitTarget::Here)
        }
        Origin::Store(_) => LimitTarget::Nowhere,
    }
}

/// What goes on until it is told to stop.
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
            () = control.stop.asked() => return,
        };
        match loaded {
            Ok(good) => {
                for note in &good.notes {
                    tracing::warn!("{note}");
                }
                texts.set(super::files::for_lists(&good.texts));
                inputs.tell(EngineEvent::Files(Box::new(good.model))).await;
                good.after.done();
            }
            Err(report) => {
                tell_refused(&report);
                status.refused(report);
            }
        }
    }
}

/// A dialect whose documents stand in a file is not read from the store: global rules of one would miss the other's routes.
/// Its Admin API is one over that file.
fn with_files(dialects: DialectSet, management: &Management, files: Option<&Files>) -> DialectSet {
    let in_files = files.map_or(Vec::new(), |files| files.in_files.clone());
    // Native files and documents stand side by side.
    let apart = in_files.into_iter().filter(|name| {
        let dialect = dialects.get(*name);
        dialect.is_some_and(|it| !it.file_form().may_be_several)
    });
    let apart: Vec<DialectName> = apart.collect();
    let of_originals = management
        .admins()
        .into_iter()
        .filter(|(name, _, listeners)| *name != DialectName::NATIVE && !listeners.is_empty());
    let names: Vec<DialectName> = of_originals.map(|(name, ..)| name).collect();
    let unmatched = match names.as_slice() {
        [only] => *only,
        _ => DialectName::NATIVE,
    };
    dialects.with_files_of(apart).answering_as(unmatched)
}

fn is_local(origin: &Origin) -> bool {
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

fn source(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn admin_apis_are_opened_once_the_store_can_be_read() {
        let unreachable = || StoreError::Unreachable("away".to_owned());
        for (mut answers, expected) in [
            (
                vec![
                    Ok(1),
                    Err(unreachable()),
                    Err(StoreError::Failed("once".to_owned())),
                ],
                Some(1),
            ),
            (
                vec![
                    Ok(2),
                    Err(StoreError::Damaged("for good".to_owned())),
                    Err(unreachable()),
                ],
                None,
            ),
        ] {
            let read = || std::future::ready(answers.pop().expect("it was asked too often"));
            let opened = until_read(Duration::ZERO, read).await;
            assert_eq!(opened.ok(), expected);
        }
    }
}
