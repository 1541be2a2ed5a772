//! Plugins of two gateways over one operational store.

use super::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use weir_plugin::{BuildContext, Filter, Plugin};

/// A plugin that only has records.
#[derive(Clone, Default)]
struct RecordPlugin(Arc<RecordPluginState>);

#[derive(Default)]
struct RecordPluginState {
    store: OnceLock<Arc<dyn SharedStore>>,
    known: Mutex<BTreeMap<String, SharedRecord>>,
}

impl Plugin for RecordPlugin {
    fn name(&self) -> &'static str {
        "keeper"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::Schema::default()
    }

    fn build(&self, _: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<weir_model::Diagnostic>> {
        Err(Vec::new())
    }

    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        Some(Arc::clone(&self.0) as Arc<dyn SharedRecords>)
    }
}

impl SharedRecords for RecordPluginState {
    fn share(&self, store: Arc<dyn SharedStore>) {
        assert!(self.store.set(store).is_ok());
    }

    fn apply(&self, _: u64, changes: Vec<(String, Option<SharedRecord>)>) {
        let mut known = self.known.lock().expect("whole");
        for (name, record) in changes {
            match record {
                Some(record) => drop(known.insert(name, record)),
                None => drop(known.remove(&name)),
            }
        }
    }

    fn list(&self, _: u64) -> Vec<(String, Value)> {
        let known = self.known.lock().expect("whole");
        known
            .iter()
            .map(|(name, it)| (name.clone(), it.value.clone()))
            .collect()
    }

    fn name_of(&self, text: &str) -> String {
        text.to_owned()
    }

    fn remove(&self, _: &str, _: Committed) {}
}

impl RecordPlugin {
    async fn commit(&self, change: SharedChange) -> Result<bool, StoreUnavailable> {
        let (tell, committed) = tokio::sync::oneshot::channel();
        let store = self.0.store.get().expect("shared");
        store.commit(change, Box::new(move |done| assert!(tell.send(done).is_ok())));
        committed.await.expect("told").map(|done| done.is_some())
    }

    async fn read(&self, name: &str) -> Option<SharedRecord> {
        let (tell, committed) = tokio::sync::oneshot::channel();
        let store = self.0.store.get().expect("shared");
        store.read(name, Box::new(move |found| assert!(tell.send(found).is_ok())));
        committed.await.expect("told").expect("read").0
    }
}

fn record(value: Value) -> SharedRecord {
    SharedRecord { value, ends_ms: None }
}

#[tokio::test]
async fn records_are_committed_and_followed() {
    let store = OperationalStore::in_memory();
    let keepers = [RecordPlugin::default(), RecordPlugin::default()];
    for keeper in &keepers {
        let mut registry = Registry::default();
        registry.add(keeper.clone());
        share(&registry, &store);
    }
    let [one, two] = &keepers;
    let put = |name: &str, value: Value| (name.to_owned(), record(value));
    let ends_ms = Some(u64::MAX / 4);
    let lasting = SharedRecord {
        value: json!(2),
        ends_ms,
    };
    let change = SharedChange {
        puts: vec![put("a", json!({"n": 1})), ("b".to_owned(), lasting.clone())],
        ..SharedChange::default()
    };
    assert_eq!(one.commit(change).await, Ok(true));
    assert_eq!(two.read("a").await, Some(record(json!({"n": 1}))));
    assert_eq!(two.read("b").await, Some(lasting));
    assert_eq!(two.read("c").await, None);
    // What is expected must be there.
    for (expected, done) in [
        (vec![("a".to_owned(), Some(json!({"n": 2})))], false),
        (vec![("a".to_owned(), None)], false),
        (
            vec![
                ("a".to_owned(), Some(json!({"n": 1}))),
                ("c".to_owned(), Some(json!(1))),
            ],
            false,
        ),
        (
            vec![("a".to_owned(), Some(json!({"n": 1}))), ("c".to_owned(), None)],
            true,
        ),
    ] {
        let change = SharedChange {
            expected,
            puts: vec![put("c", json!(3))],
            removes: vec!["a".to_owned()],
        };
        assert_eq!(two.commit(change).await, Ok(done));
    }
    let wanted = [("b".to_owned(), json!(2)), ("c".to_owned(), json!(3))];
    for keeper in &keepers {
        while keeper.0.list(0) != wanted {
            tokio::task::yield_now().await;
        }
    }
}

/// As many reads as there may be are under way.
#[tokio::test]
async fn reads_hold_up_no_commits() {
    let part = PluginStore {
        store: OperationalStore::in_memory(),
        prefix: "shared/keeper/".to_owned(),
        runtime: tokio::runtime::Handle::current(),
        free_to_read: Arc::new(Semaphore::new(0)),
        free_to_commit: Arc::new(Semaphore::new(1)),
    };
    let (tell, committed) = tokio::sync::oneshot::channel();
    part.read("a", Box::new(move |found| assert!(tell.send(found).is_ok())));
    assert!(committed.await.is_err(), "dropped");
    let (tell, committed) = tokio::sync::oneshot::channel();
    let change = SharedChange {
        puts: vec![("a".to_owned(), record(json!(1)))],
        ..SharedChange::default()
    };
    part.commit(change, Box::new(move |done| assert!(tell.send(done).is_ok())));
    let done = committed.await.expect("told").expect("committed");
    assert!(done.is_some());
}
