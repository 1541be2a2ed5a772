//! Search over names, descriptions, operations and pages. Words may be begun or mistyped; what fits better comes first.
//! The index is made once for each state of the catalogue, and everything is bounded.

use super::typing::{errors, forgiven};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Words of a search, and letters of each.
const MAX_WORDS: usize = 8;
const MAX_LETTERS: usize = 40;
/// Words of one entry.
const MAX_ENTRY_WORDS: usize = 2_000;
/// Different words of the index.
const MAX_VOCABULARY: usize = 200_000;
/// How much a word counts that is exact, begun, or mistyped once or twice.
const EXACT: u32 = 12;
const BEGUN: u32 = 8;
const MISTYPED: [u32; 3] = [12, 5, 3];

/// The kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HitKind {
    /// A version of an API.
    Api,
    /// An operation.
    Operation,
    /// A page.
    Page,
}

/// Something that can be found.
#[derive(Debug, Clone)]
pub struct SearchEntry {
    pub kind: HitKind,
    pub api: String,
    pub version: String,
    /// The operation's or the page's name.
    pub name: String,
    pub title: String,
    pub about: String,
    /// Its words, each with how much it counts.
    pub words: Vec<(String, u32)>,
}

impl SearchEntry {
    /// Adds the words of a text.
    pub fn add(&mut self, weight: u32, text: &str) {
        let room = MAX_ENTRY_WORDS.saturating_sub(self.words.len());
        self.words
            .extend(words(text).take(room).map(|word| (word, weight)));
    }
}

/// A hit, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// Its kind.
    pub kind: HitKind,
    /// The API; of a page, the one that it belongs to, if it does.
    pub api: String,
    /// The version.
    pub version: String,
    /// The operation's id, or the page's name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// A line about it.
    pub about: String,
    /// How well it fits.
    pub score: u32,
}

impl Hit {
    pub(super) fn of(entry: &SearchEntry, score: u32) -> Self {
        Self {
            kind: entry.kind,
            api: entry.api.clone(),
            version: entry.version.clone(),
            name: entry.name.clone(),
            title: entry.title.clone(),
            about: entry.about.chars().take(200).collect(),
            score,
        }
    }
}

/// The words of a text: letters and digits, small. `listPets` is two words and the whole.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let whole = text
        .split(|it: char| !it.is_alphanumeric())
        .filter(|it| !it.is_empty());
    whole.flat_map(|word| {
        let word: String = word.chars().take(MAX_LETTERS).collect();
        let mut parts: Vec<String> = vec![word.to_lowercase()];
        let mut part = String::new();
        let mut was_small = false;
        for character in word.chars() {
            if character.is_uppercase() && was_small {
                parts.push(std::mem::take(&mut part).to_lowercase());
            }
            was_small = character.is_lowercase();
            part.push(character);
        }
        if parts.len() > 1 {
            parts.push(part.to_lowercase());
        }
        parts
    })
}

/// An index of entries.
#[derive(Debug, Default)]
pub struct Index {
    entries: Vec<SearchEntry>,
    /// All words in their order, with the entries that have them and how much each counts there.
    vocabulary: Vec<(String, Vec<(u32, u32)>)>,
    /// The letters of the words, by how many there are.
    by_length: Vec<Vec<(Vec<char>, u32)>>,
}

impl Index {
    /// Makes an index.
    pub fn build(mut entries: Vec<SearchEntry>) -> Self {
        let mut found: HashMap<String, Vec<(u32, u32)>> = HashMap::new();
        for (number, entry) in entries.iter_mut().enumerate() {
            for (word, weight) in std::mem::take(&mut entry.words) {
                let is_known = found.contains_key(&word);
                if !is_known && found.len() >= MAX_VOCABULARY {
                    continue;
                }
                let places = found.entry(word).or_default();
                match places.last_mut() {
                    Some((last, known)) if *last == number as u32 => *known = (*known).max(weight),
                    _ => places.push((number as u32, weight)),
                }
            }
        }
        let mut vocabulary: Vec<(String, Vec<(u32, u32)>)> = found.into_iter().collect();
        vocabulary.sort();
        let mut by_length: Vec<Vec<(Vec<char>, u32)>> = vec![Vec::new(); MAX_LETTERS + 1];
        for (number, (word, _)) in vocabulary.iter().enumerate() {
            let letters: Vec<char> = word.chars().take(MAX_LETTERS).collect();
            by_length[letters.len()].push((letters, number as u32));
        }
        Self {
            entries,
            vocabulary,
            by_length,
        }
    }

    /// The results, the best first. Entries that have all words come before those that have some.
    pub fn find(&self, text: &str) -> Vec<(&SearchEntry, u32)> {
        let mut asked: Vec<String> = text
            .split(|it: char| !it.is_alphanumeric())
            .filter(|it| !it.is_empty())
            .map(|it| it.chars().take(MAX_LETTERS).collect::<String>().to_lowercase())
            .take(MAX_WORDS)
            .collect();
        asked.dedup();
        // By entry: how many of the words it has, and how well.
        let mut scores: HashMap<u32, (usize, u32)> = HashMap::new();
        for word in &asked {
            let mut best: HashMap<u32, u32> = HashMap::new();
            for (number, quality) in self.alike(word) {
                for (entry, weight) in &self.vocabulary[number as usize].1 {
                    let score = best.entry(*entry).or_default();
                    *score = (*score).max(weight * quality);
                }
            }
            for (entry, score) in best {
                let known = scores.entry(entry).or_default();
                *known = (known.0 + 1, known.1 + score);
            }
        }
        let most = scores.values().map(|it| it.0).max().unwrap_or(0);
        let mut hits: Vec<(&SearchEntry, u32)> = scores
            .into_iter()
            // With several words, those count that have all that any entry has.
            .filter(|(_, (count, _))| *count == most)
            .filter_map(|(entry, (_, score))| Some((self.entries.get(entry as usize)?, score)))
            .collect();
        hits.sort_by(|one, other| {
            let name = |it: &SearchEntry| (it.title.clone(), it.version.clone());
            (other.1.cmp(&one.1)).then_with(|| name(one.0).cmp(&name(other.0)))
        });
        hits
    }

    /// Words of the index that a word may stand for, with how well each fits.
    fn alike(&self, word: &str) -> Vec<(u32, u32)> {
        let begin = self
            .vocabulary
            .partition_point(|(known, _)| known.as_str() < word);
        let begun = self.vocabulary[begin..]
            .iter()
            .take_while(|(known, _)| known.starts_with(word));
        let mut found: Vec<(u32, u32)> = begun
            .enumerate()
            .map(|(offset, (known, _))| {
                let quality = if known == word { EXACT } else { BEGUN };
                ((begin + offset) as u32, quality)
            })
            .collect();
        let letters: Vec<char> = word.chars().collect();
        let most = forgiven(letters.len());
        if most == 0 || found.iter().any(|(_, quality)| *quality == EXACT) {
            return found;
        }
        let lengths = letters.len().saturating_sub(most)..=(letters.len() + most).min(MAX_LETTERS);
        for (known, number) in lengths.flat_map(|length| &self.by_length[length]) {
            if let Some(count) = errors(&letters, known, most).filter(|it| *it > 0) {
                found.push((*number, MISTYPED[count.min(2)]));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(title: &str, about: &str) -> SearchEntry {
        let mut entry = SearchEntry {
            kind: HitKind::Operation,
            api: "shop".to_owned(),
            version: "1".to_owned(),
            name: title.to_owned(),
            title: title.to_owned(),
            about: about.to_owned(),
            words: Vec::new(),
        };
        entry.add(3, title);
        entry.add(1, about);
        entry
    }

    fn titles(index: &Index, text: &str) -> Vec<String> {
        index.find(text).iter().map(|(it, _)| it.title.clone()).collect()
    }

    /// 32
    #[test]
    fn mistyped_and_begun_words_are_found() {
        let index = Index::build(vec![
            entry("createRefund", "Pays an order back"),
            entry("listOrders", "Lists the orders"),
            entry("getOrder", "Reads an order, with its refund if there is one"),
        ]);
        for (text, expected) in [
            ("refund", &["createRefund", "getOrder"][..]),
            ("refnud", &["createRefund", "getOrder"]),
            ("refu", &["createRefund", "getOrder"]),
            ("REFUND create", &["createRefund"]),
            ("zzzz", &[]),
            ("", &[]),
            ("back", &["createRefund"]),
            ("xy", &[]),
        ] {
            assert_eq!(titles(&index, text), expected, "{text}");
        }
    }

    #[test]
    fn long_searches_are_bounded() {
        let words: String = (0..5_000).map(|it| format!("word{it} ")).collect();
        let index = Index::build(vec![entry("one", &words)]);
        assert!(index.vocabulary.len() <= MAX_ENTRY_WORDS + 1);
        assert_eq!(titles(&index, &"word1 ".repeat(10_000)).len(), 1);
        assert!(titles(&index, &"x".repeat(100_000)).is_empty());
    }
}
