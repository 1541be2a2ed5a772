//! What filters keep of a call between their phases.

use std::any::Any;
use std::fmt;

/// Values that filters keep for a call, each under the instance that keeps it. Nothing is allocated before the first.
#[derive(Default)]
pub struct FilterState(Vec<(usize, Box<dyn Any>)>);

/// What came of a conversation; no instance stands at this address.
const ANSWER: usize = 0;
/// The answer of a conversation that failed.
struct ConversationFailed;

impl FilterState {
    /// Keeps a value for `owner` until the call is over. One of the same type that it kept before is dropped.
    pub fn put<O, T: 'static>(&mut self, owner: &O, value: T) {
        match self.get_mut::<O, T>(owner) {
            Some(kept) => *kept = value,
            None => self.0.push((key(owner), Box::new(value))),
        }
    }

    /// What `owner` keeps of this type.
    pub fn get_mut<O, T: 'static>(&mut self, owner: &O) -> Option<&mut T> {
        let own = self.0.iter_mut().filter(|(of, _)| *of == key(owner));
        own.filter_map(|(_, value)| value.downcast_mut()).next()
    }

    /// Takes back what `owner` keeps of this type.
    pub fn take<O, T: 'static>(&mut self, owner: &O) -> Option<T> {
        let is_it = |(of, value): &(usize, Box<dyn Any>)| *of == key(owner) && value.is::<T>();
        let place = self.0.iter().position(is_it)?;
        let (_, value) = self.0.swap_remove(place);
        value.downcast().ok().map(|value| *value)
    }

    /// Keeps what came of a [`Conversation`](crate::Conversation) for the filter that wanted it; `None`: it failed.
    pub fn put_answer(&mut self, answer: Option<Box<dyn Any>>) {
        self.0
            .push((ANSWER, answer.unwrap_or_else(|| Box::new(ConversationFailed))));
    }

    /// What came of the conversation that a filter has asked for last; `Some(None)`: it failed, or its result is of
    /// another type.
    pub fn take_answer<T: 'static>(&mut self) -> Option<Option<Box<T>>> {
        let place = self.0.iter().position(|(of, _)| *of == ANSWER)?;
        Some(self.0.swap_remove(place).1.downcast().ok())
    }

    /// Drops everything.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// An instance does not move while calls are under way.
fn key<O>(owner: &O) -> usize {
    std::ptr::from_ref(owner).addr()
}

impl fmt::Debug for FilterState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Kept({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_owner_and_type() {
        let (one, other) = (1_u64, 2_u64);
        let mut kept = FilterState::default();
        kept.put(&one, "a");
        kept.put(&one, 7_u8);
        kept.put(&other, "b");
        kept.put(&one, "c");
        assert_eq!(kept.get_mut::<_, u8>(&one), Some(&mut 7));
        assert_eq!(kept.take::<_, &str>(&one), Some("c"));
        assert_eq!(kept.take::<_, &str>(&one), None);
        assert_eq!(kept.take::<_, &str>(&other), Some("b"));
        kept.put_answer(Some(Box::new(3_u8)));
        assert_eq!(kept.take_answer::<u8>(), Some(Some(Box::new(3))));
        assert_eq!(kept.take_answer::<u8>(), None);
        kept.put_answer(None);
        assert_eq!(kept.take_answer::<u8>(), Some(None));
        kept.clear();
        assert_eq!(kept.take::<_, u8>(&one), None);
    }
}
