//! What is wrong with a text that is no JSON, in the words of the reader that Lua programs use.

use serde_json::Error;

/// The words for this error in this text.
pub(super) fn of(error: &Error, text: &[u8]) -> String {
    let said = error.to_string();
    let mut at = offset(error, text);
    let expected = if said.starts_with("expected ident") || said.starts_with("expected value") {
        at = start_of_word(text, at);
        "value"
    } else if said.starts_with("key must be a string") {
        "object key string"
    } else if said.starts_with("expected `:`") {
        "colon"
    } else if said.starts_with("expected `,` or `}`") || said.starts_with("EOF while parsing an object") {
        "comma or object end"
    } else if said.starts_with("expected `,` or `]`") || said.starts_with("EOF while parsing a list") {
        "comma or array end"
    } else if said.starts_with("trailing characters") {
        "the end"
    } else if said.starts_with("trailing comma") {
        match text.get(at) {
            Some(b'}') => "object key string",
            _ => "value",
        }
    } else {
        "value"
    };
    if error.is_eof() {
        at = text.len();
    }
    format!(
        "Expected {expected} but found {} at character {}",
        token(text, at),
        at + 1
    )
}

/// The offset of what is wrong.
fn offset(error: &Error, text: &[u8]) -> usize {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines
        .by_ref()
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    before + error.column().saturating_sub(1)
}

/// Readers notice a wrong word somewhere inside of it.
fn start_of_word(text: &[u8], at: usize) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let before = text.get(..at).unwrap_or(text);
    before
        .iter()
        .rposition(|byte| !is_word(byte))
        .map_or(0, |place| place + 1)
}

fn token(text: &[u8], at: usize) -> &'static str {
    match text.get(at) {
        None => "T_END",
        Some(b'{') => "T_OBJ_BEGIN",
        Some(b'}') => "T_OBJ_END",
        Some(b'[') => "T_ARR_BEGIN",
        Some(b']') => "T_ARR_END",
        Some(b',') => "T_COMMA",
        Some(b':') => "T_COLON",
        Some(b'"') => "T_STRING",
        Some(b'-' | b'0'..=b'9') => "T_NUMBER",
        Some(b't' | b'f') if starts_with_any(text, at, &[b"true", b"false"]) => "T_BOOLEAN",
        Some(b'n') if starts_with_any(text, at, &[b"null"]) => "T_NULL",
        Some(_) => "invalid token",
    }
}

fn starts_with_any(text: &[u8], at: usize, words: &[&[u8]]) -> bool {
    words.iter().any(|word| text[at..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_the_words_of_luas_reader() {
        for (text, words) in [
            (
                "not json",
                "Expected value but found invalid token at character 1",
            ),
            (
                "name=jack",
                "Expected value but found invalid token at character 1",
            ),
            ("", "Expected value but found T_END at character 1"),
            ("{\"a\":}", "Expected value but found T_OBJ_END at character 6"),
            ("{\"a\" 1}", "Expected colon but found T_NUMBER at character 6"),
            (
                "{\"a\":1",
                "Expected comma or object end but found T_END at character 7",
            ),
            (
                "[1 2]",
                "Expected comma or array end but found T_NUMBER at character 4",
            ),
            ("{} x", "Expected the end but found invalid token at character 4"),
            (
                "{a:1}",
                "Expected object key string but found invalid token at character 2",
            ),
            ("[1,]", "Expected value but found T_ARR_END at character 4"),
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).expect_err("no JSON");
            assert_eq!(of(&error, text.as_bytes()), words, "{text} ({error})");
        }
    }
}
