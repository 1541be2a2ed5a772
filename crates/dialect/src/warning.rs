//! The `Warning` header of an answer to a write: what is stored and not served as it was written. It is the same for all
//! Admin APIs.

use axum::http::HeaderValue;

/// The most texts in one header; the number of others stands at its end.
const MAX_TEXTS: usize = 10;

/// The header's value for these texts, sorted and each once; `None`: there are none. Letters that a header cannot have are
/// escaped, so that one of them hides no warning.
pub fn warning(texts: impl IntoIterator<Item = String>) -> Option<HeaderValue> {
    let mut texts: Vec<String> = texts.into_iter().filter(|it| !it.is_empty()).collect();
    texts.sort();
    texts.dedup();
    if texts.is_empty() {
        return None;
    }
    let left = texts.len().saturating_sub(MAX_TEXTS);
    texts.truncate(MAX_TEXTS);
    if left > 0 {
        texts.push(format!("and {left} more"));
    }
    let mut value = String::from("299 weir \"");
    for character in texts.join("; ").chars() {
        match character {
            '"' => value.push('\''),
            ' '..='~' => value.push(character),
            _ => value.extend(character.escape_default()),
        }
    }
    value.push('"');
    HeaderValue::from_str(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_further_texts_is_named() {
        let value = warning((0..15).map(|it| format!("{it:02}"))).expect("a header");
        let value = value.to_str().expect("a text");
        assert!(value.ends_with("08; 09; and 5 more\""), "{value}");
    }

    #[test]
    fn texts_become_one_header() {
        for (texts, expected) in [
            (vec![], None),
            (vec![""], None),
            (vec!["b", "a", "b"], Some("299 weir \"a; b\"")),
            (vec!["plugin \"x\""], Some("299 weir \"plugin 'x'\"")),
            // The defect: no warning at all was sent.
            (vec!["/ä\n"], Some("299 weir \"/\\u{e4}\\n\"")),
        ] {
            let value = warning(texts.iter().map(|it| (*it).to_owned()));
            let value = value.as_ref().map(|it| it.to_str().expect("a text"));
            assert_eq!(value, expected, "{texts:?}");
        }
    }
}
