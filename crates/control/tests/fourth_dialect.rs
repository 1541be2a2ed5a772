//! A further dialect: one file that implements the contract, and one line in a list. What follows a store, serves files
//! and refuses calls does not know it.

#[path = "support/sample.rs"]
mod sample;

use sample::Sample;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_control::acme::AcmeConfigs;
use weir_control::follow::{self, Engine, EngineEvent, SourceEvent, StateHandle};
use weir_control::secrets::{Cache, Secrets};
use weir_dialect::{DialectName, DialectSet, ForeignRoutes};
use weir_native::NativeDialect;
use weir_snapshot::PersistentState;
use weir_store::{Key, Revision};

const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_further_dialect_recognises_and_translates_its_files() {
    let dialects = DialectSet::new(vec![Arc::new(Sample::default()), Arc::new(NativeDialect)]);
    for (document, expected) in [
        (json!({"sample": {"a": {"path": "/a"}}}), Some("sample")),
        (json!({"weir": 1}), Some("native")),
        (json!({"else": 1}), None),
    ] {
        let found = dialects.of_document(&document).map(|it| it.name());
        assert_eq!(found, expected.map(DialectName::new), "{document}");
    }
    assert_eq!(
        dialects.of_text("sample: [\n").map(|it| it.name()),
        Some(DialectName::new("sample"))
    );
    let document = json!({"sample": {"a": {"path": "/a"}}});
    let dialect = dialects.of_document(&document).expect("recognised");
    let (model, found) = dialect.translate(&document).expect("translated");
    assert_eq!((model.routes.len(), found.len()), (1, 0));
    assert_eq!(model.routes[0].dialect, DialectName::new("sample"));
    assert!(dialects.unknown_names(&model).is_empty());
    let without = DialectSet::new(vec![Arc::new(NativeDialect)]);
    let found = without.unknown_names(&model);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].path.to_string().as_str(), found[0].message.as_str()),
        (
            "routes[0].dialect",
            "no dialect is named 'sample'; there are: native"
        )
    );
}

#[tokio::test]
async fn a_further_dialect_is_followed_from_a_store() {
    let dialects = sample::all();
    let served = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&served);
    let followed = StateHandle::default();
    let engine = Engine {
        registry: weir_plugins::registry(),
        persistent: PersistentState::default(),
        duty_factor: 1,
        acme: AcmeConfigs::default(),
        secrets: Secrets::new(&dialects, Cache::default()),
        followed: followed.clone(),
        serve: Box::new(move |snapshot| {
            let routes = snapshot.routes.iter();
            let names = routes.map(|it| format!("{} {}", it.rules.dialect, it.series_names.1));
            *noted.lock().expect("no panic") = names.collect();
        }),
        purge: Box::new(|_| {}),
    };
    let inputs = follow::start(engine, dialects, None).expect("threads");
    let documents = [
        ("sample/routes/a", r#"{"path": "/a"}"#),
        ("sample/routes/b", r#"{"no": "path"}"#),
        (
            "other/routes/c",
            r#"{"path": "/c", "warning": "only half of it"}"#,
        ),
    ];
    let documents =
        documents.map(|(key, value)| (Key::new(key).expect("a key"), Arc::from(value.as_bytes())));
    inputs
        .send(EngineEvent::Source(SourceEvent::Whole {
            documents: documents.to_vec(),
            revision: Revision(1),
        }))
        .await;
    tokio::time::timeout(TIMEOUT, followed.first_result())
        .await
        .expect("served");
    assert_eq!(
        *served.lock().expect("no panic"),
        ["sample sample/a", "other other/c"]
    );
    let state = followed.state().to_json();
    let named = |list: &str| {
        let items = state[list].as_array().expect("a list").iter();
        let names = items.map(|it| it["document"].as_str().expect("a text").to_owned());
        names.collect::<Vec<_>>()
    };
    // What is served is none of what is left out.
    assert_eq!(named("skipped"), ["sample/routes/b"]);
    assert_eq!(named("warnings"), ["other/routes/c"]);
    assert_eq!(state["warnings"][0]["reason"], "only half of it");
    let mut others = 0;
    followed.any(DialectName::new("sample"), &mut |_, owner| {
        assert_eq!(owner.workspace, "default");
        others += 1;
        false
    });
    assert_eq!(others, 1, "its own routes are none of another dialect");
}
