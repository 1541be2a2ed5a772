//! A store whose values are encrypted where they lie: keys, tokens and passwords are in documents, and whoever copies
//! the store's disk, or may read the etcd, is not to have them.
//!
//! A sealed value is [`MAGIC`], which key sealed it (4 bytes), a nonce (12 bytes), and the value encrypted with
//! AES-256-GCM together with its tag (16 bytes). The document's key is authenticated with it, so that a sealed value
//! cannot be moved to another document. Values in the history are sealed likewise.
//!
//! **What it does not do**: names of documents, authors, notes and times are readable. A value that is not sealed is
//! handed on as it is, so that a store can be sealed from now on: who may write to the store can write what is not
//! sealed. A value that none of the keys opens is handed on as it is too; its door finds it broken, and the others
//! go on.

use crate::document::{Change, Document, Key, Recorded, Revision, Transaction};
use crate::store::{Changes, CommitError, Store, StoreError, Watch, WatchError};
use async_trait::async_trait;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// What a sealed value begins with. No text does.
pub const MAGIC: &[u8] = b"\0weir-sealed-1\0";
/// The length of a key.
const KEY_LENGTH: usize = 32;
const NAME_LENGTH: usize = 4;

/// The keys that open values; the last of them seals new ones.
#[derive(Clone)]
pub struct SealingKeys(Arc<Vec<SealingKey>>);

struct SealingKey {
    /// By which a sealed value tells which key it needs: the start of the key's SHA-256.
    name: [u8; NAME_LENGTH],
    key: LessSafeKey,
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SealingKeys({})", self.0.len())
    }
}

/// Keys that cannot be used. It tells nothing of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("{0}")]
    File(String),
    /// It is no list of keys.
    #[error("line {0} is no key: 32 bytes in base64, one key a line, the newest last")]
    NoKey(usize),
    /// There is none.
    #[error("there is no key in it")]
    Empty,
    /// The system gives no random numbers.
    #[error("the system has no random numbers")]
    NoRandom,
}

impl SealingKeys {
    /// The keys of a text, such as an environment variable: each 32 bytes in base64, separated by line breaks, spaces
    /// or commas, the newest last. Lines that begin with `#` are for people.
    ///
    /// # Errors
    /// A part of it is no key, or there is none.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with('#') {
                continue;
            }
            let words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
            for word in words {
                keys.push(SealingKey::parse(word).ok_or(KeyError::NoKey(number + 1))?);
            }
        }
        match keys.is_empty() {
            true => Err(KeyError::Empty),
            false => Ok(Self(Arc::new(keys))),
        }
    }

    /// The keys of a file.
    ///
    /// # Errors
    /// It cannot be read, or holds none.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = fs::read_to_string(path);
        Self::parse(&text.map_err(|error| KeyError::File(format!("{}: {error}", path.display())))?)
    }

    /// The keys of a file, which is made with one new key, readable for its owner only, where it is missing.
    ///
    /// # Errors
    /// It cannot be read or made, or holds no key.
    pub fn read_or_create(path: &Path) -> Result<Self, KeyError> {
        let failed = |error: std::io::Error| KeyError::File(format!("{}: {error}", path.display()));
        if path.exists() {
            return Self::read(path);
        }
        // Another process may do the same: the file comes whole, and to the first of them.
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .map_err(failed)?;
        let text = format!("{}\n", Self::generate()?);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let linked = written.and_then(|()| fs::hard_link(&draft, path));
        fs::remove_file(&draft).map_err(failed)?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(error)),
            _ => Self::read(path),
        }
    }

    /// A new key, as it is written in a file or a variable.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn generate() -> Result<String, KeyError> {
        let mut bytes = [0; KEY_LENGTH];
        rand::fill(&mut bytes).map_err(|_| KeyError::NoRandom)?;
        Ok(STANDARD.encode(bytes))
    }

    /// Seals the value of a document with the newest key.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn seal(&self, key: &Key, value: &[u8]) -> Result<Arc<[u8]>, StoreError> {
        let failed = || StoreError::Failed("a value cannot be encrypted".into());
        let sealing = self.0.last().ok_or_else(failed)?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| failed())?;
        let mut text = value.to_vec();
        sealing
            .key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound_to(key), &mut text)
            .map_err(|_| failed())?;
        Ok([MAGIC, &sealing.name, &nonce, &text].concat().into())
    }

    /// Opens a value, or hands it on as it is.
    pub fn open(&self, key: &Key, value: Arc<[u8]>) -> Arc<[u8]> {
        let Some(sealed) = value.strip_prefix(MAGIC) else {
            return value;
        };
        let opened = self.open_sealed(key, sealed);
        opened.unwrap_or_else(|| {
            tracing::warn!(%key, "a sealed document that none of the keys opens");
            value.clone()
        })
    }

    fn open_sealed(&self, key: &Key, sealed: &[u8]) -> Option<Arc<[u8]>> {
        let (name, sealed) = sealed.split_first_chunk::<NAME_LENGTH>()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
        // Two keys may have one name.
        let mut keys = self.0.iter().rev().filter(|it| it.name == *name);
        keys.find_map(|opening| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut text = text.to_vec();
            let opened = opening.key.open_in_place(nonce, bound_to(key), &mut text).ok()?;
            Some(Arc::from(&*opened))
        })
    }
}

fn bound_to(key: &Key) -> Aad<&[u8]> {
    Aad::from(key.as_str().as_bytes())
}

impl SealingKey {
    fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let bytes: &[u8; KEY_LENGTH] = bytes.as_slice().try_into().ok()?;
        let name = digest(&SHA256, bytes);
        Some(Self {
            name: *name.as_ref().first_chunk()?,
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?),
        })
    }
}

/// A store whose values are sealed.
#[derive(Debug, Clone)]
pub struct Sealed {
    store: Arc<dyn Store>,
    keys: SealingKeys,
}

impl Sealed {
    /// Seals what is written to a store from now on.
    pub fn new(store: Arc<dyn Store>, keys: SealingKeys) -> Self {
        Self { store, keys }
    }
}

#[async_trait]
impl Store for Sealed {
    async fn read(&self, prefix: &str) -> Result<(Vec<Document>, Revision), StoreError> {
        let (mut documents, revision) = self.store.read(prefix).await?;
        for document in &mut documents {
            document.value = self.keys.open(&document.key, document.value.clone());
        }
        Ok((documents, revision))
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Box<dyn Watch>, WatchError> {
        Ok(Box::new(SealedWatch {
            watch: self.store.watch(prefix, after).await?,
            keys: self.keys.clone(),
        }))
    }

    async fn commit(
        &self,
        mut transaction: Transaction,
        expected: Revision,
    ) -> Result<Revision, CommitError> {
        for change in &mut transaction.changes {
            if let Change::Put { key, value, .. } = change {
                *value = self.keys.seal(key, value)?;
            }
        }
        self.store.commit(transaction, expected).await
    }

    async fn history(
        &self,
        prefix: &str,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError> {
        let mut history = self.store.history(prefix, before, limit).await?;
        for recorded in &mut history {
            let key = &recorded.key;
            let open = |value: Arc<[u8]>| self.keys.open(key, value);
            recorded.before = recorded.before.take().map(open);
            recorded.after = recorded.after.take().map(open);
        }
        Ok(history)
    }

    async fn compact(&self, before: SystemTime) -> Result<(), StoreError> {
        self.store.compact(before).await
    }
}

struct SealedWatch {
    watch: Box<dyn Watch>,
    keys: SealingKeys,
}

#[async_trait]
impl Watch for SealedWatch {
    async fn next(&mut self) -> Result<Changes, WatchError> {
        let mut changes = self.watch.next().await?;
        for (key, document) in &mut changes.documents {
            if let Some(document) = document {
                document.value = self.keys.open(key, document.value.clone());
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> SealingKeys {
        SealingKeys::parse(&texts.join("\n")).unwrap()
    }

    #[test]
    fn opens_only_what_it_should() {
        let (one, two) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        let (here, there) = (Key::new("a/1").unwrap(), Key::new("a/2").unwrap());
        let value: Arc<[u8]> = Arc::from(&b"{\"secret\": 1}"[..]);
        let sealed = keys(&[&one]).seal(&here, &value).unwrap();
        assert!(sealed.starts_with(MAGIC) && !sealed.windows(6).any(|it| it == b"secret"));
        let mut changed = sealed.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        let short: Arc<[u8]> = sealed[..MAGIC.len() + 7].into();
        let cases = [
            (keys(&[&one]), &here, sealed.clone(), true),
            (keys(&[&one, &two]), &here, sealed.clone(), true),
            (keys(&[&two]), &here, sealed.clone(), false),
            (keys(&[&one]), &there, sealed.clone(), false),
            (keys(&[&one]), &here, changed.into(), false),
            (keys(&[&one]), &here, short, false),
        ];
        for (number, (keys, key, sealed, is_opened)) in cases.into_iter().enumerate() {
            let expected = if is_opened { &value } else { &sealed };
            assert_eq!(keys.open(key, sealed.clone()), *expected, "{number}");
        }
        assert_eq!(keys(&[&one]).open(&here, value.clone()), value);
        // The newest writes.
        let newest = keys(&[&one, &two]).seal(&here, &value).unwrap();
        assert_eq!(keys(&[&two]).open(&here, newest), value);
    }

    #[test]
    fn reads_lists_of_keys() {
        let key = SealingKeys::generate().unwrap();
        let cases = [
            (format!("{key}\n"), Some(1)),
            (format!("# old\n{key}\n\n# new\n{key}"), Some(2)),
            (format!("{key},{key} {key}"), Some(3)),
            ("# none\n".to_owned(), None),
            (format!("{key}\nAAAA"), None),
            ("?".to_owned(), None),
        ];
        for (text, count) in cases {
            let keys = SealingKeys::parse(&text);
            assert_eq!(keys.as_ref().ok().map(|keys| keys.0.len()), count);
            assert!(!format!("{keys:?}").contains(&key));
        }
    }

    #[test]
    fn makes_a_file_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.key");
        assert!(SealingKeys::read(&path).is_err());
        let made = SealingKeys::read_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = SealingKeys::read_or_create(&path).unwrap();
        assert_eq!(made.0[0].name, again.0[0].name);
    }
}
