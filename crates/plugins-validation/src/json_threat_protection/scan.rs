//! One pass over a JSON text that counts. It allocates one byte for each level of depth.

/// What a text may have.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub depth: usize,
    pub members: usize,
    pub name_length: usize,
    pub items: usize,
    pub text_length: usize,
}

/// Deeper texts are refused whatever the limits say.
const MAX_DEPTH: usize = 10_000;

/// What stands around the next value.
#[derive(Clone, Copy)]
struct Level {
    is_object: bool,
    /// Its members or items so far.
    count: usize,
}

/// Checks a text.
///
/// # Errors
/// What is wrong with it.
pub fn scan(text: &[u8], limits: &Limits) -> Result<(), &'static str> {
    let mut scanner = Scanner { text, at: 0 };
    let mut levels: Vec<Level> = Vec::with_capacity(16);
    scanner.skip_spaces();
    // Empty bodies are no JSON, and no threat.
    if scanner.peek().is_none() {
        return Ok(());
    }
    loop {
        // A value begins here.
        let opened = match scanner.peek() {
            Some(b'{') => Some(true),
            Some(b'[') => Some(false),
            Some(b'"') => {
                scanner.text(limits.text_length, "a text is too long")?;
                None
            }
            Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                scanner.word()?;
                None
            }
            _ => return Err("the body is not valid JSON"),
        };
        if let Some(is_object) = opened {
            scanner.at += 1;
            levels.push(Level { is_object, count: 0 });
            if levels.len() > limits.depth.min(MAX_DEPTH) {
                return Err("it is nested too deep");
            }
        }
        let mut is_first = opened.is_some();
        // What follows: the end of some levels, then the next value of the innermost.
        loop {
            scanner.skip_spaces();
            let Some(level) = levels.last_mut() else {
                return match scanner.peek() {
                    None => Ok(()),
                    Some(_) => Err("the body is not valid JSON"),
                };
            };
            let end = if level.is_object { b'}' } else { b']' };
            match scanner.peek() {
                Some(byte) if byte == end => {
                    scanner.at += 1;
                    levels.pop();
                    is_first = false;
                    continue;
                }
                Some(b',') if !is_first => {
                    scanner.at += 1;
                    scanner.skip_spaces();
                }
                Some(_) if is_first => {}
                _ => return Err("the body is not valid JSON"),
            }
            level.count += 1;
            match level.is_object {
                true => {
                    if level.count > limits.members {
                        return Err("an object has too many members");
                    }
                    scanner.text(limits.name_length, "a name is too long")?;
                    scanner.skip_spaces();
                    if scanner.peek() != Some(b':') {
                        return Err("the body is not valid JSON");
                    }
                    scanner.at += 1;
                    scanner.skip_spaces();
                }
                false if level.count > limits.items => return Err("a list has too many items"),
                false => {}
            }
            break;
        }
    }
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Passes a text of at most so many characters.
    fn text(&mut self, most: usize, fault: &'static str) -> Result<(), &'static str> {
        const BAD: &str = "the body is not valid JSON";
        if self.peek() != Some(b'"') {
            return Err(BAD);
        }
        self.at += 1;
        let start = self.at;
        let mut escapes = 0;
        loop {
            let rest = self.text.get(self.at..).ok_or(BAD)?;
            let length = memchr::memchr2(b'"', b'\\', rest).ok_or(BAD)?;
            self.at += length;
            if self.text[self.at] == b'"' {
                break;
            }
            let escaped = *self.text.get(self.at + 1).ok_or(BAD)?;
            // An escape is one character, as far as its own bytes go.
            let own = if escaped == b'u' { 6 } else { 2 };
            escapes += own - 1;
            self.at += own;
        }
        let written = &self.text[start..self.at.min(self.text.len())];
        self.at += 1;
        // Only a text that is long in bytes can be long in characters.
        if written.len() - escapes.min(written.len()) > most {
            let characters = written.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
            if characters - escapes.min(characters) > most {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Passes a number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<(), &'static str> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z')
        ) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let is_number = || {
            let text = std::str::from_utf8(word).ok();
            text.is_some_and(|text| serde_json::from_str::<serde_json::Number>(text).is_ok())
        };
        match matches!(word, b"true" | b"false" | b"null") || is_number() {
            true => Ok(()),
            false => Err("the body is not valid JSON"),
        }
    }
}
