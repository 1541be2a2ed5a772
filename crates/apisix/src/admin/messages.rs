//! JSON as APISIX's library reads it: what it takes that is none. Its words for what it does not take stand in the
//! catalogue, where a plugin needs them too.

use serde_json::Value;
use weir_plugins::lenient_json;

/// Reads JSON. As APISIX's library does, this takes control characters in texts, and texts that are not UTF-8.
///
/// # Errors
/// Where and why it is none.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let lenient = String::from_utf8_lossy(text);
    serde_json::from_str(&escape_controls(&lenient)).map_err(|_| lenient_json::fault(text))
}

/// Escapes control characters that stand in texts.
fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let (mut in_text, mut after_backslash) = (false, false);
    for character in text.chars() {
        match character {
            '"' if !after_backslash => in_text = !in_text,
            control if in_text && control < ' ' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(control)));
                after_backslash = false;
                continue;
            }
            _ => {}
        }
        after_backslash = in_text && character == '\\' && !after_backslash;
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_may_hold_controls() {
        assert_eq!(
            parse(b"{\"a\n\": \"x\\\"\ty\xff\"}\n").expect("valid enough"),
            serde_json::json!({"a\n": "x\"\ty\u{fffd}"})
        );
    }
}
