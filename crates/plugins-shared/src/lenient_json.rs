//! JSON as lua-cjson, the parser of Lua programs, accepts it: its extensions beyond valid JSON, and its messages for
//! what it refuses. For valid JSON there is `serde_json`.

use serde_json::Value;
use std::borrow::Cow;
use weir_plugin::WorkBudget;

/// Parses JSON of which nothing is passed on. Texts may hold control characters, and need not be UTF-8: invalid bytes
/// become U+FFFD.
///
/// # Errors
/// The place and reason of the fault.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let lenient = String::from_utf8_lossy(text);
    serde_json::from_str(&escape_controls(&lenient)).map_err(|_| fault(text))
}

/// Parses JSON that is passed on, also in parts, so nothing of it may be lost. Texts may hold control characters. The
/// work beyond valid JSON is charged to the call.
///
/// # Errors
/// The place and reason of the fault. The text must be UTF-8.
pub fn parse_whole(text: &[u8], work: &WorkBudget) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    work.spend(text.len() / 8)
        .map_err(|exhausted| exhausted.to_string())?;
    let read = std::str::from_utf8(text).ok();
    let read = read.and_then(|text| serde_json::from_str(&escape_controls(text)).ok());
    read.ok_or_else(|| fault(text))
}

/// Escapes control characters that stand in texts, so that a strict reader takes them too. It leaves those that lua-cjson
/// does not take: NUL, which ends its text, and one after a backslash.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < b' ') {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let (mut in_text, mut after_backslash) = (false, false);
    for character in text.chars() {
        match character {
            '"' if !after_backslash => in_text = !in_text,
            '\u{1}'..='\u{1f}' if in_text && !after_backslash => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let code = character as usize;
                escaped.push_str("\\u00");
                escaped.push(char::from(DIGITS[code / 16]));
                escaped.push(char::from(DIGITS[code % 16]));
                continue;
            }
            _ => {}
        }
        after_backslash = in_text && character == '\\' && !after_backslash;
        escaped.push(character);
    }
    Cow::Owned(escaped)
}

/// What may stand next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text,
    Number,
    Boolean,
    Null,
    Colon,
    Comma,
    End,
    Bad(&'static str),
}

impl Token {
    fn as_str(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text => "T_STRING",
            Self::Number => "T_NUMBER",
            Self::Boolean => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Bad(what) => what,
        }
    }
}

/// The place and reason why a text is not valid JSON. The text is known to be invalid.
pub fn fault(text: &[u8]) -> String {
    let mut reader = Reader { text, at: 0 };
    match reader.document() {
        Err(message) => message,
        // What this reader is more lenient about, such as text that is not UTF-8.
        Ok(()) => "Expected value but found invalid token at character 1".to_owned(),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<(), String> {
        let found = self.next();
        self.value(found, 0)?;
        let (token, at) = self.next();
        match token {
            Token::End => Ok(()),
            _ => expected("the end", token, at),
        }
    }

    fn value(&mut self, (token, at): (Token, usize), depth: usize) -> Result<(), String> {
        const DEEPEST: usize = 1000;
        match token {
            _ if depth > DEEPEST => Err(format!(
                "Found too many nested data structures ({}) at character {at}",
                DEEPEST + 1
            )),
            Token::Text | Token::Number | Token::Boolean | Token::Null => Ok(()),
            Token::ObjectBegin => self.object(depth + 1),
            Token::ArrayBegin => self.array(depth + 1),
            _ => expected("value", token, at),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), String> {
        let mut first = self.next();
        if first.0 == Token::ObjectEnd {
            return Ok(());
        }
        loop {
            if first.0 != Token::Text {
                return expected("object key string", first.0, first.1);
            }
            match self.next() {
                (Token::Colon, _) => {}
                (token, at) => return expected("colon", token, at),
            }
            let value = self.next();
            self.value(value, depth)?;
            match self.next() {
                (Token::ObjectEnd, _) => return Ok(()),
                (Token::Comma, _) => first = self.next(),
                (token, at) => return expected("comma or object end", token, at),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), String> {
        let mut item = self.next();
        if item.0 == Token::ArrayEnd {
            return Ok(());
        }
        loop {
            self.value(item, depth)?;
            match self.next() {
                (Token::ArrayEnd, _) => return Ok(()),
                (Token::Comma, _) => item = self.next(),
                (token, at) => return expected("comma or array end", token, at),
            }
        }
    }

    /// The next token, and the character that it begins at, from 1.
    fn next(&mut self) -> (Token, usize) {
        while self
            .text
            .get(self.at)
            .is_some_and(|byte| b" \t\r\n".contains(byte))
        {
            self.at += 1;
        }
        let start = self.at;
        let token = match self.text.get(start) {
            None => Token::End,
            Some(b'"') => return self.quoted(start),
            Some(byte) => {
                let (token, length) = match byte {
                    b'{' => (Token::ObjectBegin, 1),
                    b'}' => (Token::ObjectEnd, 1),
                    b'[' => (Token::ArrayBegin, 1),
                    b']' => (Token::ArrayEnd, 1),
                    b':' => (Token::Colon, 1),
                    b',' => (Token::Comma, 1),
                    b'-' | b'0'..=b'9' => self.number(),
                    _ => self.word(),
                };
                self.at += length;
                token
            }
        };
        (token, start + 1)
    }

    fn number(&self) -> (Token, usize) {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let is_number = std::str::from_utf8(&rest[..length]).is_ok_and(|text| text.parse::<f64>().is_ok());
        match is_number {
            true => (Token::Number, length),
            false => (Token::Bad("invalid number"), length),
        }
    }

    fn word(&self) -> (Token, usize) {
        let rest = &self.text[self.at..];
        for (word, token) in [
            ("true", Token::Boolean),
            ("false", Token::Boolean),
            ("null", Token::Null),
        ] {
            if rest.starts_with(word.as_bytes()) {
                return (token, word.len());
            }
        }
        (Token::Bad("invalid token"), 1)
    }

    /// A text. A fault in it is reported with its place.
    fn quoted(&mut self, start: usize) -> (Token, usize) {
        let mut at = start + 1;
        loop {
            match self.text.get(at) {
                None | Some(0) => return (Token::Bad("unexpected end of string"), at + 1),
                Some(b'"') => {
                    self.at = at + 1;
                    return (Token::Text, start + 1);
                }
                Some(b'\\') => match self.text.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                    Some(b'u') => {
                        let digits = self.text.get(at + 2..at + 6).unwrap_or_default();
                        if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                            return (Token::Bad("invalid unicode escape code"), at + 1);
                        }
                        at += 6;
                    }
                    _ => return (Token::Bad("invalid escape code"), at + 1),
                },
                Some(_) => at += 1,
            }
        }
    }
}

fn expected(what: &str, token: Token, at: usize) -> Result<(), String> {
    Err(format!(
        "Expected {what} but found {} at character {at}",
        token.as_str()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_may_hold_controls() {
        for (text, wanted) in [
            (
                &b"{\"a\n\": \"x\\\"\ty\xff\"}\n"[..],
                serde_json::json!({"a\n": "x\"\ty\u{fffd}"}),
            ),
            (b" [\"a\\\\\r\"]", serde_json::json!(["a\\\r"])),
            (b"{\"a\": 1}", serde_json::json!({"a": 1})),
        ] {
            assert_eq!(parse(text).expect("valid enough"), wanted);
        }
        let every: String = ('\u{1}'..='\u{1f}').collect();
        assert_eq!(
            parse(format!("[\"{every}\"]").as_bytes()),
            Ok(serde_json::json!([every]))
        );
        for (text, wanted) in [
            (
                &b"{\"a\n\": }"[..],
                "Expected value but found T_OBJ_END at character 8",
            ),
            (
                b"[\"a\\\nb\"]",
                "Expected value but found invalid escape code at character 4",
            ),
            (
                b"[\"\ta\0b\"]",
                "Expected value but found unexpected end of string at character 5",
            ),
        ] {
            assert_eq!(parse(text), Err(wanted.to_owned()));
            assert_eq!(parse_whole(text, &WorkBudget::default()), Err(wanted.to_owned()));
        }
    }

    #[test]
    fn what_is_passed_on_is_whole_and_is_work() {
        let controls = format!("[\"{}\"]", "\n".repeat(80_000));
        for (text, done, wanted) in [
            (&b"[\"a\"]"[..], 0, Ok("a".to_owned())),
            (controls.as_bytes(), 10_000, Ok("\n".repeat(80_000))),
            (b"[\"\xc3\xa4\t\"]", 0, Ok("ä\t".to_owned())),
            (
                b"[\"a\tb\xff\"]",
                1,
                Err("Expected value but found invalid token at character 1".to_owned()),
            ),
        ] {
            let work = WorkBudget::default();
            let read = parse_whole(text, &work).map(|value| value[0].as_str().expect("a text").to_owned());
            assert_eq!((read, work.done()), (wanted, done));
        }
        let spent = WorkBudget::default();
        assert!(spent.spend(weir_plugin::WORK_STEPS as usize).is_ok());
        assert_eq!(
            parse_whole(controls.as_bytes(), &spent),
            Err("the work for this call goes beyond its budget".to_owned())
        );
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, wanted) in [
            (
                "{a}",
                "Expected object key string but found invalid token at character 2",
            ),
            ("", "Expected value but found T_END at character 1"),
            (
                "not json",
                "Expected value but found invalid token at character 1",
            ),
            (
                "name=jack",
                "Expected value but found invalid token at character 1",
            ),
            ("{\"a\":}", "Expected value but found T_OBJ_END at character 6"),
            ("[1,]", "Expected value but found T_ARR_END at character 4"),
            (
                "{\"a\":1",
                "Expected comma or object end but found T_END at character 7",
            ),
            (
                "[1 2]",
                "Expected comma or array end but found T_NUMBER at character 4",
            ),
            ("{} x", "Expected the end but found invalid token at character 4"),
            ("{\"a\" 1}", "Expected colon but found T_NUMBER at character 6"),
            (
                "{\"a",
                "Expected object key string but found unexpected end of string at character 4",
            ),
            ("[-]", "Expected value but found invalid number at character 2"),
            (
                &"[".repeat(5000),
                "Found too many nested data structures (1001) at character 1002",
            ),
        ] {
            assert_eq!(fault(text.as_bytes()), wanted, "{text}");
        }
    }
}
