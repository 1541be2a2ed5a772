//! One pass over a JSON text that counts. It remembers one count for each level of depth.

use weir_plugins_shared::json_text::Cursor;

const NOT_JSON: &str = "the body is not valid JSON";

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
    /// The byte that ends it.
    end: u8,
    /// Its members or items so far.
    count: usize,
}

/// Checks a text.
///
/// # Errors
/// What is wrong with it.
pub fn scan(text: &[u8], limits: &Limits) -> Result<(), &'static str> {
    let mut cursor = Cursor::new(text);
    // The innermost level, and those around it. The outermost is the text itself.
    let mut level = Level { end: 0, count: 0 };
    let mut outer: Vec<Level> = Vec::with_capacity(16);
    cursor.skip_spaces();
    // Empty bodies are no JSON, and no threat.
    if cursor.peek().is_none() {
        return Ok(());
    }
    loop {
        // A value begins here.
        let opened = match cursor.peek() {
            Some(b'"') => {
                pass_text(&mut cursor, limits.text_length, "a text is too long")?;
                None
            }
            Some(b'-' | b'0'..=b'9') => {
                cursor.number().ok_or(NOT_JSON)?;
                None
            }
            Some(b't' | b'f' | b'n') => {
                cursor.literal().ok_or(NOT_JSON)?;
                None
            }
            Some(b'{') => Some(b'}'),
            Some(b'[') => Some(b']'),
            _ => return Err(NOT_JSON),
        };
        if let Some(end) = opened {
            cursor.pass(1);
            outer.push(level);
            level = Level { end, count: 0 };
            if outer.len() > limits.depth.min(MAX_DEPTH) {
                return Err("it is nested too deep");
            }
        }
        let mut is_first = opened.is_some();
        // What follows: the end of some levels, then the next value of the innermost.
        loop {
            cursor.skip_spaces();
            let Some(around) = outer.last() else {
                return cursor.peek().map_or(Ok(()), |_| Err(NOT_JSON));
            };
            if cursor.pass_if(level.end) {
                level = *around;
                outer.pop();
                is_first = false;
                continue;
            }
            if !is_first {
                if !cursor.pass_if(b',') {
                    return Err(NOT_JSON);
                }
                cursor.skip_spaces();
            }
            break;
        }
        level.count += 1;
        if level.end == b'}' {
            if level.count > limits.members {
                return Err("an object has too many members");
            }
            pass_text(&mut cursor, limits.name_length, "a name is too long")?;
            cursor.skip_spaces();
            if !cursor.pass_if(b':') {
                return Err(NOT_JSON);
            }
            cursor.skip_spaces();
        } else if level.count > limits.items {
            return Err("a list has too many items");
        }
    }
}

/// Passes a text of at most so many characters.
fn pass_text(cursor: &mut Cursor<'_>, most: usize, fault: &'static str) -> Result<(), &'static str> {
    if !cursor.pass_if(b'"') {
        return Err(NOT_JSON);
    }
    let start = cursor.at();
    let mut escapes = 0;
    loop {
        cursor.skip_plain();
        match cursor.peek().ok_or(NOT_JSON)? {
            b'"' => break,
            b'\\' => {
                let code = cursor.between(cursor.at() + 2, cursor.at() + 6);
                let is_code = code.len() == 4 && code.iter().all(u8::is_ascii_hexdigit);
                cursor.pass(1);
                // An escape is one character, as far as its own bytes go.
                let own = match cursor.peek() {
                    Some(b'u') if is_code => 6,
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                    _ => return Err(NOT_JSON),
                };
                escapes += own - 1;
                cursor.pass(own - 1);
            }
            // Some parsers take control characters as they are.
            _ => cursor.pass(1),
        }
    }
    let end = cursor.at();
    let most = most.saturating_add(escapes);
    // Only a text that is long in bytes can be long in characters.
    if end - start > most {
        let written = cursor.between(start, end).iter();
        if written.filter(|byte| **byte & 0xC0 != 0x80).count() > most {
            return Err(fault);
        }
    }
    cursor.pass(1);
    Ok(())
}
