//! The person who looks at a portal, as far as it decides what is shown.

use std::collections::BTreeSet;
use weir_apis::entities::Visibility;

/// A person who looks at a portal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Viewer {
    /// The developer's id; `None`: not signed in.
    pub developer: Option<String>,
    /// The developer's mail address.
    pub mail: String,
    /// The developer's groups.
    pub groups: BTreeSet<String>,
}

impl Viewer {
    /// Whether something with this visibility is shown.
    pub fn sees(&self, visibility: &Visibility) -> bool {
        match visibility {
            Visibility::Public => true,
            Visibility::SignedIn => self.developer.is_some(),
            Visibility::Groups(groups) => self.is_in(groups),
        }
    }

    /// Whether the developer is in one of these groups.
    pub fn is_in(&self, groups: &[String]) -> bool {
        self.developer.is_some() && groups.iter().any(|it| self.groups.contains(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visibility_is_by_sign_in_and_group() {
        let anonymous = Viewer::default();
        let ann = Viewer {
            developer: Some("ann".to_owned()),
            groups: BTreeSet::from(["partners".to_owned()]),
            ..Viewer::default()
        };
        let bob = Viewer {
            developer: Some("bob".to_owned()),
            ..Viewer::default()
        };
        let groups = Visibility::Groups(vec!["partners".to_owned()]);
        for (visibility, expected) in [
            (Visibility::Public, [true, true, true]),
            (Visibility::SignedIn, [false, true, true]),
            (groups, [false, true, false]),
            (Visibility::Groups(Vec::new()), [false, false, false]),
        ] {
            let seen = [&anonymous, &ann, &bob].map(|it| it.sees(&visibility));
            assert_eq!(seen, expected, "{visibility:?}");
        }
    }
}
