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
fn check_says_the_new_names_of_fields() {
    let document = |target: &str, field: &str| {
        let plugin = format!("key-auth: {{{field}: [{{header: x}}]}}");
        format!(
            "weir: 1\nroutes:\n  - name: r\n    paths: [/]\n    to: {target}\n    plugins:\n      - {plugin}\n"
        )
    };
    let old = document("{broken: 503}", "look_in");
    let typo = document("{respond: {status: 503}}", "locatoins");
    let folder = folder(&[("old.yaml", &old), ("typo.yaml", &typo)]);
    assert_says(
        &folder,
        &["check", "old.yaml"],
        "old.yaml: ok (1 route, 0 services)\n",
        "old.yaml:5: warning: routes[0].to.broken: 'broken' is called 'respond: {status: …, before_plugins: true}' now; \
         the next release reads 'respond' only\n\
         old.yaml:7: warning: routes[0].plugins[0].key-auth.look_in: 'look_in' is called 'locations' now; \
         the next release reads 'locations' only\n",
        0,
    );
    assert_says(
        &folder,
        &["check", "typo.yaml"],
        "",
        "typo.yaml:7: error: routes[0].plugins[0].key-auth.locatoins: unknown field 'locatoins': \
         did you mean 'locations'? Expected one of locations, strip, on_multiple, empty_is_missing, max_body_bytes, \
         challenge, identity\n",
        1,
    );
}

#[test]
fn check_reports_what_is_wrong_and_where() {
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

/// One fault does not hide those beside it.
#[test]
fn check_names_all_faults_of_a_section() {
    let text = "weir: 1
services:
  - name: s
    url: 7
    timeot: 1
    retries: many
    routes:
      - name: r
        paths: [/]
        methdos: [GET]
        plugins:
          - rate-limit: {limits: [{coutn: 1, per: minute}, {count: x, per: hour}], foo: 1}
upstreams:
  - name: u
    slots: 1
    targets: [{host: a, port: 1, wieght: 1}]
consumers:
  - {name: c, labls: {}, credentials: [{key-atuh: {key: k}}]}
certificates:
  - {crt: x}
  - {names: [a], key: y}
";
    let folder = folder(&[("faults.yaml", text)]);
    let output = weir(folder.path(), &["check", "faults.yaml"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    for place in [
        "services[0].url",
        "services[0].timeot",
        "services[0].retries",
        "services[0].routes[0].methdos",
        "upstreams[0].slots",
        "upstreams[0].targets[0].wieght",
        "consumers[0].labls",
        "consumers[0].credentials[0].key-atuh",
        "certificates[0].crt",
        "certificates[1].key",
    ] {
        let found = stderr.matches(&format!(" error: {place}: ")).count();
        assert_eq!(found, 1, "{place}: {stderr}");
    }
    assert_eq!(stderr.lines().count(), 10, "{stderr}");
    let plugins = SHOP.replace("count: 5", "coutn: 5, foo: x");
    std::fs::write(folder.path().join("plugins.yaml"), plugins).expect("a file");
    let output = weir(folder.path(), &["check", "plugins.yaml"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    for field in ["coutn", "foo"] {
        assert!(stderr.contains(&format!("unknown field '{field}'")), "{stderr}");
    }
}

#[test]
fn files_of_all_dialects_are_read_alike() {
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

/// What the check prints to standard error, and its exit status, plain and with `--strict`.
fn checked(text: &str, flags: &[&str]) -> (String, Option<i32>, Option<i32>) {
    let folder = folder(&[("file.yaml", text)]);
    let run = |more: &[&str]| {
        let arguments: Vec<&str> = ["check", "file.yaml"]
            .iter()
            .chain(flags)
            .chain(more)
            .copied()
            .collect();
        weir(folder.path(), &arguments)
    };
    let (plain, strict) = (run(&[]), run(&["--strict"]));
    assert_eq!(plain.stderr, strict.stderr);
    let stderr = String::from_utf8_lossy(&plain.stderr).into_owned();
    (stderr, plain.status.code(), strict.status.code())
}

#[test]
fn plugins_that_are_not_served_fail_a_check() {
    let kong = |plugin: &str| KONG.replace("- name: key-auth", &format!("- {plugin}"));
    let apisix = |plugin: &str| APISIX.replace("    plugins:\n", &format!("    plugins:\n      {plugin}\n"));
    // As the original does, a check accepts a kong.yml with a plugin that is described; a strict one does not.
    for (text, message, code) in [
        (
            kong("{name: ai-prompt-guard, config: {deny_patterns: [x]}}"),
            "plugin \"ai-prompt-guard\" is not served by this version of Weir: calls that come to it are refused",
            0,
        ),
        (
            kong("{name: ai-prompt-decorator, config: {prompts: {append: [{role: user, content: x}]}}}"),
            "plugin \"ai-prompt-decorator\" is not served by this version of Weir: calls that come to it are refused",
            0,
        ),
        (
            apisix("ext-plugin-pre-req: {}"),
            "plugin \"ext-plugin-pre-req\" is not available in this version of Weir; calls are refused",
            1,
        ),
        (
            apisix("inspect: {}"),
            "plugin \"inspect\" is not available in this version of Weir; calls are served without",
            1,
        ),
    ] {
        let (stderr, plain, strict) = checked(&text, &[]);
        assert!(stderr.contains(message), "{stderr}");
        assert_eq!((plain, strict), (Some(code), Some(1)), "{stderr}");
    }
}

/// An item that is right and that Weir cannot serve is told, and the calls of its route are refused: no broader route takes
/// them, and the rest of the file is served.
#[test]
fn a_route_that_cannot_be_served_refuses_its_calls() {
    for (item, message) in [
        ("vars: [[arg_a, '~~', '(?!b)']]", "look-around"),
        (
            "filter_func: 'function(vars) return true end'",
            "\"filter_func\" (a function in Lua)",
        ),
        (
            "script: 'local _M = {} return _M'",
            "\"script\" (a function in Lua)",
        ),
        (
            "plugins: {uri-blocker: {block_rules: ['(?!a)']}}",
            "look-around in a regular expression",
        ),
        (
            "plugins: {grpc-transcode: {proto_id: 99, service: a, method: b}}",
            "failed to find proto by id: 99",
        ),
        (
            "plugins: {body-transformer: {request: {template: '{% goto a %}'}}}",
            "'goto a' is not available",
        ),
        (
            "plugins: {csrf: {key: '$secret://vault/9/a/b'}}",
            "$secret://vault/9/a/b: there is no 'vault/9'",
        ),
        (
            "plugins: {key-auth: {_meta: {pre_function: 'return function() end'}}}",
            "\"pre_function\" (a function in Lua)",
        ),
    ] {
        let text = format!(
            "routes:\n  - {{id: bad, uri: /bad, upstream: {{nodes: {{'127.0.0.1:1': 1}}}}, {item}}}\n  \
             - {{id: all, uri: /*, priority: -1, upstream: {{nodes: {{'127.0.0.1:1': 1}}}}}}\n#END\n"
        );
        let (stderr, plain, strict) = checked(&text, &[]);
        assert!(
            stderr.contains(message) && stderr.contains("error (left out)"),
            "{message}: {stderr}"
        );
        assert_eq!((plain, strict), (Some(1), Some(1)), "{stderr}");
        let folder = folder(&[("apisix.yaml", &text)]);
        for (path, taker) in [("/bad", "Route bad "), ("/good", "Route all ")] {
            let call = format!("http://h{path}");
            let output = weir(folder.path(), &["explain", "-c", "apisix.yaml", &call]);
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(stdout.contains(taker), "{item} {path}: {stdout}");
            // An explanation of files reads no secrets, and so it does not know which are missing.
            let is_refused = path == "/bad" && !item.contains("$secret");
            assert_eq!(stdout.contains("503"), is_refused, "{item} {path}: {stdout}");
        }
    }
}

#[test]
fn warnings_fail_a_strict_check() {
    let open = "\n      - name: open\n        paths: [/]";
    let guarded = KONG
        .replace(
            "        paths: [/hello]",
            &format!("        paths: [/hello]\n        plugins: [{{name: key-auth}}]{open}"),
        )
        .replace("    plugins:\n      - name: key-auth\n", "");
    let apisix = |plugin: &str| APISIX.replace("    plugins:\n", &format!("    plugins:\n      {plugin}\n"));
    let native = |plugin: &str| {
        format!(
            "weir: 1\nroutes:\n  - {{name: r, paths: [/], to: {{respond: {{status: 503}}}}, plugins: [{plugin}]}}\n"
        )
    };
    for (text, flags, message) in [
        (KONG.to_owned(), &[][..], ""),
        (guarded, &[], "it takes calls for /hello%2Fx"),
        (
            apisix("cors: {allow_origins_by_regex: ['example.com']}"),
            &[],
            "has no `$` at its end",
        ),
        (
            apisix("cors: {allow_origins_by_regex: ['^https://a\\.example\\.com$']}"),
            &[],
            "",
        ),
        (
            native("cors: {origin_patterns: ['example.com$']}"),
            &[],
            "has no `^` at its start",
        ),
        (
            native("logger: {target: {file: {path: a.log}}}"),
            &[],
            "start Weir with --log-dir",
        ),
        (
            native("logger: {target: {file: {path: a.log}}}"),
            &["--log-dir", "/logs"],
            "",
        ),
        (
            native("logger: {target: {file: {path: /logs/a.log}}}"),
            &["--log-dir", "/logs"],
            "",
        ),
        (
            native("logger: {target: {file: {path: /data/store.db}}}"),
            &["--log-dir", "/logs"],
            "it is not in the folder",
        ),
        (native("logger: {target: {file: {path: /dev/stdout}}}"), &[], ""),
    ] {
        let (stderr, plain, strict) = checked(&text, flags);
        assert_eq!(plain, Some(0), "{stderr}");
        assert_eq!(strict, Some(i32::from(!message.is_empty())), "{stderr}");
        assert!(
            stderr.contains(message) && stderr.is_empty() == message.is_empty(),
            "{message}: {stderr}"
        );
    }
    let (stderr, plain, _) = checked(
        &native("logger: {target: {file: {path: ../store.db}}}"),
        &["--log-dir", "/logs"],
    );
    assert!(
        stderr.contains("expected a path without '..'") && plain == Some(1),
        "{stderr}"
    );
}

/// What no machine has is refused as it is by `weir run`, and the owner is named as in the file.
#[test]
fn references_that_lead_nowhere_are_refused() {
    let with_key = |text: &str, reference: &str| text.replace("{key: a}", &format!("{{key: '{reference}'}}"));
    let kong = with_key(KONG, "{vault://app/key}") + "vaults: [{name: env, prefix: another}]\n";
    let apisix = APISIX.replace(
        "#END",
        "consumers: [{username: jack, plugins: {key-auth: {key: '$secret://vault/1/jack/key'}}}]\n#END",
    );
    for (text, message) in [
        (
            kong,
            "error: a credential of consumer 'alice': {vault://app/key}: no vault has the prefix 'app'\n",
        ),
        (
            apisix,
            "error (left out): a credential of consumer 'jack': $secret://vault/1/jack/key: there is no 'vault/1'\n",
        ),
    ] {
        let (stderr, plain, strict) = checked(&text, &[]);
        assert!(
            stderr.contains(message) && !stderr.contains("stays a text"),
            "{message}: {stderr}"
        );
        assert_eq!((plain, strict), (Some(1), Some(1)), "{stderr}");
    }
}

/// Findings about plugins of a kong.yml have their places in it.
#[test]
fn plugins_of_a_kong_yml_have_places() {
    let global =
        "plugins:\n  - name: key-auth\n    tags: [t]\n  - name: file-log\n    config: {path: /logs/a.log}\n";
    let of_route = KONG.replace(
        "        paths: [/hello]\n",
        "        paths: [/hello]\n        plugins:\n          - {name: file-log, config: {path: /logs/a.log}}\n",
    );
    for (text, message) in [
        (
            KONG.to_owned() + global,
            "file.yaml:17: warning: plugins[1].config: nothing is written to /logs/a.log: no folder",
        ),
        (
            of_route,
            "file.yaml:9: warning: services[0].routes[0].plugins[0].config: nothing is written to /logs/a.log: no folder",
        ),
    ] {
        let (stderr, plain, _) = checked(&text, &[]);
        assert!(stderr.contains(message), "{message}: {stderr}");
        assert_eq!(plain, Some(0), "{stderr}");
    }
}

#[test]
fn variables_need_not_be_set_for_a_check() {
    let with_key = |text: &str, reference: &str| text.replace("{key: a}", &format!("{{key: '{reference}'}}"));
    let host = APISIX.replace("127.0.0.1:1980", "${{NOT_SET}}:1980");
    let name = APISIX.replace("uri: /h*", "name: ${{NOT_SET}}\n    uri: /h*");
    let count = APISIX.replace("count: 5", "count: ${{NOT_SET}}");
    let message = APISIX.replace(
        "rejected_code: 429,",
        "rejected_code: 429, rejected_msg: '$env://NOT_SET',",
    );
    for (text, expected_message) in [
        (with_key(SHOP, "$env://NOT_SET"), "NOT_SET"),
        (with_key(KONG, "{vault://env/not-set}"), "NOT_SET"),
        (
            host,
            "file.yaml:8: warning: the environment variable NOT_SET is not set",
        ),
        (
            name,
            "file.yaml:3: warning: the environment variable NOT_SET is not set",
        ),
        (
            count,
            "file.yaml:5: warning: the environment variable NOT_SET is not set",
        ),
        (message, "$env://NOT_SET stays a text"),
    ] {
        let (stderr, plain, strict) = checked(&text, &[]);
        assert!(stderr.contains(expected_message), "{expected_message}: {stderr}");
        assert_eq!((plain, strict), (Some(0), Some(1)), "{stderr}");
    }
    // The rest is checked.
    let (stderr, plain, _) = checked(
        &with_key(SHOP, "$env://NOT_SET").replace("use: keys", "use: kyes"),
        &[],
    );
    assert!(
        stderr.contains("no plugin instance has the id 'kyes'") && plain == Some(1),
        "{stderr}"
    );
    // A key that is not there looks like none.
    let token = "weir: 1\nconsumers:\n  - {name: a, credentials: [{jwt: {key: a, algorithm: RS256, public_key: '$env://NOT_SET'}}]}\n";
    let (stderr, plain, _) = checked(token, &[]);
    assert_eq!(plain, Some(0), "{stderr}");
}
