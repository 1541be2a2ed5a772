//! What is said of documents that lose something without a trace: repeated keys, several files of one dialect.

use std::process::Command;

#[test]
fn nothing_is_lost_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let native = "weir: 1\nroutes:\n  - name: a\n    paths: [/a]\n    plugins: [key-auth: {}]\n    to: {respond: {status: 503, before_plugins: true}}\n    plugins: []\n";
    let kong = "_format_version: '3.0'\nservices: []\n";
    let repeated = "_format_version: '3.0'\nservices: []\nservices: []\n";
    let apisix = "routes: []\n#END\n";
    let again = "routes: []\nroutes: []\n#END\n";
    for (name, text) in [
        ("native", native),
        ("kong", kong),
        ("kong2", kong),
        ("repeated", repeated),
        ("apisix", apisix),
        ("apisix2", apisix),
        ("again", again),
    ] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    for (files, stderr, code) in [
        (
            &["native"][..],
            "native:7: error: the key 'plugins' is here a second time, and line 5 does not count: join them\n",
            1,
        ),
        (
            &["repeated"],
            "repeated:3: warning: the key 'services' is here a second time, and line 2 does not count: join them\n",
            0,
        ),
        (
            &["again"],
            "again:2: warning: the key 'routes' is here a second time, and line 1 does not count: join them\n",
            0,
        ),
        (&["kong", "apisix"], "", 0),
        (
            &["kong", "apisix", "kong2"],
            "kong2: error: several kong.yml files cannot be served together: put them into one\n",
            1,
        ),
        (
            &["apisix", "apisix2"],
            "apisix2: error: several apisix.yaml files cannot be served together: put them into one\n",
            1,
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("check")
            .args(files)
            .current_dir(folder.path())
            .env_clear()
            .output()
            .expect("the binary runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), stderr, "{files:?}");
        assert_eq!(output.status.code(), Some(code), "{files:?}");
    }
}
