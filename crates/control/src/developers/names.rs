//! Names that people choose for themselves and for their teams. Some stand in mails to others: what a mail program would
//! make a link of is no name.
//!
//! **What it is not**: it judges no words. A mail to an address that is not confirmed holds no name that a stranger
//! has chosen; so no name is read by people who did not ask for it.

/// The longest name, in characters.
pub const MAX_NAME: usize = 80;

/// Marks that look like a dot, and that browsers read as one.
const DOTS: [char; 5] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}', '\u{2024}'];

/// Marks that one does not see, but that change what one reads: they join, part, and turn texts around.
fn is_hidden(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Marks that turn what comes after them around, also beyond the text that they stand in.
pub fn turns_text(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a mail program may make a link of a part of a text: an address, or a host such as `evil.com`. Initials and numbers
/// are none: `J.R.R. Tolkien`, `Team 2.0`.
fn has_link(text: &str) -> bool {
    let text = text.to_lowercase();
    if text.contains(['@', '\u{ff20}', '/', '\\', '<', '>']) || text.contains("www") && text.contains(DOTS) {
        return true;
    }
    let characters: Vec<char> = text.chars().collect();
    let is_host_from = |dot: usize| {
        let before = dot.checked_sub(1).map(|it| characters[it]);
        let after = &characters[dot + 1..];
        let is_name = after.first().is_some_and(|it| it.is_alphabetic())
            && after.get(1).is_some_and(|it| it.is_alphanumeric());
        before.is_some_and(char::is_alphanumeric) && is_name
    };
    let mut dots = (0..characters.len()).filter(|it| DOTS.contains(&characters[*it]));
    dots.any(is_host_from)
}

/// A name without spaces around it.
///
/// # Errors
/// If the name is invalid: what was expected.
pub fn checked_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    let is_text = !name.contains(|it: char| it.is_control() || is_hidden(it));
    match (1..=MAX_NAME).contains(&name.chars().count()) && is_text && !has_link(name) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "expected 1 to {MAX_NAME} characters, without text that mail programs turn into links, such as example.com, and without @ / \\ < >"
        )),
    }
}

/// The greeting in a mail: by name, unless it is one that could not be chosen today.
pub fn greeting(name: &str) -> String {
    match checked_name(name) {
        Ok(name) => format!("Hello {name},"),
        Err(_) => "Hello,".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_link() {
        for (name, is_good) in [
            ("Ann", true),
            (" Ann-Marie O'Neill ", true),
            ("J.R.R. Tolkien", true),
            ("Dr. Who", true),
            ("Team 2.0", true),
            ("Müller & Söhne (Shop)", true),
            ("田中 太郎", true),
            ("Win a prize!", true),
            ("", false),
            ("Win at evil.com", false),
            ("evil.com", false),
            ("EVIL.COM", false),
            ("evil。com", false),
            ("evil．com", false),
            ("win.пример", false),
            ("evil.xn--p1ai", false),
            ("http://evil", false),
            ("mailto:x@evil", false),
            ("@evil", false),
            ("www evil . c", false),
            ("www.evil", false),
            ("<b>Ann</b>", false),
            ("evil\u{200b}com", false),
            ("Ann\u{202e}moc.live", false),
            ("Ann\r\nBcc: x", false),
        ] {
            assert_eq!(checked_name(name).is_ok(), is_good, "{name:?}");
        }
        assert!(checked_name(&"a".repeat(MAX_NAME + 1)).is_err());
    }

    #[test]
    fn names_of_before_are_not_said() {
        assert_eq!(greeting("Ann"), "Hello Ann,");
        assert_eq!(greeting("Win at evil.com"), "Hello,");
    }
}
