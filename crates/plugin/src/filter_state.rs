//! What filters keep of a call between their phases.

use std::any::{Any, TypeId};
use std::fmt;

/// Values that filters keep for a call, each under the instance that keeps it. Nothing is allocated before the first.
#[derive(Default)]
pub struct FilterState(Vec<(Owner, Box<dyn Any>)>);

/// The instance that keeps a value: its address and its type. Values that live at the same time have different addresses,
/// unless one is the first field of the other, and then they are of different types. The call holds the snapshot that its
/// instances are in, so none of them ends or moves before the call does.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Owner(usize, TypeId);

impl Owner {
    fn of<O: 'static>(owner: &O) -> Self {
        const {
            assert!(
                size_of::<O>() > 0,
                "values without a size may all have the same address"
            );
        }
        Self(std::ptr::from_ref(owner).addr(), TypeId::of::<O>())
    }

    /// The owner of a conversation's result: no instance has this address.
    fn answer() -> Self {
        Self(0, TypeId::of::<ConversationFailed>())
    }
}

/// The answer of a conversation that failed.
struct ConversationFailed;
/// Marks that the body has been requested.
struct BodyRequested;

impl FilterState {
    /// Keeps a value for `owner` until the call is over. One of the same type that it kept before is dropped.
    pub fn put<O: 'static, T: 'static>(&mut self, owner: &O, value: T) {
        match self.get_mut::<O, T>(owner) {
            Some(kept) => *kept = value,
            None => self.0.push((Owner::of(owner), Box::new(value))),
        }
    }

    /// What `owner` keeps of this type.
    pub fn get_mut<O: 'static, T: 'static>(&mut self, owner: &O) -> Option<&mut T> {
        let key = Owner::of(owner);
        let own = self.0.iter_mut().filter(|(of, _)| *of == key);
        own.filter_map(|(_, value)| value.downcast_mut()).next()
    }

    /// Takes back what `owner` keeps of this type.
    pub fn take<O: 'static, T: 'static>(&mut self, owner: &O) -> Option<T> {
        let key = Owner::of(owner);
        let place = self
            .0
            .iter()
            .position(|(of, value)| *of == key && value.is::<T>())?;
        let (_, value) = self.0.swap_remove(place);
        value.downcast().ok().map(|value| *value)
    }

    /// Records that `owner` requests the body ([`Outcome::NeedBody`](crate::Outcome::NeedBody)). `false` if it has
    /// requested it before, and the body was larger than it accepts.
    pub fn mark_body_requested<O: 'static>(&mut self, owner: &O) -> bool {
        if self.take::<O, BodyRequested>(owner).is_some() {
            return false;
        }
        self.put(owner, BodyRequested);
        true
    }

    /// Whether `owner` has requested the body.
    pub fn is_body_requested<O: 'static>(&mut self, owner: &O) -> bool {
        self.get_mut::<O, BodyRequested>(owner).is_some()
    }

    /// Keeps the result of a [`Conversation`](crate::Conversation) for the filter that started it; `None` if it failed.
    pub fn put_answer(&mut self, answer: Option<Box<dyn Any>>) {
        let answer = answer.unwrap_or_else(|| Box::new(ConversationFailed));
        self.0.push((Owner::answer(), answer));
    }

    /// The result of the conversation that a filter started last; `Some(None)` if it failed, or its result has another
    /// type.
    pub fn take_answer<T: 'static>(&mut self) -> Option<Option<Box<T>>> {
        let place = self.0.iter().position(|(of, _)| *of == Owner::answer())?;
        Some(self.0.swap_remove(place).1.downcast().ok())
    }

    /// Drops everything.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl fmt::Debug for FilterState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FilterState({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_asked_for_once() {
        let (one, other) = (1_u64, 2_u64);
        let mut state = FilterState::default();
        assert!(!state.is_body_requested(&one));
        assert!(state.mark_body_requested(&one) && state.mark_body_requested(&other));
        assert!(state.is_body_requested(&one));
        assert!(!state.mark_body_requested(&one), "it was too large");
        assert!(state.is_body_requested(&other));
    }

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

    #[test]
    fn values_of_an_owner_are_not_those_of_its_first_field() {
        #[repr(transparent)]
        struct Whole(u64);
        let whole = Whole(1);
        let mut kept = FilterState::default();
        kept.put(&whole, "of the whole");
        kept.put(&whole.0, "of the field");
        assert_eq!(kept.take::<_, &str>(&whole), Some("of the whole"));
        assert_eq!(kept.take::<_, &str>(&whole.0), Some("of the field"));
    }
}
