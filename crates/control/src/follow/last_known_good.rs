//! The last known good documents on disk, from which a gateway starts while its store is away.
//!
//! The file's first line says of what revision it is and how many documents follow; then comes a line for each. It is
//! replaced by a rename, so it is whole at any moment, and readable by its owner alone: documents hold secrets. Where
//! the store is sealed, so are they. A file that another version of Weir has left is read as well ([`super::skew`]).

use super::Documents;
use super::background::lower_priority;
use super::skew::Head;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use weir_store::seal::SealingKeys;
use weir_store::{Key, Revision};

/// The file's name in the folder of data.
pub const FILE_NAME: &str = "last-known-good";
/// The form of the file.
const FORM: u64 = 1;
/// From the end of one writing to the begin of the next, at least and at most.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// A writing may take one part of the time in so many: with many documents it takes long, and every change asks for one.
const SHARE: u32 = 20;
/// From a writing that failed to the begin of the next.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A file for documents.
#[derive(Debug, Clone)]
pub struct LastKnownGoodFile {
    /// Its path.
    pub path: PathBuf,
    /// The keys that seal what is in it; `None`: nothing does.
    pub keys: Option<SealingKeys>,
}

/// Documents and the revision that they are of.
type LastKnownGood = (Vec<(Key, Arc<[u8]>)>, Revision);

/// Writes, off every other thread, the newest of what it is given.
#[derive(Debug)]
pub struct LastKnownGoodWriter {
    newest: SyncSender<(Documents, Revision)>,
    /// Whether it did not take what it was given last.
    is_write_pending: Arc<AtomicBool>,
}

impl LastKnownGoodWriter {
    /// Writes into this file. `ask` is called when it needs the newest documents again, `on_written` with each revision that
    /// was written.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        file: LastKnownGoodFile,
        ask: impl Fn() + Send + 'static,
        on_written: impl Fn(Revision) + Send + 'static,
    ) -> io::Result<Self> {
        let (newest, given) = sync_channel(1);
        let is_write_pending = Arc::new(AtomicBool::new(false));
        let write_pending = Arc::clone(&is_write_pending);
        std::thread::Builder::new()
            .name("weir-keep".to_owned())
            .spawn(move || keep(&file, &given, &write_pending, &ask, &on_written))?;
        Ok(Self {
            newest,
            is_write_pending,
        })
    }

    /// Hands it documents to write. While it has some that it has not begun to write it takes no others, and asks
    /// later.
    pub fn give(&self, documents: &Documents, revision: Revision) {
        let is_busy = self.is_write_pending.load(Ordering::Acquire)
            || self.newest.try_send((documents.clone(), revision)).is_err();
        if is_busy {
            self.is_write_pending.store(true, Ordering::Release);
        }
    }
}

fn keep(
    file: &LastKnownGoodFile,
    given: &Receiver<(Documents, Revision)>,
    is_write_pending: &AtomicBool,
    ask: &impl Fn(),
    on_written: &impl Fn(Revision),
) {
    lower_priority();
    while let Ok((documents, revision)) = given.recv() {
        let begun = Instant::now();
        let pause =
            write(file, &documents, revision, is_write_pending, on_written).max(rest_after(begun.elapsed()));
        // They may be many, and older ones by now.
        drop(documents);
        std::thread::sleep(pause);
        if is_write_pending.swap(false, Ordering::AcqRel) {
            ask();
        }
    }
}

/// How long there is no other writing after one that took so long.
fn rest_after(took: Duration) -> Duration {
    (took * (SHARE - 1)).clamp(PAUSE, MAX_PAUSE)
}

/// Writes documents, and says how long there is no other writing at least.
fn write(
    file: &LastKnownGoodFile,
    documents: &Documents,
    revision: Revision,
    is_write_pending: &AtomicBool,
    on_written: &impl Fn(Revision),
) -> Duration {
    match file.write(documents, revision) {
        Ok(()) => {
            tracing::debug!(%revision, "the last known good configuration is written");
            on_written(revision);
            PAUSE
        }
        Err(error) => {
            tracing::error!(%error, file = %file.path.display(), "the last known good configuration cannot be written; retrying");
            is_write_pending.store(true, Ordering::Release);
            PAUSE_AFTER_FAILURE
        }
    }
}

impl LastKnownGoodFile {
    fn write(&self, documents: &Documents, revision: Revision) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)?;
        let mut out = BufWriter::new(file);
        let head = json!({
            "weir": FORM,
            "head": Head::own(),
            "revision": revision.0,
            "documents": documents.len(),
            "hash": documents.hash(),
        });
        writeln!(out, "{head}")?;
        for (key, value) in documents.iter() {
            writeln!(out, "{}", self.line(key, value)?)?;
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }

    /// A document on one line.
    fn line(&self, key: &Key, value: &[u8]) -> io::Result<Value> {
        match (&self.keys, std::str::from_utf8(value)) {
            (None, Ok(text)) => Ok(json!([key.as_str(), text])),
            (None, Err(_)) => Ok(json!([key.as_str(), null, STANDARD.encode(value)])),
            (Some(keys), _) => {
                let sealed = keys.seal(key, value).map_err(io::Error::other)?;
                Ok(json!([key.as_str(), null, STANDARD.encode(sealed)]))
            }
        }
    }

    /// Reads what was kept; `None`: nothing was.
    ///
    /// # Errors
    /// The file cannot be read, or is not what was written.
    pub fn load(&self) -> io::Result<Option<LastKnownGood>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damaged = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: damaged", self.path.display()),
            )
        };
        let mut lines = BufReader::new(file).lines();
        let head: Value = serde_json::from_str(&lines.next().ok_or_else(damaged)??)?;
        let number = |field: &str| head.get(field).and_then(Value::as_u64).ok_or_else(damaged);
        let fields = head.get("head").cloned().unwrap_or_else(|| json!({}));
        let fields: Head = serde_json::from_value(fields)?;
        let refused = |reason| io::Error::other(format!("{}: {reason}", self.path.display()));
        fields.check("the file").map_err(refused)?;
        let form = number("weir")?;
        if form != FORM {
            return Err(refused(format!(
                "it has format {form}, and this Weir reads format {FORM}: it will be rewritten when the store is reachable"
            )));
        }
        let mut documents = Documents::default();
        for line in lines {
            let (key, value) = self.read(&line?).ok_or_else(damaged)?;
            documents.apply(&key, Some(value));
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

    fn read(&self, line: &str) -> Option<(Key, Arc<[u8]>)> {
        let line: Vec<Value> = serde_json::from_str(line).ok()?;
        let key = Key::new(line.first()?.as_str()?).ok()?;
        // What comes behind is a newer version's.
        let value: Arc<[u8]> = match (line.get(1)?, line.get(2)) {
            (Value::String(text), None | Some(Value::Null)) => text.clone().into_bytes().into(),
            (Value::Null, Some(Value::String(bytes))) => STANDARD.decode(bytes).ok()?.into(),
            _ => return None,
        };
        let value = match &self.keys {
            Some(keys) => keys.open(&key, value),
            None => value,
        };
        Some((key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_takes_a_twentieth_of_the_time_at_most_but_for_very_long_ones() {
        let rest = |ms| rest_after(Duration::from_millis(ms)).as_millis();
        let cases = [
            (0, 1_000),
            (50, 1_000),
            (100, 1_900),
            (3_000, 57_000),
            (10_000, 60_000),
        ];
        for (took, expected) in cases {
            assert_eq!(rest(took), expected, "{took} ms");
        }
    }

    #[test]
    fn a_failed_writing_is_owed() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let file = LastKnownGoodFile {
            path: missing.join(FILE_NAME),
            keys: None,
        };
        let (is_write_pending, statuses) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
        let note = |revision| statuses.lock().expect("whole").push(revision);
        let documents = Documents::default();
        let pause = write(&file, &documents, Revision(7), &is_write_pending, &note);
        assert_eq!(pause, PAUSE_AFTER_FAILURE);
        assert!(
            is_write_pending.swap(false, Ordering::AcqRel),
            "it is tried again"
        );
        std::fs::create_dir(missing).expect("a folder");
        let pause = write(&file, &documents, Revision(8), &is_write_pending, &note);
        assert_eq!((pause, is_write_pending.load(Ordering::Acquire)), (PAUSE, false));
        assert_eq!(statuses.into_inner().expect("whole"), [Revision(8)]);
    }

    /// Files as the first version wrote them, as this one does, and as a later one may.
    #[test]
    fn files_of_older_and_newer_versions_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = LastKnownGoodFile {
            path: folder.path().join(FILE_NAME),
            keys: None,
        };
        let mut documents = Documents::default();
        documents.apply(&Key::new("native/a").expect("a key"), Some(b"1"[..].into()));
        let hash = documents.hash();
        let head =
            |more: &str| format!("{{\"weir\":1,{more}\"revision\":7,\"documents\":1,\"hash\":\"{hash}\"}}\n");
        for (text, refusal) in [
            (head("") + "[\"native/a\",\"1\"]\n", None),
            (
                head("\"head\":{\"version\":2,\"program\":\"0.2.0\",\"requires\":[],\"a\":1},\"b\":[2],")
                    + "[\"native/a\",\"1\",null,{\"owner\":\"x\"}]\n",
                None,
            ),
            (
                head("\"head\":{\"version\":2,\"program\":\"0.2.0\",\"requires\":[\"zstd\"]},"),
                Some("requires 'zstd'"),
            ),
            (
                head("").replace("\"weir\":1", "\"weir\":2"),
                Some("it has format 2, and this Weir reads format 1"),
            ),
        ] {
            std::fs::write(&file.path, &text).expect("written");
            match (file.load(), refusal) {
                (Ok(Some((kept, revision))), None) => {
                    assert_eq!((kept.len(), revision), (1, Revision(7)), "{text}");
                }
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
                (outcome, _) => panic!("{text}: {outcome:?}"),
            }
        }
        file.write(&documents, Revision(8)).expect("written");
        let text = std::fs::read_to_string(&file.path).expect("text");
        assert!(
            text.starts_with("{\"weir\":1,"),
            "older versions look for it: {text}"
        );
    }

    #[test]
    fn what_was_written_is_read_and_damage_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = |text: String| SealingKeys::parse(&text).expect("a key");
        let sealing = keys(SealingKeys::generate().expect("random"));
        let other = keys(SealingKeys::generate().expect("random"));
        let mut documents = Documents::default();
        for (key, value) in [
            ("native/default/routes/1", &b"{\"a\":\"\xc3\xa9\n\"}"[..]),
            ("native/routes/2", b""),
            ("native/routes/3", b"\xff"),
        ] {
            documents.apply(&Key::new(key).expect("a key"), Some(value.into()));
        }
        for keys in [None, Some(sealing)] {
            let file = LastKnownGoodFile {
                path: folder.path().join(format!("{}{FILE_NAME}", keys.is_some())),
                keys,
            };
            assert!(file.load().expect("no error").is_none());
            file.write(&documents, Revision(7)).expect("written");
            let (kept, revision) = file.load().expect("readable").expect("there");
            assert_eq!(revision, Revision(7));
            assert!(kept.iter().map(|(key, value)| (key, value)).eq(documents.iter()));
            let text = std::fs::read_to_string(&file.path).expect("text");
            assert_eq!(text.contains("\\\"a\\\""), file.keys.is_none(), "{text}");
            if file.keys.is_some() {
                let keys = Some(other.clone());
                assert!(LastKnownGoodFile { keys, ..file.clone() }.load().is_err());
            }
            for damaged in [
                &text[..text.len() - 20],
                "",
                "{}",
                &text.replace("routes/2", "routes/4"),
            ] {
                std::fs::write(&file.path, damaged).expect("written");
                assert!(file.load().is_err(), "{damaged}");
            }
        }
    }
}
