//! Texts of clients, such as paths and networks, that are known in an hour. They are not among the names, of which there
//! would be no end.

use super::NameId;
use foldhash::HashMap;
use std::sync::Arc;

/// Numbers of texts begin here, above all names.
const FIRST: NameId = 1 << 30;
/// Texts of an hour: far more than are kept apart, so that frequent ones are found among rare ones.
const MAX_TEXTS: usize = 50_000;
/// The longest text that is kept, in bytes.
const MAX_TEXT: usize = 128;

/// The texts, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct ClientTexts {
    hour: u32,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NameId>,
}

impl ClientTexts {
    /// Those of an hour, counted from the Unix epoch.
    pub(super) fn new(hour: u32) -> Self {
        Self {
            hour,
            ..Self::default()
        }
    }

    /// A number for a text, which may be cut; `None`: there is no more room in this hour.
    pub(super) fn number(&mut self, text: &str) -> Option<NameId> {
        let end = (0..=text.len().min(MAX_TEXT))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        let text = &text[..end.unwrap_or(0)];
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if self.texts.len() >= MAX_TEXTS {
            return None;
        }
        let (text, number): (Arc<str>, _) = (text.into(), FIRST + self.texts.len() as NameId);
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        Some(number)
    }

    /// The text of a number; `None`: it is no text's number.
    pub(super) fn get(&self, number: NameId) -> Option<&Arc<str>> {
        self.texts.get(number.checked_sub(FIRST)? as usize)
    }

    /// Forgets all of them if another hour begins. No row may have one then.
    pub(super) fn begin(&mut self, hour: u32) {
        if hour > self.hour {
            *self = Self::new(hour);
        }
    }

    /// Bytes that they need, about.
    pub(super) fn bytes(&self) -> usize {
        let one = |text: &Arc<str>| 4 * size_of::<usize>() + text.len();
        let texts: usize = self.texts.iter().map(one).sum();
        texts + self.numbers.capacity() * (size_of::<(Arc<str>, NameId)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hour_has_room_of_its_own() {
        let mut texts = ClientTexts::new(7);
        for number in 0..MAX_TEXTS + 5 {
            let known = texts.number(&format!("/{number}"));
            assert_eq!(known.is_some(), number < MAX_TEXTS, "{number}");
        }
        let first = texts.number("/0").expect("it is known");
        assert_eq!(texts.get(first).map(|it| &**it), Some("/0"));
        texts.begin(7);
        assert_eq!(texts.number("/new"), None);
        texts.begin(8);
        let new = texts.number("/new").expect("there is room again");
        assert_eq!(texts.get(new).map(|it| &**it), Some("/new"));
        assert_eq!((texts.get(0), texts.get(first + 1)), (None, None));
        let long = texts.number(&"ä".repeat(200)).expect("room");
        assert_eq!(texts.get(long).map(|it| it.len()), Some(MAX_TEXT));
    }
}
