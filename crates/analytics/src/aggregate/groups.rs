//! Names that calls have together, such as those of a route, each group with one number. So four numbers distinguish a
//! call, and its names are looked up when its counts are handed on.

use super::NameId;
use foldhash::HashMap;
use std::hash::Hash;

/// Groups that are known, at most. Further ones are one group: `_other`.
pub(super) const MAX_GROUPS: usize = 1_000_000;

/// The number of a group. Zero is the group of empty names.
pub type GroupId = u32;

/// The names of a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RouteNames {
    /// The service.
    pub service: NameId,
    /// The route.
    pub route: NameId,
    /// The environment; zero: the gateway's own.
    pub environment: NameId,
    /// The API that the route belongs to; zero: none.
    pub api: NameId,
    /// The version of the API.
    pub version: NameId,
    /// The operation, by its id in the document.
    pub operation: NameId,
    /// The revision of the version.
    pub revision: NameId,
}

/// The names of who called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CallerNames {
    /// The consumer; zero: none.
    pub consumer: NameId,
    /// The application; zero: none.
    pub application: NameId,
    /// The plan of its subscription.
    pub plan: NameId,
    /// The subscription, by its id; zero: none.
    pub subscription: NameId,
}

/// The names of who was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TargetNames {
    /// The upstream; zero: none.
    pub upstream: NameId,
    /// The target that was asked last.
    pub target: NameId,
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct KindNames {
    /// The method.
    pub method: NameId,
    /// The protocol.
    pub protocol: NameId,
    /// Why the gateway refused it; zero: it did not.
    pub refusal: NameId,
    /// The plugin that refused it.
    pub plugin: NameId,
}

/// The groups of one kind, with their numbers.
#[derive(Debug)]
pub(super) struct Groups<T> {
    known: Vec<T>,
    numbers: HashMap<T, GroupId>,
}

impl<T: Copy + Default + Eq + Hash> Groups<T> {
    /// Only the group of empty names, and the one that stands for all that find no room.
    pub(super) fn new(other: T) -> Self {
        let mut groups = Self {
            known: vec![T::default(), other],
            numbers: HashMap::default(),
        };
        groups.numbers.insert(T::default(), 0);
        groups
    }

    /// The number of a group. It stays good until the groups are forgotten.
    pub(super) fn number(&mut self, names: T) -> GroupId {
        if let Some(number) = self.numbers.get(&names) {
            return *number;
        }
        if self.known.len() >= MAX_GROUPS {
            return 1;
        }
        let number = self.known.len() as GroupId;
        self.known.push(names);
        self.numbers.insert(names, number);
        number
    }

    /// Whether few further groups find room.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.known.len() >= MAX_GROUPS / 2
    }

    /// The names of a group.
    #[inline]
    pub(super) fn names(&self, number: GroupId) -> T {
        self.known.get(number as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_one_number_each_and_an_end() {
        let other = TargetNames {
            upstream: 7,
            target: 7,
        };
        let mut groups = Groups::new(other);
        let target = |target: u32| TargetNames { upstream: 3, target };
        assert_eq!(groups.number(TargetNames::default()), 0);
        let first = groups.number(target(1));
        assert_eq!(
            (first, groups.number(target(1)), groups.names(first)),
            (2, 2, target(1))
        );
        for number in 0..MAX_GROUPS as u32 {
            groups.number(target(number));
        }
        assert_eq!(groups.known.len(), MAX_GROUPS);
        assert_eq!(groups.number(target(5_000_000)), 1);
        assert_eq!((groups.names(1), groups.number(target(1))), (other, 2));
    }
}
