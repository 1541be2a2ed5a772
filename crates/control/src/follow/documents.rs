//! The documents that are served, and a hash of them.

use aws_lc_rs::digest;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_store::Key;

/// Documents by their keys, with a hash that depends only on the documents, not on the order in which they
/// came. A change costs as much as the document is long, however many there are.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    values: BTreeMap<Key, Arc<[u8]>>,
    /// The sum of the documents' own hashes.
    sum: u128,
}

impl Documents {
    /// Takes over one document; `None`: it is gone. Returns whether that made a difference.
    pub fn apply(&mut self, key: &Key, value: Option<Arc<[u8]>>) -> bool {
        let before = match value {
            Some(value) => {
                if self.values.get(key) == Some(&value) {
                    return false;
                }
                self.sum = self.sum.wrapping_add(hash(key, &value));
                self.values.insert(key.clone(), value)
            }
            None => match self.values.remove(key) {
                None => return false,
                gone => gone,
            },
        };
        if let Some(before) = before {
            self.sum = self.sum.wrapping_sub(hash(key, &before));
        }
        true
    }

    /// The documents in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<[u8]>)> {
        self.values.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The hash, short.
    pub fn number(&self) -> u64 {
        (self.sum >> 64) as u64 ^ self.sum as u64
    }

    /// The hash, in hexadecimal digits.
    pub fn hash(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

/// A key holds no control character, so the zero byte ends it.
fn hash(key: &Key, value: &[u8]) -> u128 {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(key.as_str().as_bytes());
    context.update(&[0]);
    context.update(value);
    let digest = context.finish();
    let (head, _) = digest.as_ref().split_at(16);
    head.iter().fold(0, |hash, byte| hash << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_documents_have_equal_hashes() {
        let key = |text: &str| Key::new(text).expect("a key");
        let (mut one, mut other) = (Documents::default(), Documents::default());
        let empty = one.hash();
        assert!(one.apply(&key("a"), Some((*b"1").into())));
        assert!(!one.apply(&key("a"), Some((*b"1").into())));
        assert!(one.apply(&key("b"), Some((*b"2").into())));
        assert!(other.apply(&key("b"), Some((*b"x").into())));
        assert!(other.apply(&key("a"), Some((*b"1").into())));
        assert_ne!(one.hash(), other.hash());
        assert!(other.apply(&key("b"), Some((*b"2").into())));
        assert_eq!(one.hash(), other.hash());
        assert!(one.apply(&key("a"), None) && one.apply(&key("b"), None));
        assert!(!one.apply(&key("b"), None));
        assert_eq!((one.hash(), one.len()), (empty, 0));
    }
}
