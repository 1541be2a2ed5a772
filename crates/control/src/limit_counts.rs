//! The file in which counts of limits outlive a restart. It is written every few seconds and at the end; what is counted
//! between the last time and a crash is lost. What is in it only the plugins know.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_flow::hash_bytes;
use weir_flow::rate_limit::{secret, use_secret};
use weir_plugin::{ConsumerCount, PersistentCounters, Registry, WindowUsage, system_clock};

/// The first bytes of the file: what it is, and the version of its form.
const MAGIC: &[u8; 8] = b"weircnt1";
/// Its name in the folder of `--data`.
pub const FILE_NAME: &str = "limit-counts";
/// How often it is written, if anything was counted since.
const EVERY: Duration = Duration::from_secs(2);
/// Writing takes at most one part of so many of the time.
const REST: u32 = 50;
/// No file is larger: two million counters and their names.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The plugin that keeps the limits of plans.
const LIMITS: &str = "rate-limit";

/// Looks up the counts of a consumer in the limits of a process.
pub type CountLookup = Arc<dyn Fn(&ConsumerCount<'_>) -> Option<WindowUsage> + Send + Sync>;

/// Counts of a plugin, as they are in the file.
type Section = (String, Vec<u8>);

/// The file, and what is kept in it.
pub struct LimitCounts {
    file: Option<PathBuf>,
    /// The content of the file, until there are plugins to take it.
    found: Mutex<Vec<Section>>,
    writer: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
    /// The counts of `rate-limit`, once this process serves calls.
    limits: Arc<OnceLock<Arc<dyn PersistentCounters>>>,
}

impl LimitCounts {
    /// Reads a file; `None`: nothing is kept. Must be called before any limit is built: keys are hashed as they were.
    pub fn open(file: Option<PathBuf>) -> Self {
        let found = file.as_deref().map_or_else(Vec::new, |file| match read(file) {
            Ok(Some((known, found))) if use_secret(known) => found,
            Ok(None) => Vec::new(),
            Ok(Some(_)) => unreadable(file, "its keys are hashed with another secret"),
            Err(error) => unreadable(file, &error.to_string()),
        });
        Self {
            file,
            found: Mutex::new(found),
            writer: Mutex::default(),
            limits: Arc::default(),
        }
    }

    /// A lookup of a consumer's counts in the limits of this process.
    pub fn lookup(&self) -> CountLookup {
        let limits = Arc::clone(&self.limits);
        Arc::new(move |of| limits.get()?.counted(of, system_clock()))
    }

    /// Goes on with the counts of these plugins, and keeps them from now on.
    pub fn keep(&self, registry: &Registry) {
        let kept: Vec<(&'static str, Arc<dyn PersistentCounters>)> = registry.persistent_counters().collect();
        if let Some((_, limits)) = kept.iter().find(|(name, _)| *name == LIMITS) {
            // The registry of a process is made once.
            let _is_first = self.limits.set(Arc::clone(limits));
        }
        let Some(file) = self.file.clone() else { return };
        let found = std::mem::take(&mut *lock(&self.found));
        for (name, bytes) in found {
            let Some((_, counts)) = kept.iter().find(|(known, _)| *known == name) else {
                continue;
            };
            if let Err(error) = counts.import(&bytes, system_clock()) {
                tracing::warn!(
                    plugin = name,
                    error,
                    "counts from before the restart cannot be read; they start at zero"
                );
            }
        }
        let (stop, stopped) = channel::<()>();
        let writing = move || {
            let (mut pause, mut last) = (EVERY, None);
            loop {
                let is_over = stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout);
                let began = Instant::now();
                match write(&file, &kept, last) {
                    Ok(written) => last = Some(written),
                    Err(error) => {
                        tracing::warn!(file = %file.display(), %error, "the counts of limits cannot be written");
                    }
                }
                if is_over {
                    return;
                }
                pause = EVERY.max(began.elapsed() * REST);
            }
        };
        let spawned = std::thread::Builder::new()
            .name("limit-counts".into())
            .spawn(writing);
        match spawned {
            Ok(thread) => *lock(&self.writer) = Some((stop, thread)),
            Err(error) => tracing::warn!(%error, "the task that writes the counts of limits has failed"),
        }
    }

    /// Writes the counts for the last time.
    pub fn finish(&self) {
        let Some((stop, thread)) = lock(&self.writer).take() else {
            return;
        };
        drop(stop);
        // It logs what goes wrong by itself.
        let _ended = thread.join();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unreadable(file: &Path, reason: &str) -> Vec<Section> {
    tracing::warn!(file = %file.display(), reason, "stored counts of limits cannot be read; they start at zero");
    Vec::new()
}

fn invalid(reason: &'static str) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, reason)
}

/// The secret of keys, and the counts; `None`: there is no file yet.
fn read(file: &Path) -> std::io::Result<Option<([u64; 2], Vec<Section>)>> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    opened.take(MOST_BYTES).read_to_end(&mut bytes)?;
    decode(&bytes).map(Some)
}

fn decode(bytes: &[u8]) -> std::io::Result<([u64; 2], Vec<Section>)> {
    let cut = || invalid("it is incomplete");
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or_else(cut)?;
    if u64::from_le_bytes(*sum) != hash_bytes(body) {
        return Err(cut());
    }
    let mut rest = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| invalid("it is not a file of counts"))?;
    let number = |rest: &mut &[u8]| {
        let (number, left) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
        *rest = left;
        std::io::Result::Ok(u64::from_le_bytes(*number))
    };
    let secret = [number(&mut rest)?, number(&mut rest)?];
    let mut sections = Vec::new();
    while !rest.is_empty() {
        let mut part = || -> std::io::Result<Vec<u8>> {
            let length = usize::try_from(number(&mut rest)?).map_err(|_| cut())?;
            let (part, left) = rest.split_at_checked(length).ok_or_else(cut)?;
            rest = left;
            Ok(part.to_vec())
        };
        let name = String::from_utf8(part()?).map_err(|_| cut())?;
        sections.push((name, part()?));
    }
    Ok((secret, sections))
}

fn encode(secret: [u64; 2], sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for number in secret {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for (name, bytes) in sections {
        for part in [name.as_bytes(), bytes] {
            out.extend_from_slice(&(part.len() as u64).to_le_bytes());
            out.extend_from_slice(part);
        }
    }
    let sum = hash_bytes(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// Writes the file beside its place and moves it there, so that it is always whole. Other users may not read it. What was
/// written `last` is not written again; gives what is in the file now, as its hash.
fn write(
    file: &Path,
    kept: &[(&'static str, Arc<dyn PersistentCounters>)],
    last: Option<u64>,
) -> std::io::Result<u64> {
    let now_ms = system_clock();
    let sections = kept.iter().map(|(name, counts)| (*name, counts.export(now_ms)));
    let sections: Vec<_> = sections.filter(|(_, bytes)| !bytes.is_empty()).collect();
    let bytes = encode(secret(), &sections);
    let hash = hash_bytes(&bytes);
    if last == Some(hash) {
        return Ok(hash);
    }
    let beside = file.with_extension("new");
    let mut options = OpenOptions::new();
    let mut written = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    written.write_all(&bytes)?;
    std::fs::rename(&beside, file)?;
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_they_were_written_or_not_at_all() {
        let sections = [("rate-limit", vec![1, 2, 3]), ("throttle", Vec::new())];
        let bytes = encode([7, 8], &sections);
        let (secret, read) = decode(&bytes).expect("its own bytes");
        assert_eq!(secret, [7, 8]);
        let wanted = sections.map(|(name, bytes)| (name.to_owned(), bytes));
        assert_eq!(read, wanted);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        for place in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1;
            assert!(decode(&flipped).is_err(), "byte {place}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("counts");
        assert!(read(&file).expect("no error").is_none());
        let written = write(&file, &[], None).expect("written");
        let (_, sections) = read(&file).expect("read").expect("there");
        assert!(sections.is_empty());
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().expect("there"));
        assert_eq!(mode & 0o777, 0o600);
        // Only what has changed is written again.
        std::fs::write(&file, "as it was left").expect("written");
        assert_eq!(write(&file, &[], Some(written)).expect("written"), written);
        assert!(read(&file).is_err(), "it was left alone");
        assert_eq!(write(&file, &[], Some(written + 1)).expect("written"), written);
        assert!(read(&file).is_ok());
    }
}
