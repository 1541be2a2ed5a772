//! The keys of a sealed store: their source, and what they do to one value.

use super::MAGIC;
use crate::document::Key;
use crate::store::StoreError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

/// The length of a key.
const KEY_LENGTH: usize = 32;
const NAME_LENGTH: usize = 4;
/// The length of the tag of AES-256-GCM.
const TAG_LENGTH: usize = 16;
/// How many bytes a sealed value has more than the value.
pub(super) const OVERHEAD: usize = MAGIC.len() + NAME_LENGTH + NONCE_LEN + TAG_LENGTH;

/// The keys that open values; the last of them seals new ones. Cheap to share.
#[derive(Clone)]
pub struct SealingKeys(Arc<Ring>);

/// Keys, and where more of them come from.
struct Ring {
    keys: RwLock<Arc<Vec<SealingKey>>>,
    /// The file that they were read from. Others may use a new key before this process has read it.
    file: Option<PathBuf>,
    /// As what the file was read again last, because of a key that is not among these: its time and length.
    looked: Mutex<Option<(SystemTime, u64)>>,
}

#[derive(Clone)]
struct SealingKey {
    /// The start of the key's SHA-256. A sealed value names the key that it needs by it.
    name: [u8; NAME_LENGTH],
    key: Arc<LessSafeKey>,
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SealingKeys({})", self.keys().len())
    }
}

/// Keys that cannot be used. The error reveals nothing of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or made.
    #[error("{0}")]
    File(String),
    /// It is no list of keys.
    #[error("line {0} is not a valid key: 32 bytes in base64, one key a line, the newest last")]
    NoKey(usize),
    /// It holds no key.
    #[error("it contains no key")]
    Empty,
    /// The system gives no random numbers.
    #[error("the system cannot provide random numbers")]
    NoRandom,
}

impl SealingKeys {
    /// The keys of a text, such as an environment variable: each 32 bytes in base64, separated by line breaks, spaces
    /// or commas, the newest last. Lines that begin with `#` are for people.
    ///
    /// # Errors
    /// If a part of it is no key, or it holds none.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        Ok(Self::new(parse(text)?, None))
    }

    fn new(keys: Vec<SealingKey>, file: Option<PathBuf>) -> Self {
        Self(Arc::new(Ring {
            keys: RwLock::new(Arc::new(keys)),
            file,
            looked: Mutex::default(),
        }))
    }

    fn keys(&self) -> Arc<Vec<SealingKey>> {
        Arc::clone(&self.0.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file again, if it is another one by now. What was known stays.
    fn reload_if_changed(&self) {
        let Some(file) = &self.0.file else {
            return;
        };
        let mut looked = self.0.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let about = fs::metadata(file).and_then(|about| Ok((about.modified()?, about.len())));
        if about.as_ref().is_ok_and(|about| *looked == Some(*about)) {
            return;
        }
        let read = match about.and_then(|about| Ok((about, fs::read_to_string(file)?))) {
            Ok((about, text)) => {
                *looked = Some(about);
                parse(&text)
            }
            Err(error) => Err(KeyError::File(error.to_string())),
        };
        let mut fresh = match read {
            Ok(fresh) => fresh,
            Err(error) => {
                tracing::warn!(%error, file = %file.display(), "the file of the store's keys cannot be reloaded; the known keys stay in use");
                return;
            }
        };
        let known = self.keys();
        let is_gone = |key: &&SealingKey| fresh.iter().all(|it| it.name != key.name);
        let mut keys: Vec<SealingKey> = known.iter().filter(is_gone).cloned().collect();
        keys.append(&mut fresh);
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// The keys of a file. It is read again when a value was sealed with a key that was not in it.
    ///
    /// # Errors
    /// It cannot be read, or holds none.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| KeyError::File(format!("{}: {error}", path.display())))?;
        Ok(Self::new(parse(&text)?, Some(path.to_owned())))
    }

    /// The keys of a file, which is created with one new key, readable for its owner only, if it is missing.
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
        let keys = self.keys();
        let sealing = keys.last().ok_or_else(failed)?;
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
        let opened = open_sealed(&self.keys(), key, sealed).or_else(|| {
            self.reload_if_changed();
            open_sealed(&self.keys(), key, sealed)
        });
        opened.unwrap_or_else(|| {
            tracing::warn!(%key, "an encrypted document cannot be decrypted with any known key");
            value.clone()
        })
    }
}

fn parse(text: &str) -> Result<Vec<SealingKey>, KeyError> {
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
        false => Ok(keys),
    }
}

fn open_sealed(keys: &[SealingKey], key: &Key, sealed: &[u8]) -> Option<Arc<[u8]>> {
    let (name, sealed) = sealed.split_first_chunk::<NAME_LENGTH>()?;
    let (nonce, text) = sealed.split_first_chunk::<NONCE_LEN>()?;
    // Two keys may have one name.
    let mut keys = keys.iter().rev().filter(|it| it.name == *name);
    keys.find_map(|opening| {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut text = text.to_vec();
        let opened = opening.key.open_in_place(nonce, bound_to(key), &mut text).ok()?;
        Some(Arc::from(&*opened))
    })
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
            key: Arc::new(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?)),
        })
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
        assert_eq!(sealed.len(), value.len() + OVERHEAD);
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
            assert_eq!(keys.as_ref().ok().map(|keys| keys.keys().len()), count);
            assert!(!format!("{keys:?}").contains(&key));
        }
    }

    #[test]
    fn a_key_that_others_use_already_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.key");
        let (one, two) = (SealingKeys::generate().unwrap(), SealingKeys::generate().unwrap());
        fs::write(&path, &one).unwrap();
        let (old, here) = (SealingKeys::read(&path).unwrap(), Key::new("a/1").unwrap());
        let value: Arc<[u8]> = Arc::from(&b"1"[..]);
        let sealed_before = old.seal(&here, &value).unwrap();
        // Another process was started with one more key; then the first one goes from the file.
        let sealed = keys(&[&one, &two]).seal(&here, &value).unwrap();
        assert_eq!(keys(&[&one]).open(&here, sealed.clone()), sealed);
        fs::write(&path, &two).unwrap();
        assert_eq!(old.open(&here, sealed), value);
        assert_eq!(old.open(&here, sealed_before), value);
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
        assert_eq!(made.keys()[0].name, again.keys()[0].name);
    }
}
