//! A declarative configuration: a text that stands in a file as a whole, and that an Admin API may replace as a whole.
//!
//! Two sides share it. The one that serves the file says which text it serves ([`DeclaredConfig::served`]) and takes
//! replacements; an Admin API reads the text ([`DeclaredConfig::current`]) and asks for a replacement
//! ([`DeclaredConfig::replace`]). A replacement is held in memory; nothing writes it into the file.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Replacements that wait for their turn.
const MAX_WAITING: usize = 16;

/// The configuration that is served, as a text.
#[derive(Debug)]
pub struct DeclaredConfig {
    current: Mutex<(u64, Arc<str>)>,
    replacements: mpsc::Sender<Replacement>,
}

/// A text that is to be served in the place of the one that is.
#[derive(Debug)]
pub struct Replacement {
    /// The text.
    pub text: Arc<str>,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Replacement {
    /// Reports the outcome: it is served, or why it is refused.
    pub fn answer(self, outcome: Result<(), String>) {
        // A caller that has gone needs no answer.
        let _gone = self.answer.send(outcome);
    }
}

impl DeclaredConfig {
    /// A configuration that is served, and the replacements that come for it.
    pub fn new(text: Arc<str>) -> (Arc<Self>, mpsc::Receiver<Replacement>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let declared = Self {
            current: Mutex::new((1, text)),
            replacements: sender,
        };
        (Arc::new(declared), receiver)
    }

    /// The text that is served, and a number that grows with each other text.
    pub fn current(&self) -> (u64, Arc<str>) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        (current.0, Arc::clone(&current.1))
    }

    /// From now on this text is served.
    pub fn served(&self, text: Arc<str>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (current.0 + 1, text);
    }

    /// Orders that this text is served. Returns its number.
    ///
    /// # Errors
    /// Why it is not served; the one before is.
    pub async fn replace(&self, text: Arc<str>) -> Result<u64, String> {
        let (answer, outcome) = oneshot::channel();
        let stopping = || "the gateway is about to stop".to_owned();
        let replacement = Replacement { text, answer };
        let sent = self.replacements.send(replacement).await;
        sent.map_err(|_| stopping())?;
        outcome.await.map_err(|_| stopping())??;
        Ok(self.current().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn replacements_are_served_or_refused() {
        let (declared, mut replacements) = DeclaredConfig::new("a".into());
        assert_eq!(declared.current(), (1, "a".into()));
        let serving = async {
            for is_good in [true, false] {
                let replacement = replacements.recv().await.expect("one comes");
                if is_good {
                    declared.served(Arc::clone(&replacement.text));
                }
                let outcome = is_good.then_some(()).ok_or_else(|| "wrong".to_owned());
                replacement.answer(outcome);
            }
        };
        let asking = async {
            assert_eq!(declared.replace("b".into()).await, Ok(2));
            assert_eq!(declared.replace("c".into()).await, Err("wrong".to_owned()));
        };
        tokio::join!(serving, asking);
        assert_eq!(declared.current(), (2, "b".into()));
        drop(replacements);
        assert!(declared.replace("d".into()).await.is_err(), "nothing serves it");
    }
}
