//! Plugins of a store that cannot be served: calls for which they would have worked are refused, and no others.

use serde_json::json;
use weir_kong::Options;
use weir_kong::incremental::IncrementalModel;
use weir_model::{ChainStep, Model, PluginInstance, PluginRef, RouteTarget, UnservablePlugins};

const ALICE: &str = "00000005-0000-4000-8000-000000000001";

/// Two services, three routes, a route of connections and a consumer.
const DOCUMENTS: [(&str, &str); 7] = [
    (
        "services/00000001-0000-4000-8000-000000000001",
        r#"{"name":"s","host":"s.test"}"#,
    ),
    (
        "services/00000001-0000-4000-8000-000000000002",
        r#"{"name":"o","host":"o.test"}"#,
    ),
    (
        "services/00000001-0000-4000-8000-000000000003",
        r#"{"name":"t","host":"t.test","protocol":"tcp"}"#,
    ),
    (
        "routes/00000002-0000-4000-8000-000000000001",
        r#"{"name":"a","paths":["/a"],"service":{"id":"00000001-0000-4000-8000-000000000001"}}"#,
    ),
    (
        "routes/00000002-0000-4000-8000-000000000002",
        r#"{"name":"b","paths":["/b"],"service":{"id":"00000001-0000-4000-8000-000000000001"}}"#,
    ),
    (
        "routes/00000002-0000-4000-8000-000000000003",
        r#"{"name":"c","paths":["/c"],"service":{"id":"00000001-0000-4000-8000-000000000002"}}"#,
    ),
    (
        "routes/00000002-0000-4000-8000-000000000004",
        r#"{"name":"t","protocols":["tcp"],"destinations":[{"port":9000}],"service":{"id":"00000001-0000-4000-8000-000000000003"}}"#,
    ),
];

const ROUTE: &str = r#""route":{"id":"00000002-0000-4000-8000-000000000001"}"#;
const STREAM: &str = r#""route":{"id":"00000002-0000-4000-8000-000000000004"}"#;
const SERVICE: &str = r#""service":{"id":"00000001-0000-4000-8000-000000000001"}"#;
const OF_ALICE: &str = r#""consumer":{"id":"00000005-0000-4000-8000-000000000001"}"#;
const GONE: &str = r#""route":{"id":"00000002-0000-4000-8000-000000000009"}"#;

fn stored(workspace: &str) -> IncrementalModel {
    let mut stored = IncrementalModel::new(Options::default());
    for workspace in ["default", workspace] {
        for (key, value) in DOCUMENTS {
            stored.apply(&format!("{workspace}/{key}"), Some(value.as_bytes()));
        }
        let alice = format!("{workspace}/consumers/{ALICE}");
        stored.apply(&alice, Some(br#"{"username":"alice"}"#));
    }
    stored
}

fn is_refusal(instance: &PluginInstance) -> bool {
    instance.name == "request-termination" && instance.config["status"] == 503
}

fn refuses(model: &Model, steps: &[ChainStep], consumer: Option<&str>) -> bool {
    let shared = |id: &str| model.plugins.iter().find(|it| it.id == id).expect("a plugin");
    steps.iter().any(|step| {
        let overrides = step.consumer_overrides.iter().find_map(|id| {
            let table = model.consumer_tables.iter().find(|it| it.id == *id)?;
            table.instances.get(consumer?)?.as_deref()
        });
        match (overrides, &step.plugin) {
            (Some(id), _) => is_refusal(shared(id)),
            (None, Some(PluginRef::Shared(id))) => is_refusal(shared(id)),
            (None, Some(PluginRef::Inline(instance))) => is_refusal(instance),
            (None, None) => false,
        }
    })
}

/// The routes that refuse calls: `a` for everybody, `a!` for the consumer alone; `t` has no consumers.
fn refused(model: &Model, workspace: &str) -> String {
    let prefix = match workspace {
        "default" => String::new(),
        workspace => format!("{workspace}/"),
    };
    let alice = format!("{prefix}{ALICE}");
    let mut words = Vec::new();
    for route in &model.routes {
        let Some(name) = route
            .name
            .strip_prefix(&prefix)
            .filter(|name| !name.contains('/'))
        else {
            continue;
        };
        let is_refused = route.target == RouteTarget::respond_before_plugins(503);
        let of = |consumer| is_refused || refuses(model, &route.plugins, consumer);
        match [None, Some(alice.as_str())].map(of) {
            [true, true] => words.push(name.to_owned()),
            [false, true] => words.push(format!("{name}!")),
            [false, false] => {}
            [true, false] => panic!("{name} is refused for others alone"),
        }
    }
    let mut streams = model.stream_routes.iter();
    let stream = streams
        .find(|it| it.name == format!("{prefix}t"))
        .expect("a stream route");
    if stream.service.is_none() {
        assert!(stream.plugins.is_empty());
        words.push("t".to_owned());
    }
    words.join(" ")
}

/// What a document says, the family that it is of, what is refused, and a part of what is said of it.
fn cases() -> Vec<(&'static str, String, &'static str, &'static str)> {
    let wrong = |name: &str, place: &str| {
        format!(r#"{{"name":"{name}","config":{{"minute":"x","key_names":5,"allow":7,"path":8}},{place}}}"#)
    };
    let everywhere = r#""tags":null"#;
    let unserved =
        r#""config":{"limit":[5],"window_size":[60],"sync_rate":-1,"enforce_consumer_groups":true}"#;
    let logger = r#""config":{"path":"a.log","custom_fields_by_lua":{"a":"return 1"}}"#;
    let refused = "; calls that come to it are refused";
    vec![
        ("plugins", wrong("key-auth", ROUTE), "a", refused),
        ("plugins", wrong("rate-limiting", SERVICE), "a b", refused),
        ("plugins", wrong("acl", everywhere), "a b c", refused),
        ("plugins", wrong("rate-limiting", OF_ALICE), "a! b! c!", refused),
        (
            "plugins",
            wrong("rate-limiting", &format!("{OF_ALICE},{ROUTE}")),
            "a!",
            refused,
        ),
        ("plugins", wrong("ip-restriction", STREAM), "t", refused),
        ("plugins", wrong("ip-restriction", everywhere), "a b c t", refused),
        ("plugins", wrong("key-auth", STREAM), "", refused),
        ("plugins", wrong("no-such-plugin", ROUTE), "a", refused),
        ("plugins", wrong("no-such-plugin", OF_ALICE), "a! b! c!", refused),
        ("plugins", wrong("no-such-plugin", STREAM), "t", refused),
        ("plugins", wrong("key-auth", GONE), "", "config."),
        (
            "plugins",
            wrong("key-auth", r#""route":{"id":5}"#),
            "a b c",
            refused,
        ),
        ("plugins", wrong("key-auth", r#""route":"#), "a b c t", refused),
        ("plugins", "{".to_owned(), "a b c t", refused),
        ("plugins", "[]".to_owned(), "a b c t", refused),
        ("plugins", wrong("key-auth", r#""enabled":false"#), "", "config."),
        ("plugins", wrong("file-log", everywhere), "", "config."),
        (
            "plugins",
            format!(r#"{{"name":"rate-limiting-advanced",{unserved},{ROUTE}}}"#),
            "a",
            refused,
        ),
        (
            "plugins",
            format!(r#"{{"name":"rate-limiting-advanced",{unserved},{OF_ALICE}}}"#),
            "a! b! c!",
            refused,
        ),
        (
            "plugins",
            format!(r#"{{"name":"rate-limiting-advanced",{unserved},"enabled":false}}"#),
            "",
            "not available",
        ),
        (
            "plugins",
            format!(r#"{{"name":"file-log",{logger}}}"#),
            "",
            "not available",
        ),
        (
            "acls",
            format!(r#"{{"group":5,{OF_ALICE}}}"#),
            "a! b! c!",
            refused,
        ),
        ("acls", "{".to_owned(), "a b c t", refused),
    ]
}

#[test]
fn calls_that_need_them_are_refused() {
    for (workspace, other) in [("default", "team"), ("team", "default")] {
        let mut stored = stored("team");
        for (family, value, expected, message) in cases() {
            let key = format!("{workspace}/{family}/00000007-0000-4000-8000-000000000001");
            stored.apply(&key, Some(value.as_bytes()));
            let (model, broken) = stored.model();
            assert_eq!(refused(&model, workspace), expected, "{value}");
            assert_eq!(refused(&model, other), "", "{value}");
            assert_eq!(broken.len(), 1, "{value}: {broken:?}");
            assert_eq!(broken[0].document, key);
            let reason = &broken[0].reason;
            assert!(reason.contains(message), "{value}: {reason}");
            let is_said = reason.contains("are refused");
            assert!(is_said || expected.is_empty(), "{value}: {reason}");
            assert_eq!(model.validate(), Vec::new(), "{value}");
            // Once it is gone, calls are served again.
            stored.apply(&key, None);
            let (model, broken) = stored.model();
            assert_eq!(
                (refused(&model, workspace), broken.len()),
                (String::new(), 0),
                "{value}"
            );
        }
        let plugin = json!({"name": "key-auth", "config": {}}).to_string();
        let key = format!("{workspace}/plugins/00000007-0000-4000-8000-000000000001");
        stored.apply(&key, Some(b"{"));
        stored.apply(&key, Some(plugin.as_bytes()));
        let (model, broken) = stored.model();
        assert_eq!((refused(&model, workspace), broken.len()), (String::new(), 0));
        assert_eq!(model.routes[0].plugins.len(), usize::from(workspace == "default"));
    }
}

/// Plugins that the dialect serves, and that are lost later: a secret of theirs cannot be had, or they cannot be built. All
/// are shared: those of one route alone are part of its chain.
#[test]
fn what_is_lost_later_refuses_the_same_calls() {
    let plugin = |name: &str, config: &str, place: &str| {
        format!(r#"{{"name":"{name}","config":{{{config}}},{place}}}"#)
    };
    let everywhere = r#""tags":null"#;
    let target = r#""http_endpoint":"http://h.test/","headers":{"X-Key":"{vault://env/none}"}"#;
    let minute = r#""minute":5,"policy":"local""#;
    for (workspace, other) in [("default", "team"), ("team", "default")] {
        let mut stored = stored("team");
        let key = format!("{workspace}/plugins/00000007-0000-4000-8000-000000000001");
        for (value, expected) in [
            (plugin("http-log", target, everywhere), ""),
            (plugin("http-log", target, OF_ALICE), ""),
            (plugin("http-log", target, SERVICE), ""),
            (plugin("rate-limiting", minute, OF_ALICE), "a! b! c!"),
            (
                plugin("rate-limiting", minute, &format!("{OF_ALICE},{ROUTE}")),
                "a!",
            ),
            (plugin("rate-limiting", minute, SERVICE), "a b"),
            (
                plugin("ip-restriction", r#""deny":["10.0.0.1"]"#, everywhere),
                "a b c t",
            ),
        ] {
            stored.apply(&key, Some(value.as_bytes()));
            let (mut model, broken) = stored.model();
            assert_eq!(
                (refused(&model, workspace), broken.len()),
                (String::new(), 0),
                "{value}"
            );
            let lost = UnservablePlugins::of(&model.plugins, weir_plugins::is_skippable);
            assert_eq!(lost.plugins.len() + lost.skippable.len(), 1, "{value}");
            model.remove_plugins(&lost);
            assert_eq!(refused(&model, workspace), expected, "{value}");
            assert_eq!(refused(&model, other), "", "{value}");
            assert_eq!(model.validate(), Vec::new(), "{value}");
        }
    }
}
