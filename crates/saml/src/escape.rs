//! Texts as they may stand in XML and HTML. Control characters, which may not stand there, become blanks.

/// A text as it may stand in an attribute or an element, also of HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            character if character.is_control() => out.push(' '),
            character => out.push(character),
        }
    }
    out
}
