//! The files of a cache: `AB/ABCD…` by key, below a folder that one process holds at a time.

use super::index::IndexEntry;
use data_encoding::HEXLOWER;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use weir_plugin::DiskCacheKey;

/// The first bytes of files; the digit is that of their form.
const MAGIC: &[u8; 8] = b"weirshf1";
/// Magic, key, length and checksum.
const HEAD: usize = 8 + 32 + 8 + 4;
/// The longest file that is read.
const MAX_FILE: u64 = 4 << 30;
/// A response may be for one caller alone, so no other user of the machine may read it.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// The ending of files that are being written.
const UNFINISHED: &str = "new";

/// The files.
pub struct Files {
    folder: PathBuf,
    /// Locked while the folder is held.
    lock: Option<File>,
}

impl Files {
    /// Those below a folder, of which nothing is touched yet.
    pub fn new(folder: &str) -> Self {
        Self {
            folder: PathBuf::from(folder),
            lock: None,
        }
    }

    /// Their folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder is held.
    pub fn is_held(&self) -> bool {
        self.lock.is_some()
    }

    /// Takes the folder for this process, if need be.
    ///
    /// # Errors
    /// When another process holds it, or it cannot be made.
    pub fn hold(&mut self) -> io::Result<()> {
        if self.lock.is_none() {
            make_folder(&self.folder)?;
            let lock = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(FILE_MODE)
                .open(self.folder.join("lock"))?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            self.lock = Some(lock);
        }
        Ok(())
    }

    fn part(&self, part: u8) -> PathBuf {
        self.folder.join(format!("{part:02x}"))
    }

    fn path(&self, key: &DiskCacheKey) -> PathBuf {
        self.part(key[0]).join(HEXLOWER.encode(key))
    }

    /// The files of one part. Broken files are removed.
    pub fn list(&self, part: u8) -> Vec<IndexEntry> {
        let Ok(entries) = fs::read_dir(self.part(part)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(key_of).filter(|key| key[0] == part);
            let Some(key) = key else {
                if Path::new(&name).extension().is_some_and(|it| it == UNFINISHED) {
                    drop(fs::remove_file(entry.path()));
                }
                continue;
            };
            let Ok(facts) = entry.metadata() else { continue };
            let written = facts
                .modified()
                .ok()
                .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            found.push(IndexEntry {
                key,
                bytes: facts.len(),
                written: written.map_or(0, |since| since.as_secs()),
            });
        }
        found
    }

    /// The bytes under a key; `None`: no file, or a broken one, which is removed.
    pub fn read(&self, key: &DiskCacheKey) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let mut whole = Vec::new();
        let length = file.metadata().ok()?.len();
        let is_read = length <= MAX_FILE && file.read_to_end(&mut whole).is_ok();
        if !is_read || !is_good(key, &whole) {
            drop(fs::remove_file(path));
            return None;
        }
        whole.drain(..HEAD);
        Some(whole)
    }

    /// Keeps something under a key.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn write(&self, key: &DiskCacheKey, data: &[u8]) -> io::Result<()> {
        let path = self.path(key);
        let unfinished = path.with_extension(UNFINISHED);
        let written = self.write_at(&unfinished, key, data);
        let placed = written.and_then(|()| fs::rename(&unfinished, &path));
        if placed.is_err() {
            drop(fs::remove_file(&unfinished));
        }
        placed
    }

    fn write_at(&self, path: &Path, key: &DiskCacheKey, data: &[u8]) -> io::Result<()> {
        let create = || {
            OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(FILE_MODE)
                .open(path)
        };
        let mut file = match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(&self.part(key[0]))?;
                create()?
            }
            created => created?,
        };
        file.write_all(&head(key, data))?;
        file.write_all(data)
    }

    /// Removes files, as far as they exist.
    pub fn remove_all(&self, keys: &[DiskCacheKey]) {
        for key in keys {
            drop(fs::remove_file(self.path(key)));
        }
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

fn head(key: &DiskCacheKey, data: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(key);
    head.extend_from_slice(&(data.len() as u64).to_le_bytes());
    head.extend_from_slice(&crc32fast::hash(data).to_le_bytes());
    head
}

/// Whether a file is what was written.
fn is_good(key: &DiskCacheKey, whole: &[u8]) -> bool {
    whole
        .split_at_checked(HEAD)
        .is_some_and(|(found, data)| found == head(key, data))
}

/// The key that a file is named by.
fn key_of(name: &str) -> Option<DiskCacheKey> {
    HEXLOWER.decode(name.as_bytes()).ok()?.try_into().ok()
}
