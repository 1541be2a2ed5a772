//! The commands of `docs/apis.md` and `docs/analytics.md`, run as they stand there. Calls that are refused, and commands with another
//! exit status than 0, fail the test. Addresses of the pages become those that the processes have.

use crate::support::upstream;
use crate::weir::Weir;
use std::path::Path;
use std::process::Command;

const APIS: &str = include_str!("../../../../docs/apis.md");
const ANALYTICS: &str = include_str!("../../../../docs/analytics.md");

/// Fails for a call that is refused. What reads waits for what was done before.
const CURL: &str = r#"
set -eu -o pipefail
curl() {
  case "$*" in
    *-X*|*-d*|*--data*) command curl -sS --fail-with-body "$@" ;;
    *) command curl -sS --fail-with-body --retry 20 --retry-all-errors --retry-delay 1 "$@" ;;
  esac
  echo
}
"#;

/// The commands of the blocks of a page that hold one of these texts, without those that start a process.
fn commands(page: &str, wanted: &[&str]) -> String {
    let blocks = page
        .split("```sh\n")
        .skip(1)
        .filter_map(|it| it.split("```").next());
    let blocks = blocks.filter(|it| wanted.iter().any(|text| it.contains(text)));
    let mut out = String::new();
    let mut is_start = false;
    for line in blocks.flat_map(str::lines) {
        is_start |= line.starts_with("weir run ");
        if !is_start {
            out.push_str(line);
            out.push('\n');
        }
        is_start &= line.ends_with('\\');
    }
    out
}

struct Pages {
    weir: Weir,
    addresses: Vec<(&'static str, String)>,
    folder: tempfile::TempDir,
}

impl Pages {
    fn start() -> Option<Self> {
        let _curl = crate::tools::program("curl")?;
        let folder = tempfile::tempdir().expect("a folder");
        let flags = [
            "--data",
            "data",
            "--console",
            "127.0.0.1:0",
            "--environment",
            "test",
        ];
        let weir = Weir::start(folder.path(), &flags);
        let server = upstream("pets").to_string();
        let addresses = vec![
            ("127.0.0.1:8002", weir.console()),
            ("localhost:8002", weir.console()),
            ("127.0.0.1:8000", weir.proxy()),
            ("127.0.0.1:9000", server),
        ];
        Some(Self {
            weir,
            addresses,
            folder,
        })
    }

    /// Runs commands in one shell.
    fn run(&self, commands: &str) {
        let mut text = format!("{CURL}{commands}");
        for (page, here) in &self.addresses {
            text = text.replace(page, here);
        }
        let binary = Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a folder");
        let path = format!(
            "{}:{}",
            binary.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let done = Command::new("bash")
            .args(["-xc", &text])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("WEIR_URL", format!("http://{}", self.weir.console()))
            .output()
            .expect("bash runs");
        let (out, log) = (
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr),
        );
        assert!(done.status.success(), "{commands}\n{out}\n{log}");
    }
}

#[test]
fn the_page_about_apis_is_true() {
    let Some(pages) = Pages::start() else { return };
    let all = commands(APIS, &["curl ", "weir api "]);
    assert!(all.lines().count() > 60, "{all}");
    pages.run(&all);
}

#[test]
fn the_page_about_analytics_is_true() {
    let Some(pages) = Pages::start() else { return };
    let all = commands(ANALYTICS, &["localhost:8002"]);
    assert_eq!(all.matches("curl ").count(), 3, "{all}");
    pages.run(&all);
}
