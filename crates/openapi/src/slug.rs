//! Names made of texts, such as an operation's method and path. What may be a name elsewhere is no business of this file.

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
