//! Patterns as Lua's `string.gsub`, `string.match` and `string.find` know them.
//!
//! A match tries what can follow, and goes back where it does not: each try takes a step of the call's budget.

use super::value::{EvaluationError, MAX_TEXT, Value};
use weir_plugin::WorkBudget;

/// The most captures of a pattern.
const MAX_CAPTURES: usize = 32;

/// The longest pattern, in bytes: a step looks through no more than that.
const MAX_PATTERN: usize = 1024;

/// How many tries may wait for another one.
const MAX_DEPTH: usize = 200;

const MALFORMED: EvaluationError = EvaluationError("a pattern is malformed");

/// Where a match ends.
type Matched = Result<Option<usize>, EvaluationError>;

/// What a pair of brackets in a pattern has taken.
#[derive(Clone, Copy)]
enum Capture {
    Open(usize),
    Part(usize, usize),
    Place(usize),
}

/// A text, a pattern, and what is known of the match that is tried.
pub(super) struct Matcher<'m> {
    text: &'m [u8],
    pattern: &'m [u8],
    is_anchored: bool,
    work: &'m WorkBudget,
    captures: Vec<Capture>,
    depth: usize,
}

impl<'m> Matcher<'m> {
    /// The text may be as long as a body: a step more for each of its bytes, once for the call and not for each search.
    ///
    /// # Errors
    /// The pattern is too long.
    pub(super) fn new(
        text: &'m [u8],
        pattern: &'m [u8],
        work: &'m WorkBudget,
    ) -> Result<Self, EvaluationError> {
        if pattern.len() > MAX_PATTERN {
            return Err(EvaluationError("a pattern is too long"));
        }
        work.allow_body(text.len());
        let anchored = pattern.strip_prefix(b"^");
        Ok(Self {
            text,
            pattern: anchored.unwrap_or(pattern),
            is_anchored: anchored.is_some(),
            work,
            captures: Vec::new(),
            depth: 0,
        })
    }

    /// The first match at or behind a place: where it begins and ends.
    ///
    /// # Errors
    /// If the pattern is malformed, or the search takes too long.
    pub(super) fn find(&mut self, from: usize) -> Result<Option<(usize, usize)>, EvaluationError> {
        let last = if self.is_anchored { from } else { self.text.len() };
        for start in from..=last {
            if let Some(end) = self.begin(start)? {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }

    /// The text with a replacement for the first matches.
    ///
    /// # Errors
    /// As [`Matcher::find`]; and if the result is too long.
    pub(super) fn replace(&mut self, by: &[u8], most: f64) -> Result<Vec<u8>, EvaluationError> {
        let (mut out, mut at, mut count) = (Vec::new(), 0, 0.0);
        while count < most {
            let end = self.begin(at)?;
            if let Some(end) = end {
                count += 1.0;
                self.fill(by, at..end, &mut out)?;
            }
            match (end, self.text.get(at)) {
                (Some(end), _) if end > at => at = end,
                (_, Some(byte)) => {
                    out.push(*byte);
                    at += 1;
                }
                _ => break,
            }
            if out.len() > MAX_TEXT {
                return Err(EvaluationError("a text is too long"));
            }
            if self.is_anchored {
                break;
            }
        }
        if out.len() + self.text.len() - at > MAX_TEXT {
            return Err(EvaluationError("a text is too long"));
        }
        out.extend_from_slice(&self.text[at..]);
        Ok(out)
    }

    /// What the first brackets have taken; the whole match, if there are none.
    pub(super) fn first(&self, whole: std::ops::Range<usize>) -> Result<Value, EvaluationError> {
        match self.captures.first() {
            None => Ok(Value::Text(self.text[whole].to_vec())),
            Some(Capture::Part(from, to)) => Ok(Value::Text(self.text[*from..*to].to_vec())),
            Some(Capture::Place(at)) => Ok(Value::Number((at + 1) as f64)),
            Some(Capture::Open(_)) => Err(MALFORMED),
        }
    }

    /// Writes a replacement, in which `%1` stands for what the first brackets have taken.
    fn fill(
        &self,
        by: &[u8],
        whole: std::ops::Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), EvaluationError> {
        self.work.spend_bytes(by.len())?;
        let mut bytes = by.iter().copied();
        while let Some(byte) = bytes.next() {
            match byte {
                b'%' => match bytes.next().ok_or(MALFORMED)? {
                    b'0' => out.extend_from_slice(&self.text[whole.clone()]),
                    b'1' if self.captures.is_empty() => out.extend_from_slice(&self.text[whole.clone()]),
                    digit @ b'1'..=b'9' => match self.captures.get(usize::from(digit - b'1')) {
                        Some(Capture::Part(from, to)) => out.extend_from_slice(&self.text[*from..*to]),
                        Some(Capture::Place(at)) => out.extend_from_slice((at + 1).to_string().as_bytes()),
                        _ => return Err(MALFORMED),
                    },
                    other => out.push(other),
                },
                other => out.push(other),
            }
            if out.len() > MAX_TEXT {
                return Err(EvaluationError("a text is too long"));
            }
        }
        Ok(())
    }

    fn begin(&mut self, start: usize) -> Matched {
        self.captures.clear();
        self.depth = 0;
        self.follow(start, 0)
    }

    /// Tries the pattern from `next` on, at a place of the text.
    fn follow(&mut self, at: usize, next: usize) -> Matched {
        if self.depth == MAX_DEPTH {
            return Err(EvaluationError("a pattern is too deep"));
        }
        self.depth += 1;
        let matched = self.steps(at, next);
        self.depth -= 1;
        matched
    }

    fn steps(&mut self, mut at: usize, mut next: usize) -> Matched {
        loop {
            self.work.spend(1)?;
            let pattern = self.pattern;
            match (pattern.get(next), pattern.get(next + 1)) {
                (None, _) => return Ok(Some(at)),
                (Some(b'('), Some(b')')) => return self.take(Capture::Place(at), at, next + 2),
                (Some(b'('), _) => return self.take(Capture::Open(at), at, next + 1),
                (Some(b')'), _) => return self.close(at, next + 1),
                (Some(b'$'), None) => return Ok((at == self.text.len()).then_some(at)),
                (Some(b'%'), Some(b'b' | b'f' | b'0'..=b'9')) => match self.special(at, next)? {
                    Some((end, behind)) => (at, next) = (end, behind),
                    None => return Ok(None),
                },
                _ => {
                    let end = item_end(pattern, next)?;
                    let item = &pattern[next..end];
                    let fits = self.fits(at, item);
                    match pattern.get(end) {
                        Some(b'?') => {
                            if fits && let Some(found) = self.follow(at + 1, end + 1)? {
                                return Ok(Some(found));
                            }
                            next = end + 1;
                        }
                        Some(b'+') if !fits => return Ok(None),
                        Some(b'+') => return self.longest(at + 1, item, end + 1),
                        Some(b'*') => return self.longest(at, item, end + 1),
                        Some(b'-') => return self.shortest(at, item, end + 1),
                        _ if fits => (at, next) = (at + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// `%b()`, `%f[…]` and `%1`: where the text and the pattern go on.
    fn special(&self, at: usize, next: usize) -> Result<Option<(usize, usize)>, EvaluationError> {
        match self.pattern[next + 1] {
            b'b' => {
                let [open, close] = *self.pattern.get(next + 2..next + 4).ok_or(MALFORMED)? else {
                    return Err(MALFORMED);
                };
                Ok(self.balanced(at, open, close)?.map(|end| (end, next + 4)))
            }
            b'f' => {
                let end = item_end(self.pattern, next + 2)?;
                let set = &self.pattern[next + 2..end];
                let before = at.checked_sub(1).map_or(0, |place| self.text[place]);
                let here = self.text.get(at).copied().unwrap_or(0);
                match set.starts_with(b"[") {
                    true => Ok((!is_in(before, set) && is_in(here, set)).then_some((at, end))),
                    false => Err(MALFORMED),
                }
            }
            digit => {
                let index = usize::from(digit).checked_sub(usize::from(b'1'));
                let Some(Capture::Part(from, to)) = index.and_then(|index| self.captures.get(index)) else {
                    return Err(MALFORMED);
                };
                self.work.spend_bytes(to - from)?;
                let is_same = self.text[at..].starts_with(&self.text[*from..*to]);
                Ok(is_same.then_some((at + to - from, next + 2)))
            }
        }
    }

    /// The end of what begins with `open` and goes on to the `close` that belongs to it.
    fn balanced(&self, at: usize, open: u8, close: u8) -> Matched {
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for (index, byte) in self.text.iter().enumerate().skip(at + 1) {
            self.work.spend(1)?;
            if *byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(index + 1));
                }
            } else if *byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    fn take(&mut self, capture: Capture, at: usize, next: usize) -> Matched {
        if self.captures.len() == MAX_CAPTURES {
            return Err(EvaluationError("a pattern has too many captures"));
        }
        self.captures.push(capture);
        let length = self.captures.len();
        let matched = self.follow(at, next)?;
        if matched.is_none() {
            self.captures.truncate(length - 1);
        }
        Ok(matched)
    }

    fn close(&mut self, at: usize, next: usize) -> Matched {
        let is_open = |capture: &Capture| matches!(capture, Capture::Open(_));
        let index = self.captures.iter().rposition(is_open).ok_or(MALFORMED)?;
        let before = self.captures[index];
        if let Capture::Open(from) = before {
            self.captures[index] = Capture::Part(from, at);
        }
        let matched = self.follow(at, next)?;
        if matched.is_none() {
            self.captures[index] = before;
        }
        Ok(matched)
    }

    /// As many of an item as there are, then fewer.
    fn longest(&mut self, at: usize, item: &[u8], next: usize) -> Matched {
        let mut end = at;
        while self.fits(end, item) {
            self.work.spend(1)?;
            end += 1;
        }
        loop {
            if let Some(found) = self.follow(end, next)? {
                return Ok(Some(found));
            }
            if end == at {
                return Ok(None);
            }
            end -= 1;
        }
    }

    /// None of an item, then more.
    fn shortest(&mut self, mut at: usize, item: &[u8], next: usize) -> Matched {
        loop {
            if let Some(found) = self.follow(at, next)? {
                return Ok(Some(found));
            }
            if !self.fits(at, item) {
                return Ok(None);
            }
            at += 1;
        }
    }

    fn fits(&self, at: usize, item: &[u8]) -> bool {
        self.text.get(at).is_some_and(|byte| is_in(*byte, item))
    }
}

/// The end of the item that begins at a place of a pattern: a byte, a class or a set.
fn item_end(pattern: &[u8], at: usize) -> Result<usize, EvaluationError> {
    match *pattern.get(at).ok_or(MALFORMED)? {
        b'%' if at + 1 < pattern.len() => Ok(at + 2),
        b'%' => Err(MALFORMED),
        b'[' => {
            let is_not = pattern.get(at + 1) == Some(&b'^');
            let mut end = at + 1 + usize::from(is_not);
            // A bracket at the beginning is one of the set.
            loop {
                end += match pattern.get(end).ok_or(MALFORMED)? {
                    b'%' => 2,
                    _ => 1,
                };
                if pattern.get(end).ok_or(MALFORMED)? == &b']' {
                    return Ok(end + 1);
                }
            }
        }
        _ => Ok(at + 1),
    }
}

/// Whether a byte is one of an item.
fn is_in(byte: u8, item: &[u8]) -> bool {
    match item {
        [b'.'] => true,
        [b'%', class] => is_of(byte, *class),
        [b'[', b'^', set @ .., b']'] if !set.is_empty() => !is_in_set(byte, set),
        [b'[', set @ .., b']'] => is_in_set(byte, set),
        [own] => byte == *own,
        _ => false,
    }
}

fn is_in_set(byte: u8, mut set: &[u8]) -> bool {
    while !set.is_empty() {
        let found;
        (found, set) = match set {
            [b'%', class, rest @ ..] => (is_of(byte, *class), rest),
            [from, b'-', to, rest @ ..] => ((*from..=*to).contains(&byte), rest),
            [own, rest @ ..] => (byte == *own, rest),
            [] => (false, set),
        };
        if found {
            return true;
        }
    }
    false
}

/// Whether a byte is of a class (`%d`), or not of it (`%D`).
fn is_of(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return byte == class,
    };
    is != class.is_ascii_uppercase()
}
