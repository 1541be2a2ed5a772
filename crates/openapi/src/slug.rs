//! Names made of texts, such as an operation's method and path. What may be a name elsewhere is no business of this file.

use std::collections::{HashMap, HashSet};

/// The longest name, in characters.
pub const MAX_LENGTH: usize = 63;

/// Lower-case letters and digits, and a hyphen between words: a name for what a text says.
pub fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'a'..='z' | '0'..='9' => slug.push(character),
            'A'..='Z' => slug.push(character.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= MAX_LENGTH {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// Names that are given once each. One that is taken gets a number, and the next numbers go on from there: a document may have
/// one name fifty thousand times.
#[derive(Debug, Default)]
pub struct UniqueNames {
    taken: HashSet<String>,
    /// The next number of each name that was wanted again.
    next: HashMap<String, usize>,
}

impl UniqueNames {
    /// The name itself, or with a number behind it.
    pub fn unique(&mut self, wanted: String) -> String {
        if self.taken.insert(wanted.clone()) {
            return wanted;
        }
        let number = self.next.entry(wanted.clone()).or_insert(2);
        loop {
            let name = format!("{wanted}-{number}");
            *number += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_once_each() {
        let mut names = UniqueNames::default();
        let given: Vec<String> = ["a", "a-2", "a", "b", "a", "a-2"]
            .into_iter()
            .map(|it| names.unique(it.to_owned()))
            .collect();
        assert_eq!(given, ["a", "a-2", "a-3", "b", "a-4", "a-2-2"]);
    }
}
