//! What is served if the newest documents are refused as a whole.

use super::*;
use crate::secrets::Cache;
use std::sync::atomic::{AtomicUsize, Ordering};

fn service(number: u64) -> (Key, Arc<[u8]>) {
    let key = Key::new(&format!("native/services/s{number}")).expect("a key");
    let value = format!("{{\"name\": \"s{number}\", \"url\": \"http://127.0.0.1:1\"}}");
    (key, value.into_bytes().into())
}

#[test]
fn rather_the_last_known_good_than_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = LastKnownGoodFile {
        path: folder.path().join("kept"),
        keys: None,
    };
    let keeper = LastKnownGoodWriter::start(file.clone(), || {}, |_| {}).expect("a thread");
    let mut documents = Documents::default();
    for number in 1..=3 {
        let (key, value) = service(number);
        documents.apply(&key, Some(value));
    }
    keeper.give(&documents, Revision(5));
    while !file.path.exists() {
        std::thread::yield_now();
    }
    let served = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&served);
    let followed = StateHandle::default();
    let engine = Engine {
        registry: weir_plugins::registry(),
        persistent: PersistentState::default(),
        duty_factor: 1,
        acme: AcmeConfigs::default(),
        secrets: Secrets::new(&crate::sample::native(), Cache::default()),
        followed: followed.clone(),
        serve: Box::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        }),
        purge: Box::new(|_| {}),
    };
    let mut work = Work::new(engine, crate::sample::native(), None, Some(file));
    work.take(EngineEvent::Source(SourceEvent::Whole {
        documents: vec![service(9)],
        revision: Revision(7),
    }));
    // Nothing is known that would be refused as a whole.
    work.refuse(&[]);
    let state = followed.state();
    assert_eq!((state.revision, state.documents), (Revision(5), 3));
    assert!(state.is_last_known_good && state.refusal.is_some());
    assert_eq!(served.load(Ordering::Relaxed), 1);
    // What is served already stays.
    work.refuse(&[]);
    assert_eq!(served.load(Ordering::Relaxed), 1);
    // The next change is a good one.
    work.build();
    let state = followed.state();
    assert_eq!((state.revision, state.documents), (Revision(7), 1));
    assert!(!state.is_last_known_good && state.refusal.is_none());
}
