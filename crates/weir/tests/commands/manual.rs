//! Man pages, completions and the version.

use crate::weir;

#[test]
fn man_pages_describe_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = weir(folder.path(), &["man", "--out", "pages"]);
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).expect(name);
    for (name, text) in [
        ("weir.1", "weir\\-run(1)"),
        ("weir-run.1", "\\-\\-listen"),
        ("weir-check.1", "kong.yml"),
        ("weir-user-add.1", "\\-\\-role"),
    ] {
        assert!(page(name).contains(text), "{name}");
    }
}

#[test]
fn completions_know_commands_and_flags() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let output = weir(folder.path(), &["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            script.contains("explain") && script.contains("kong-admin"),
            "{shell}"
        );
    }
}

#[test]
fn version_says_whether_the_build_is_guided() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = weir(folder.path(), &["--version"]);
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        version,
        format!("weir {} (plain build)\n", env!("CARGO_PKG_VERSION"))
    );
}
