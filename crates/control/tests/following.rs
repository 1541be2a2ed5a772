//! Following a source: what is served in the end, how often something is, and what of it outlives the process.

#[path = "support/sample.rs"]
mod sample;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_control::follow::{
    self, Contact, Documents, Engine, EngineEvent, FollowState, Inputs, LastKnownGoodFile, SourceEvent,
    StateHandle,
};
use weir_control::secrets::Secrets;
use weir_snapshot::PersistentState;
use weir_store::{Key, Revision};

/// How long anything may take. Much more than it should: the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Running {
    inputs: Inputs,
    followed: StateHandle,
    served: Arc<AtomicUsize>,
    /// How many routes the newest snapshot has.
    routes: Arc<AtomicUsize>,
}

fn start(kept: Option<LastKnownGoodFile>) -> Running {
    let (served, routes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let followed = StateHandle::default();
    let (counted, newest) = (Arc::clone(&served), Arc::clone(&routes));
    let engine = Engine {
        registry: weir_plugins::registry(),
        persistent: PersistentState::default(),
        duty_factor: 1,
        acme: weir_control::acme::AcmeConfigs::default(),
        secrets: Secrets::default(),
        followed: followed.clone(),
        serve: Box::new(move |snapshot| {
            counted.fetch_add(1, Ordering::Relaxed);
            newest.store(snapshot.routes.len(), Ordering::Relaxed);
        }),
        purge: Box::new(|_| {}),
    };
    Running {
        inputs: follow::start(engine, sample::native(), kept).expect("threads"),
        followed,
        served,
        routes,
    }
}

impl Running {
    async fn hear(&self, heard: SourceEvent) {
        self.inputs.send(EngineEvent::Source(heard)).await;
    }

    async fn until(&self, holds: impl Fn(&FollowState) -> bool) -> Arc<FollowState> {
        let mut changed = self.followed.subscribe();
        let wait = async {
            while !holds(&self.followed.state()) {
                changed.changed().await.expect("the engine works");
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.expect("in time");
        self.followed.state()
    }
}

fn key(name: &str) -> Key {
    Key::new(name).expect("a key")
}

fn service(number: u64) -> (Key, Arc<[u8]>) {
    let value = format!(
        "{{\"name\": \"s{number}\", \"url\": \"http://127.0.0.1:1\", \"routes\": [{{\"name\": \"r{number}\", \"paths\": [\"/{number}\"]}}]}}"
    );
    (
        key(&format!("native/services/s{number}")),
        value.into_bytes().into(),
    )
}

fn changed(revision: u64, (key, value): (Key, Arc<[u8]>)) -> SourceEvent {
    SourceEvent::Changed {
        revision: Revision(revision),
        documents: vec![(key, Some(value))],
    }
}

#[tokio::test]
async fn a_storm_of_changes_is_served_together() {
    let running = start(None);
    let whole = SourceEvent::Whole {
        documents: Vec::new(),
        revision: Revision(0),
    };
    running.hear(whole).await;
    let (changes, mut expected) = (2000, Documents::default());
    for number in 1..=changes {
        let (key, value) = service(number % 100);
        expected.apply(&key, Some(Arc::clone(&value)));
        running.hear(changed(number, (key, value))).await;
    }
    let state = running.until(|state| state.revision == Revision(changes)).await;
    assert_eq!((state.hash.clone(), state.documents), (expected.hash(), 100));
    assert_eq!(running.routes.load(Ordering::Relaxed), 100);
    let served = running.served.load(Ordering::Relaxed);
    assert!(served < changes as usize / 4, "{served} compiles");

    // What is no configuration is no reason to compile.
    running
        .hear(changed(changes + 1, (key("weir/users/a"), (*b"{}").into())))
        .await;
    running
        .until(|state| state.revision == Revision(changes + 1))
        .await;
    assert_eq!(running.served.load(Ordering::Relaxed), served);
}

#[tokio::test]
async fn broken_documents_are_named_and_an_absent_store_is_reported() {
    let running = start(None);
    let broken = (key("native/services/x"), Arc::from(&b"{"[..]));
    let whole = SourceEvent::Whole {
        documents: vec![service(1), broken, (key("other/x"), Arc::from(&b"{"[..]))],
        revision: Revision(7),
    };
    running.hear(whole).await;
    let state = running.until(|state| state.revision == Revision(7)).await;
    assert_eq!((state.skipped.len(), state.documents), (1, 2));
    assert_eq!(state.skipped[0].document, "native/services/x");
    assert_eq!(running.routes.load(Ordering::Relaxed), 1);
    running
        .hear(SourceEvent::Unreachable("no power".to_owned()))
        .await;
    let state = running.until(|state| state.contact != Contact::Following).await;
    assert!(matches!(&state.contact, Contact::Unreachable { reason, .. } if reason == "no power"));
    // It comes back with less.
    let whole = SourceEvent::Whole {
        documents: vec![service(2), service(3)],
        revision: Revision(9),
    };
    running.hear(whole).await;
    let state = running.until(|state| state.revision == Revision(9)).await;
    assert_eq!((state.skipped.len(), state.documents), (0, 2));
    assert_eq!(state.contact, Contact::Following);
}

#[tokio::test]
async fn the_newest_is_kept_and_is_where_the_next_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = LastKnownGoodFile {
        path: folder.path().join("kept"),
        keys: None,
    };
    let running = start(Some(file.clone()));
    let whole = SourceEvent::Whole {
        documents: vec![service(1)],
        revision: Revision(1),
    };
    running.hear(whole).await;
    for number in 2..=5 {
        running.hear(changed(number, service(number))).await;
        running.until(|state| state.revision == Revision(number)).await;
    }
    let newest = async {
        loop {
            if let Ok(Some((documents, Revision(5)))) = file.load() {
                return documents;
            }
            tokio::task::yield_now().await;
        }
    };
    let documents = tokio::time::timeout(TIMEOUT, newest).await.expect("kept in time");
    assert_eq!(documents.len(), 5);

    let next = start(None);
    next.inputs
        .send(EngineEvent::LastKnownGood(documents, Revision(5)))
        .await;
    let state = next.until(|state| state.served_at.is_some()).await;
    assert!(state.is_last_known_good);
    assert_eq!(state.hash, running.followed.state().hash);
    // The source is back, and has the same.
    let whole = SourceEvent::Whole {
        documents: (1..=5).map(service).collect(),
        revision: Revision(6),
    };
    next.hear(whole).await;
    let state = next.until(|state| !state.is_last_known_good).await;
    assert_eq!(state.revision, Revision(6));
}
