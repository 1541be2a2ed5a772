//! Batches that wait to be delivered: in files, so that they outlive the process, or in memory. Two hours of them; then
//! the oldest are dropped, which the next batch says.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_analytics::batch::Batch;

/// Minutes that are kept.
const MINUTES: u32 = 120;
/// Bytes that are kept.
const MAX_BYTES: usize = 256 << 20;
const SUFFIX: &str = ".batch";

/// A batch that waits.
#[derive(Debug, Clone)]
struct QueuedBatch {
    /// Run and number: batches are delivered in this order.
    id: (u64, u64),
    minutes: (u32, u32),
    length: usize,
    /// Its bytes; with a path, they are in a file.
    bytes: Option<Arc<[u8]>>,
    path: Option<PathBuf>,
}

/// The batches that wait.
#[derive(Debug, Default)]
pub struct Backlog {
    folder: Option<PathBuf>,
    state: Mutex<BacklogState>,
}

#[derive(Debug, Default)]
struct BacklogState {
    waiting: VecDeque<QueuedBatch>,
    /// The first and the last minute of batches that were dropped.
    lost: Option<(u32, u32)>,
    dropped: u64,
}

impl Backlog {
    /// The batches that wait in a folder, which is created if it is missing; without a folder, in memory.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: Option<&Path>) -> io::Result<Self> {
        let backlog = Self {
            folder: folder.map(Path::to_owned),
            state: Mutex::default(),
        };
        let Some(folder) = folder else {
            return Ok(backlog);
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut waiting = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            // Of a process that was killed, there may be half a file under another name.
            if path.extension().is_none_or(|it| it != &SUFFIX[1..]) {
                fs::remove_file(&path)?;
                continue;
            }
            match Batch::decode(&fs::read(&path)?) {
                Ok(batch) => waiting.push(QueuedBatch {
                    id: (batch.run, batch.number),
                    minutes: minutes(&batch),
                    length: fs::metadata(&path)?.len() as usize,
                    bytes: None,
                    path: Some(path),
                }),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "batch of counts dropped: file cannot be read");
                    fs::remove_file(&path)?;
                }
            }
        }
        waiting.sort_by_key(|it| it.id);
        backlog.state().waiting = waiting.into();
        Ok(backlog)
    }

    fn state(&self) -> MutexGuard<'_, BacklogState> {
        // Every change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch. If it cannot be written to a file, it waits in memory.
    pub fn push(&self, batch: &Batch) {
        let bytes = batch.encode();
        let mut waiting = QueuedBatch {
            id: (batch.run, batch.number),
            minutes: minutes(batch),
            length: bytes.len(),
            bytes: None,
            path: None,
        };
        match self.write(waiting.id, &bytes) {
            Ok(path) => waiting.path = path,
            Err(error) => {
                tracing::warn!(%error, "a batch of counts cannot be written to its file and is kept in memory only")
            }
        }
        if waiting.path.is_none() {
            waiting.bytes = Some(bytes.into());
        }
        let mut state = self.state();
        state.waiting.push_back(waiting);
        let oldest = batch.complete.saturating_sub(MINUTES);
        loop {
            let length: usize = state.waiting.iter().map(|it| it.length).sum();
            let is_too_old = |it: &QueuedBatch| it.minutes.1 < oldest;
            match state.waiting.front() {
                Some(first) if is_too_old(first) || length > MAX_BYTES => state.drop_first(),
                _ => break,
            }
        }
    }

    /// Writes a batch to a file under its final name, whole or not at all.
    fn write(&self, (run, number): (u64, u64), bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let path = folder.join(format!("{run:020}-{number:010}{SUFFIX}"));
        let part = path.with_extension("part");
        let mut file = fs::OpenOptions::new();
        let mut file = file
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&part)?;
        io::Write::write_all(&mut file, bytes)?;
        fs::rename(&part, &path)?;
        Ok(Some(path))
    }

    /// The batch that is to be delivered next, with its id; `None`: none waits.
    pub fn first(&self) -> Option<((u64, u64), Vec<u8>)> {
        loop {
            let first = self.state().waiting.front().cloned()?;
            if let Some(bytes) = &first.bytes {
                return Some((first.id, bytes.to_vec()));
            }
            match first.path.as_ref().map(fs::read) {
                Some(Ok(bytes)) => return Some((first.id, bytes)),
                _ => {
                    let mut state = self.state();
                    if state.waiting.front().is_some_and(|it| it.id == first.id) {
                        state.drop_first();
                    }
                }
            }
        }
    }

    /// A batch is delivered.
    pub fn done(&self, id: (u64, u64)) {
        self.remove(id, false);
    }

    /// A batch is thrown away, as it is not taken.
    pub fn give_up(&self, id: (u64, u64)) {
        self.remove(id, true);
    }

    fn remove(&self, id: (u64, u64), is_lost: bool) {
        let mut state = self.state();
        if let Some(place) = state.waiting.iter().position(|it| it.id == id)
            && let Some(waiting) = state.waiting.remove(place)
        {
            if is_lost {
                state.note_lost(waiting.minutes);
            }
            waiting.remove_file();
        }
    }

    /// The minutes of batches that were dropped since the last time.
    pub fn take_lost(&self) -> Option<(u32, u32)> {
        self.state().lost.take()
    }

    /// How many batches were dropped.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// How many batches wait.
    pub fn len(&self) -> usize {
        self.state().waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl BacklogState {
    fn drop_first(&mut self) {
        if let Some(first) = self.waiting.pop_front() {
            self.note_lost(first.minutes);
            first.remove_file();
        }
    }

    fn note_lost(&mut self, (first, last): (u32, u32)) {
        self.dropped += 1;
        let lost = self.lost.get_or_insert((first, last));
        *lost = (lost.0.min(first), lost.1.max(last));
    }
}

impl QueuedBatch {
    fn remove_file(&self) {
        if let Some(path) = &self.path
            && let Err(error) = fs::remove_file(path)
        {
            // It would come again after a start, and count once all the same.
            tracing::debug!(path = %path.display(), %error, "the file of a delivered batch cannot be removed");
        }
    }
}

/// The first and the last minute in a batch.
fn minutes(batch: &Batch) -> (u32, u32) {
    let all = || batch.rows.iter().map(|row| row.minute);
    let last = all().max().unwrap_or(batch.complete).max(batch.complete);
    (all().min().unwrap_or(batch.complete), last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(run: u64, number: u64, minute: u32) -> Batch {
        Batch {
            gateway: "g".to_owned(),
            run,
            number,
            complete: minute,
            ..Batch::default()
        }
    }

    fn ids(backlog: &Backlog) -> Vec<(u64, u64)> {
        let mut ids = Vec::new();
        while let Some((id, bytes)) = backlog.first() {
            let batch = Batch::decode(&bytes).expect("a batch");
            assert_eq!((batch.run, batch.number), id);
            backlog.done(id);
            ids.push(id);
        }
        ids
    }

    #[test]
    fn batches_outlive_the_process_in_their_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("backlog");
        let backlog = Backlog::open(Some(&path)).expect("opened");
        for number in [1, 2, 10] {
            backlog.push(&batch(7, number, 100));
        }
        backlog.push(&batch(8, 1, 101));
        drop(backlog);
        fs::write(path.join("00000000000000000009-0000000001.part"), b"half").expect("written");
        fs::write(path.join("00000000000000000009-0000000002.batch"), b"damaged").expect("written");
        let backlog = Backlog::open(Some(&path)).expect("opened");
        assert_eq!(ids(&backlog), [(7, 1), (7, 2), (7, 10), (8, 1)]);
        assert_eq!(fs::read_dir(&path).expect("a folder").count(), 0);
    }

    /// A batch every ten seconds, in the middle of which the gateway starts again. The machine ends in the midst of the last:
    /// its file has its name, but not all bytes, or none.
    #[test]
    fn half_an_hour_waits_and_nothing_is_lost() {
        const BATCHES: u64 = 30 * 6;
        let folder = tempfile::tempdir().expect("a folder");
        let mut expected = Vec::new();
        for run in [1, 2] {
            let backlog = Backlog::open(Some(folder.path())).expect("opened");
            for number in 1..=BATCHES / 2 {
                let ten_seconds = (run - 1) * BATCHES / 2 + number;
                backlog.push(&batch(run, number, 1_000 + (ten_seconds / 6) as u32));
                expected.push((run, number));
            }
        }
        let last = batch(2, BATCHES / 2 + 1, 1_031).encode();
        for length in 0..last.len() {
            let name = format!("{:020}-{:010}{SUFFIX}", 2, BATCHES / 2 + 1);
            fs::write(folder.path().join(name), &last[..length]).expect("written");
            let backlog = Backlog::open(Some(folder.path())).expect("opened");
            assert_eq!(backlog.len(), expected.len(), "{length} bytes of the last one");
        }
        let backlog = Backlog::open(Some(folder.path())).expect("opened");
        assert_eq!(ids(&backlog), expected);
        assert_eq!((backlog.take_lost(), backlog.dropped()), (None, 0));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn the_oldest_are_dropped_after_two_hours() {
        let folder = tempfile::tempdir().expect("a folder");
        for folder in [None, Some(folder.path())] {
            let backlog = Backlog::open(folder).expect("opened");
            for minute in 0..200 {
                backlog.push(&batch(1, u64::from(minute) + 1, 1_000 + minute));
            }
            assert_eq!(backlog.len(), 121);
            assert_eq!(backlog.take_lost(), Some((1_000, 1_078)));
            assert_eq!((backlog.take_lost(), backlog.dropped()), (None, 79));
            backlog.give_up((1, 200));
            assert_eq!(backlog.take_lost(), Some((1_199, 1_199)));
            assert_eq!(ids(&backlog).len(), 120);
        }
    }
}
