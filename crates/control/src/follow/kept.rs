//! The last known good documents on disk, from which a gateway starts while its store is away.
//!
//! The file's first line says of what revision it is and how many documents follow; then comes a line for each. It is
//! replaced by a rename, so it is whole at any moment, and readable by its owner alone: documents hold secrets.

use super::Documents;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use weir_store::{Key, Revision};

/// The file's name in the folder of data.
pub const FILE_NAME: &str = "last-known-good";
/// The form of the file.
const FORM: u64 = 1;
/// From the end of one writing to the begin of the next.
const PAUSE: Duration = Duration::from_secs(1);

/// Documents and the revision that they are of.
type Kept = (Vec<(Key, Arc<[u8]>)>, Revision);

/// Writes, off every other thread, the newest of what it is given.
#[derive(Debug)]
pub struct Keeper {
    newest: SyncSender<(Documents, Revision)>,
    /// Whether it did not take what it was given last.
    is_owed: Arc<AtomicBool>,
}

impl Keeper {
    /// Writes into this file. `ask` is called when it is to be given the newest again.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(path: PathBuf, ask: impl Fn() + Send + 'static) -> io::Result<Self> {
        let (newest, given) = sync_channel(1);
        let is_owed = Arc::new(AtomicBool::new(false));
        let owed = Arc::clone(&is_owed);
        std::thread::Builder::new()
            .name("weir-keep".to_owned())
            .spawn(move || keep(&path, &given, &owed, &ask))?;
        Ok(Self { newest, is_owed })
    }

    /// Gives it documents to write. While it has some that it has not begun to write it takes no others, and asks
    /// later.
    pub fn give(&self, documents: &Documents, revision: Revision) {
        let is_busy = self.is_owed.load(Ordering::Acquire)
            || self.newest.try_send((documents.clone(), revision)).is_err();
        if is_busy {
            self.is_owed.store(true, Ordering::Release);
        }
    }
}

fn keep(path: &Path, given: &Receiver<(Documents, Revision)>, is_owed: &AtomicBool, ask: &impl Fn()) {
    while let Ok((documents, revision)) = given.recv() {
        match write(path, &documents, revision) {
            Ok(()) => tracing::debug!(%revision, "the configuration is kept as the last known good one"),
            Err(error) => {
                tracing::error!(%error, file = %path.display(), "the last known good configuration cannot be written");
            }
        }
        std::thread::sleep(PAUSE);
        if is_owed.swap(false, Ordering::AcqRel) {
            ask();
        }
    }
}

fn write(path: &Path, documents: &Documents, revision: Revision) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    let mut out = BufWriter::new(file);
    let head = json!({ "weir": FORM, "revision": revision.0, "documents": documents.len(), "hash": documents.hash() });
    writeln!(out, "{head}")?;
    for (key, value) in documents.iter() {
        writeln!(out, "{}", line(key, value))?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// A document on one line. One that is no text is broken anyway, and not kept.
fn line(key: &Key, value: &[u8]) -> Value {
    json!([key.as_str(), String::from_utf8_lossy(value)])
}

/// Reads what was kept; `None`: nothing was.
///
/// # Errors
/// The file cannot be read, or is not what was written.
pub fn load(path: &Path) -> io::Result<Option<Kept>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("{}: damaged", path.display()));
    let mut lines = BufReader::new(file).lines();
    let head: Value = serde_json::from_str(&lines.next().ok_or_else(damaged)??)?;
    let number = |field: &str| head.get(field).and_then(Value::as_u64).ok_or_else(damaged);
    if number("weir")? != FORM {
        return Err(damaged());
    }
    let mut documents = Documents::default();
    for line in lines {
        let (key, value): (String, String) = serde_json::from_str(&line?)?;
        let key = Key::new(&key).map_err(|_| damaged())?;
        documents.apply(&key, Some(value.into_bytes().into()));
    }
    let is_whole = documents.len() as u64 == number("documents")?
        && head.get("hash").and_then(Value::as_str) == Some(documents.hash().as_str());
    if !is_whole {
        return Err(damaged());
    }
    let list = documents
        .iter()
        .map(|(key, value)| (key.clone(), Arc::clone(value)));
    Ok(Some((list.collect(), Revision(number("revision")?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_damage_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE_NAME);
        assert!(load(&path).expect("no error").is_none());
        let mut documents = Documents::default();
        for (key, value) in [
            ("kong/default/routes/1", "{\"a\":\"é\n\"}"),
            ("native/routes/2", ""),
        ] {
            documents.apply(&Key::new(key).expect("a key"), Some(value.as_bytes().into()));
        }
        write(&path, &documents, Revision(7)).expect("written");
        let (kept, revision) = load(&path).expect("readable").expect("there");
        assert_eq!(revision, Revision(7));
        assert!(kept.iter().map(|(key, value)| (key, value)).eq(documents.iter()));
        let text = std::fs::read_to_string(&path).expect("text");
        for damaged in [
            &text[..text.len() - 20],
            "",
            "{}",
            &text.replace("routes/2", "routes/3"),
        ] {
            std::fs::write(&path, damaged).expect("written");
            assert!(load(&path).is_err(), "{damaged}");
        }
    }
}
