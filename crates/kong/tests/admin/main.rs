//! The Admin API, called in-process over a store in memory.
//!
//! `golden/*.txt` are conversations: a line `METHOD /path`, perhaps with headers behind it (`If-Match="1"`), a body on the
//! lines after it (JSON, or a form if the line begins with `form `), and after `--` the answer. Ids that are
//! made up are called `ID1`, `ID2`, … in the order in which they appear, and may be used under these names; times are
//! `TIME`. With `UPDATE_GOLDEN=1` the answers are written again.

mod consistency;
mod conversation;
mod made_up_values;
mod plugins;
mod recorded;
#[path = "../shared/mod.rs"]
mod shared;
mod signer_keys;
mod speed;
mod takeover;
mod vault_credentials;

use conversation::Conversation;
use std::path::PathBuf;

#[tokio::test]
async fn answers_are_those_of_the_original() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/admin/golden");
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut differences = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    for path in files {
        let expected = std::fs::read_to_string(&path).expect("a file");
        let mut conversation = Conversation::open().await;
        let actual = conversation.repeat(&expected).await;
        if is_update {
            std::fs::write(&path, &actual).expect("written");
        } else if actual != expected {
            let pairs = expected.lines().zip(actual.lines());
            let line = pairs.clone().position(|(expected, actual)| expected != actual);
            let line = line.unwrap_or_else(|| pairs.count());
            differences.push(format!(
                "{}:{}\n  expected {}\n  actual   {}",
                path.display(),
                line + 1,
                expected.lines().nth(line).unwrap_or_default(),
                actual.lines().nth(line).unwrap_or_default()
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
