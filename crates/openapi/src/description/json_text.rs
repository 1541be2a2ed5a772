//! Walks over the text of a JSON document: how many values it holds, and their positions.
//!
//! It is no parser: it is used for texts that a parser has read, and gives up quietly on any other.

use crate::finding::Position;

/// The most values of a document.
pub const MAX_VALUES: usize = 5_000_000;

/// Whether a text has at most [`MAX_VALUES`] values, before memory is spent on them.
///
/// # Errors
/// Where there are too many.
pub fn check_size(text: &str) -> Result<(), Position> {
    let mut scanner = Scanner::new(text);
    let mut values = 1_usize;
    while let Some(byte) = scanner.peek() {
        match byte {
            b'"' => scanner.skip_text(),
            // Each begins a value, but for those of empty lists and maps.
            b',' | b'[' | b'{' => {
                values += 1;
                if values > MAX_VALUES {
                    return Err(scanner.position());
                }
                scanner.at += 1;
            }
            _ => scanner.at += 1,
        }
    }
    Ok(())
}

/// A place in a JSON text.
pub struct Scanner<'t> {
    text: &'t str,
    /// The next byte.
    pub at: usize,
    /// A byte before or at `at`, and its position: positions are looked up in ascending order.
    mark: (usize, Position),
}

impl<'t> Scanner<'t> {
    /// At the begin of a text.
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            mark: (0, Position::START),
        }
    }

    /// The next byte.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips spaces and whichever of these bytes comes once.
    pub fn skip(&mut self, once: u8) {
        self.skip_spaces();
        if self.peek() == Some(once) {
            self.at += 1;
            self.skip_spaces();
        }
    }

    /// Skips spaces and line ends.
    pub fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Skips a text with its quotes, and what cannot be one.
    pub fn skip_text(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    /// The text that begins here, which is skipped.
    pub fn text(&mut self) -> Option<String> {
        let start = self.at;
        self.skip_text();
        let written = self.text.get(start..self.at.min(self.text.len()))?;
        match written.contains('\\') {
            true => serde_json::from_str(written).ok(),
            false => written.strip_prefix('"')?.strip_suffix('"').map(str::to_owned),
        }
    }

    /// Skips a number, `true`, `false` or `null`.
    pub fn skip_word(&mut self) {
        while !matches!(
            self.peek(),
            None | Some(b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\r' | b'\n')
        ) {
            self.at += 1;
        }
    }

    /// Where the next byte is.
    pub fn position(&mut self) -> Position {
        let (from, mut position) = self.mark;
        let passed = self.text.get(from..self.at).unwrap_or_default();
        for character in passed.chars() {
            if character == '\n' {
                position.line += 1;
                position.column = 1;
            } else {
                position.column += 1;
            }
        }
        self.mark = (self.at, position);
        position
    }
}
