//! `weir check`.

use super::{APISIX, KONG, SHOP, assert_says, folder, weir};
use std::path::Path;

#[test]
fn check_counts_what_is_good() {
    let folder = folder(&[("shop.yaml", SHOP), ("empty.yaml", "weir: 1\n")]);
    assert_says(
        &folder,
        &["check", "shop.yaml", "empty.yaml"],
        "shop.yaml: ok (5 routes, 1 service)\nempty.yaml: ok (0 routes, 0 services)\n",
        "",
        0,
    );
}

#[test]
fn check_tells_what_is_wrong_and_where() {
    let wrong_config = SHOP.replace("count: 5", "coutn: 5");
    let wrong_reference = SHOP.replace("use: keys", "use: kyes");
    let wrong_service = "weir: 1\nroutes:\n  - name: more\n    paths: [/more]\n    service: shp\n";
    let taken = "weir: 1\nroutes:\n  - {name: all, paths: [/more], service: shop}\n";
    let folder = folder(&[
        ("shop.yaml", SHOP),
        ("config.yaml", &wrong_config),
        ("reference.yaml", &wrong_reference),
        ("service.yaml", wrong_service),
        ("taken.yaml", taken),
        ("broken.yaml", "weir: 1\nroutes: [\n"),
    ]);
    for (files, stderr) in [
        (
            &["config.yaml"][..],
            "config.yaml:12: error: services[0].routes[0].plugins[1].rate-limit.limits[0].coutn: unknown field \
             'coutn': did you mean 'count'? Expected one of count, per, by, headers\n",
        ),
        (
            &["reference.yaml"],
            "reference.yaml:10: error: services[0].routes[0].plugins[0].use: no plugin instance has the id 'kyes'\n",
        ),
        (
            &["shop.yaml", "service.yaml"],
            "service.yaml:5: error: routes[0].service: no service is named 'shp'\n",
        ),
        (
            &["shop.yaml", "taken.yaml"],
            "taken.yaml:3: error: routes[0].name: the name 'all' is taken\n",
        ),
    ] {
        let arguments: Vec<&str> = ["check"].iter().chain(files).copied().collect();
        assert_says(&folder, &arguments, "", stderr, 1);
    }
    let output = weir(folder.path(), &["check", "broken.yaml"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("broken.yaml:3: error: not YAML: "), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn files_of_all_doors_are_read_alike() {
    let bad_kong = KONG.replace("paths: [/hello]", "paths: [hello]");
    let dropped = APISIX.replace("uri: /h*", "uri: 7");
    let native = "weir: 1\nservices:\n  - name: hello\n    url: http://b\n";
    let folder = folder(&[
        ("kong.yml", KONG),
        ("apisix.yaml", APISIX),
        ("native.yaml", native),
        ("bad-kong.yml", &bad_kong),
        ("dropped.yaml", &dropped),
        ("unsaid.yaml", "services: []\n"),
    ]);
    assert_says(
        &folder,
        &["check", "kong.yml", "apisix.yaml"],
        "kong.yml: ok (1 route, 1 service)\napisix.yaml: ok (1 route, 1 service)\n",
        "",
        0,
    );
    for (files, start) in [
        (
            &["bad-kong.yml"][..],
            "bad-kong.yml:7: error: services[0].routes[0].paths[0]: ",
        ),
        (&["dropped.yaml"], "dropped.yaml:2: error (left out): routes[0]: "),
        (
            &["kong.yml", "native.yaml"],
            "native.yaml:3: error: services[0].name: the name 'hello' is taken",
        ),
        (
            &["native.yaml", "kong.yml"],
            "kong.yml: error: service 'hello': services[0].name: the name 'hello' is taken",
        ),
        (&["unsaid.yaml"], "unsaid.yaml:1: error: missing valid end flag: "),
    ] {
        let arguments: Vec<&str> = ["check"].iter().chain(files).copied().collect();
        let output = weir(folder.path(), &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(start), "{files:?}: {stderr}");
        assert_eq!(output.status.code(), Some(1), "{files:?}");
    }
}

/// The example of the first screen is good, and says what it promises.
#[test]
fn the_quickstart_is_good() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = "examples/quickstart/weir.yaml";
    let output = weir(&root, &["check", file]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{file}: ok (1 route, 1 service)\n")
    );
}
