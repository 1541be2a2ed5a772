//! `weir convert`.

use super::{APISIX, KONG, assert_says, folder, weir};

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
    let output = weir(folder.path(), &["convert", "a.yaml", "--to", "kong"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("invalid value 'kong' for '--to <TO>'") && stderr.contains("weir"),
        "{stderr}"
    );
}
