//! What `weir check`, `weir convert` and `weir explain` say, word for word.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn weir(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .output()
        .expect("the binary runs")
}

/// What it prints to standard output and standard error, and its exit status.
#[track_caller]
fn assert_says(folder: &TempDir, arguments: &[&str], stdout: &str, stderr: &str, code: i32) {
    let output = weir(folder.path(), arguments);
    let said = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert_eq!(said.0, stdout, "{arguments:?}\n{}", said.1);
    assert_eq!(said.1, stderr, "{arguments:?}");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
}

const SHOP: &str = "\
weir: 1
services:
  - name: shop
    upstream: pool
    routes:
      - name: orders
        paths: [/orders]
        methods: [GET, POST]
        plugins:
          - use: keys
          - rate-limit:
              limits: [{count: 5, per: minute}]
            when: [arg_free, '!', ==, 'yes']
            overrides: []
      - name: order
        paths: ['/orders/{id}']
        hosts: ['*.example.com']
      - name: all
        paths: [/]
routes:
  - name: off
    paths: [/off]
    to: {broken: 503}
  - name: secure
    paths: [/secure]
    service: shop
    https_only_status: 426
upstreams:
  - name: pool
    targets: ['127.0.0.1:1980', '127.0.0.1:1981']
consumers:
  - name: alice
    credentials: [{key-auth: {key: a}}]
plugins:
  - id: keys
    key-auth: {}
";

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

const KONG: &str = "\
_format_version: '3.0'
services:
  - name: hello
    url: http://127.0.0.1:1980
    routes:
      - name: hello
        paths: [/hello]
    plugins:
      - name: key-auth
consumers:
  - username: alice
    keyauth_credentials: [{key: a}]
";

const APISIX: &str = "\
routes:
  - id: hi
    uri: /h*
    plugins:
      limit-count: {count: 5, time_window: 60, rejected_code: 429, key: remote_addr}
    upstream:
      type: roundrobin
      nodes: {'127.0.0.1:1980': 1}
#END
";

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

/// A converted document says the same as the one that it came from: converting it again changes nothing.
#[test]
fn converted_documents_are_native_ones() {
    let folder = folder(&[("kong.yml", KONG), ("apisix.yaml", APISIX)]);
    for file in ["kong.yml", "apisix.yaml"] {
        let once = weir(folder.path(), &["convert", file, "--to", "weir"]);
        assert_eq!(
            once.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&once.stderr)
        );
        std::fs::write(folder.path().join("once.yaml"), &once.stdout).expect("a file");
        let again = weir(folder.path(), &["convert", "once.yaml"]);
        assert_eq!(
            String::from_utf8_lossy(&again.stdout),
            String::from_utf8_lossy(&once.stdout),
            "{}",
            String::from_utf8_lossy(&again.stderr)
        );
    }
}

#[test]
fn explain_goes_through_the_voices_in_order() {
    let folder = folder(&[("kong.yml", KONG), ("apisix.yaml", APISIX)]);
    let call = [
        "explain",
        "-c",
        "kong.yml",
        "-c",
        "apisix.yaml",
        "http://localhost/hello",
    ];
    let output = weir(folder.path(), &call);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "Route hello (kong), kong.yml\n",
        "Not these\n  hi (path /h*), apisix.yaml\n    it holds too, but kong routes are looked at first\n",
        "Plugins\n  1. key-auth (",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn unreadable_files_and_wrong_usage_have_a_status_of_their_own() {
    let folder = folder(&[]);
    assert_says(
        &folder,
        &["check", "absent.yaml"],
        "",
        "absent.yaml: cannot be read: No such file or directory (os error 2)\n",
        2,
    );
    for arguments in [&["check"][..], &["nonsense"], &["run"], &["explain", "-c", "x"]] {
        assert_eq!(
            weir(folder.path(), arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn convert_prints_one_native_document() {
    let more = "weir: 1\nroutes:\n  - {name: more, match: [{path: /more}], to: {service: shop}}\n";
    let short = "weir: 1\nservices: [{name: shop, url: 'http://a'}]\n";
    let folder = folder(&[
        ("a.yaml", short),
        ("b.yaml", more),
        ("bad.yaml", "weir: 1\nx: 1\n"),
    ]);
    assert_says(
        &folder,
        &["convert", "a.yaml", "b.yaml", "--to", "weir"],
        "weir: 1\nservices:\n  - name: shop\n    url: http://a\nroutes:\n  - name: more\n    paths: [/more]\n    service: shop\n",
        "",
        0,
    );
    let output = weir(folder.path(), &["convert", "bad.yaml"]);
    assert_eq!(
        (output.stdout.as_slice(), output.status.code()),
        (&b""[..], Some(1))
    );
    assert_says(
        &folder,
        &["convert", "a.yaml", "--to", "kong"],
        "",
        "weir convert: --to kong is not available in this version of Weir; --to weir is\n",
        2,
    );
}

#[test]
fn explain_tells_route_reasons_and_chain() {
    let folder = folder(&[("shop.yaml", SHOP)]);
    for (call, text) in [
        (
            "GET http://localhost/orders/7",
            "\
GET http://localhost/orders/7 from 127.0.0.1

Route orders (native), shop.yaml:6
  takes it by path /orders, methods GET or POST
  and sends it to service shop, upstream pool (2 targets)

Not these
  all (path /), shop.yaml:18
    it holds too, but is less specific
  order (path /orders/{id}, host *.example.com), shop.yaml:15
    the host is another one

Plugins
  1. key-auth (shared 'keys'), shop.yaml:35
  2. rate-limit when [\"arg_free\",\"!\",\"==\",\"yes\"], shop.yaml:11
",
        ),
        (
            "DELETE http://localhost/orders",
            "\
DELETE http://localhost/orders from 127.0.0.1

Route all (native), shop.yaml:18
  takes it by path /
  and sends it to service shop, upstream pool (2 targets)

Not these
  orders (path /orders, methods GET or POST), shop.yaml:6
    the method is not among the route's

No plugins
",
        ),
        (
            "GET http://localhost/secure",
            "\
GET http://localhost/secure from 127.0.0.1

Route secure (native), shop.yaml:24
  takes it by path /secure
  The gateway answers 426 in the native voice: the route takes calls over TLS only

Not these
  all (path /), shop.yaml:18
    it holds too, but is less specific

No plugins
",
        ),
        (
            "GET http://localhost/../x",
            "\
GET http://localhost/../x from 127.0.0.1

No route
  The gateway answers 400 in the native voice: the path leads above the root or holds a broken escape

No plugins
",
        ),
    ] {
        assert_says(&folder, &["explain", "-c", "shop.yaml", call], text, "", 0);
    }
}

#[test]
fn explain_speaks_json_too() {
    let folder = folder(&[("shop.yaml", SHOP)]);
    let call = [
        "explain",
        "-c",
        "shop.yaml",
        "/off",
        "-H",
        "Host: a.example.com",
        "--client",
        "10.0.0.1",
        "--json",
    ];
    let output = weir(folder.path(), &call);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["client"], "10.0.0.1");
    assert_eq!(said["route"]["name"], "off");
    assert_eq!(said["answer"]["status"], 503);
    assert_eq!(said["others"][0]["name"], "all");
    assert_eq!(said["plugins"], serde_json::json!([]));
}

#[test]
fn secrets_are_not_shown() {
    let text = SHOP.replace("upstream: pool", "url: http://user:s3cret@127.0.0.1/");
    let folder = folder(&[("shop.yaml", &text)]);
    let output = weir(folder.path(), &["explain", "-c", "shop.yaml", "/x"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("s3cret"));
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
