//! The labels of consumers, read as lists: a label can hold several values.
//!
//! They are read once for a configuration, however many instances ask.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use weir_plugin::{BuildContext, Identity};

/// A label's values.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Label {
    name: Box<str>,
    /// The values.
    pub values: Box<[Box<str>]>,
    /// The values in one text, as a header has them: `a, b`.
    pub joined: Box<str>,
}

/// The labels of all consumers of a dialect.
#[derive(Debug, Default)]
pub struct ConsumerLabels(HashMap<u32, Box<[Label]>>);

impl ConsumerLabels {
    /// The labels of this configuration's consumers.
    pub fn of(context: &BuildContext<'_>) -> Arc<Self> {
        let slot = (String::new(), "labels of consumers", context.dialect, None);
        if let Some(known) = context.indexes.borrow().get(&slot)
            && let Ok(known) = Arc::clone(known).downcast::<Self>()
        {
            return known;
        }
        let mut labels = HashMap::new();
        for ((dialect, _), consumer) in context.consumers {
            if *dialect == context.dialect && !consumer.labels.is_empty() {
                let read = consumer
                    .labels
                    .iter()
                    .map(|(name, value)| Label::read(name, value));
                labels.insert(consumer.index, read.collect());
            }
        }
        let labels = Arc::new(Self(labels));
        context
            .indexes
            .borrow_mut()
            .insert(slot, Arc::clone(&labels) as Arc<dyn Any + Send + Sync>);
        labels
    }

    /// A label of the caller.
    #[inline]
    pub fn get(&self, identity: &Identity, name: &str) -> Option<&Label> {
        let labels = self.0.get(&identity.consumer.index)?;
        labels.iter().find(|label| &*label.name == name)
    }
}

impl Label {
    fn read(name: &str, value: &str) -> Self {
        let values = values(value);
        Self {
            name: name.into(),
            joined: values.join(", ").into(),
            values: values.into_iter().map(Into::into).collect(),
        }
    }
}

/// The values in a label's text: a JSON list's, or those between commas.
fn values(text: &str) -> Vec<String> {
    if text.starts_with('[') {
        return serde_json::from_str(text).unwrap_or_default();
    }
    text.split(',').map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_several_values() {
        for (text, expected, joined) in [
            ("a", &["a"][..], "a"),
            ("a,b", &["a", "b"], "a, b"),
            ("a , b,c", &["a", "b", "c"], "a, b, c"),
            (r#"["a","x, y"]"#, &["a", "x, y"], "a, x, y"),
            ("[a", &[], ""),
        ] {
            let label = Label::read("l", text);
            let got: Vec<&str> = label.values.iter().map(|value| &**value).collect();
            assert_eq!((got.as_slice(), &*label.joined), (expected, joined), "{text}");
        }
    }
}
