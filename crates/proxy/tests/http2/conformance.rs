//! What h2spec, a suite of others, asks of a server of HTTP/2: the rules of RFC 9113 and of HPACK, case by case.

use crate::support::{TestGateway, Upstream, answer};
use std::path::Path;
use std::process::Command;

#[test]
fn every_case_of_h2spec_passes() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = std::iter::once(tools)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join("h2spec"))
        .find(|file| file.is_file())
    else {
        let message = "h2spec is not installed; `make deps` installs it";
        assert!(std::env::var_os("WEIR_REQUIRE_TOOLS").is_none(), "{message}");
        return eprintln!("not tested: {message}");
    };
    let upstream = Upstream::bind();
    let gateway = TestGateway::to(upstream.address);
    // Some cases need a body to hold back.
    upstream.serve(|_| answer("body ".repeat(100)));
    let mut suite = Command::new(program);
    suite.args(["--strict", "--host", "127.0.0.1", "--timeout", "5", "--port"]);
    suite.arg(gateway.address.port().to_string());
    if crate::OVER_TLS {
        suite.args(["--tls", "--insecure"]);
    }
    let output = suite.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    let cases = report.lines().find(|line| line.contains(" tests, ")).unwrap();
    assert!(cases.contains(" 0 skipped, 0 failed"), "{cases}");
}
