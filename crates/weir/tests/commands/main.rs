//! What `weir` says on the command line, word for word.

mod check;
mod convert;
mod explain;
mod manual;

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
    let printed = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert_eq!(printed.0, stdout, "{arguments:?}\n{}", printed.1);
    assert_eq!(printed.1, stderr, "{arguments:?}");
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
    to: {respond: {status: 503, before_plugins: true}}
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
