//! From a text to words and signs, with the parts of texts that are programs themselves. It knows no grammar.

use std::fmt;

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Number(f64),
    /// A text: parts that stand for themselves, and programs in `\( )`.
    Text(Vec<StringPart>),
    /// A name or a keyword.
    Word(String),
    /// `.name`
    Field(String),
    /// `$name`
    Variable(String),
    /// `@name`
    Format(String),
    /// Anything else.
    Sign(&'static str),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum StringPart {
    Plain(String),
    Program(Vec<Token>),
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(_) => formatter.write_str("a text"),
            Self::Word(word) => formatter.write_str(word),
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Variable(name) => write!(formatter, "${name}"),
            Self::Format(name) => write!(formatter, "@{name}"),
            Self::Sign(sign) => formatter.write_str(sign),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 40] = [
    "?//=", "?//", "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//", "..", "and",
    "or", ".", "[", "]", "(", ")", "{", "}", "|", ",", ":", ";", "=", "<", ">", "+", "-", "*", "/", "%", "?",
    "$", "@", "\"",
];
/// How deep texts may be in each other.
const MAX_NESTING: usize = 16;

/// Splits a program into its words.
///
/// # Errors
/// What cannot be read.
pub fn lex(program: &str) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer {
        rest: program,
        nesting: 0,
    };
    lexer.words(false)
}

struct Lexer<'p> {
    rest: &'p str,
    nesting: usize,
}

fn is_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

impl<'p> Lexer<'p> {
    /// Reads until the end, or until the `)` that closes a text's program.
    fn words(&mut self, in_text: bool) -> Result<Vec<Token>, String> {
        let (mut tokens, mut depth) = (Vec::new(), 0usize);
        loop {
            self.skip();
            let Some(first) = self.rest.chars().next() else {
                return match in_text {
                    true => Err("a text has no end".to_owned()),
                    false => Ok(tokens),
                };
            };
            match first {
                '(' => depth += 1,
                ')' if depth == 0 && in_text => {
                    self.rest = &self.rest[1..];
                    return Ok(tokens);
                }
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            tokens.push(self.word(first)?);
        }
    }

    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return,
            }
        }
    }

    fn name(&mut self) -> &'p str {
        let end = self.rest.find(|it| !is_name(it)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name
    }

    fn word(&mut self, first: char) -> Result<Token, String> {
        let second = self.rest.chars().nth(1);
        let begins_name = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
        match first {
            '"' => {
                self.rest = &self.rest[1..];
                self.text().map(Token::Text)
            }
            '.' if begins_name(second) => {
                self.rest = &self.rest[1..];
                Ok(Token::Field(self.name().to_owned()))
            }
            '$' if begins_name(second) => {
                self.rest = &self.rest[1..];
                Ok(Token::Variable(self.name().to_owned()))
            }
            '@' if begins_name(second) => {
                self.rest = &self.rest[1..];
                Ok(Token::Format(self.name().to_owned()))
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|it| it.is_ascii_digit()) => self.number(),
            _ if begins_name(Some(first)) => Ok(Token::Word(self.name().to_owned())),
            _ => {
                let sign = SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
                let sign = *sign.ok_or_else(|| format!("unexpected '{first}'"))?;
                self.rest = &self.rest[sign.len()..];
                Ok(Token::Sign(sign))
            }
        }
    }

    fn number(&mut self) -> Result<Token, String> {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut length = digits(self.rest);
        if self.rest[length..].starts_with('.') {
            length += 1 + digits(&self.rest[length + 1..]);
        }
        if self.rest[length..].starts_with(['e', 'E']) {
            let sign = usize::from(self.rest[length + 1..].starts_with(['+', '-']));
            let exponent = digits(&self.rest[length + 1 + sign..]);
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        let number = text
            .parse()
            .map_err(|_| format!("'{text}' is not a valid number"))?;
        Ok(Token::Number(number))
    }

    /// Reads a text up to its closing quote.
    fn text(&mut self) -> Result<Vec<StringPart>, String> {
        const OPEN: &str = "a text has no end";
        let (mut parts, mut plain) = (Vec::new(), String::new());
        loop {
            let end = self.rest.find(['"', '\\']).ok_or(OPEN)?;
            plain.push_str(&self.rest[..end]);
            self.rest = &self.rest[end..];
            if let Some(rest) = self.rest.strip_prefix('"') {
                self.rest = rest;
                parts.push(StringPart::Plain(plain));
                return Ok(parts);
            }
            let escaped = self.rest.chars().nth(1).ok_or(OPEN)?;
            self.rest = &self.rest[1 + escaped.len_utf8()..];
            match escaped {
                '"' | '\\' | '/' => plain.push(escaped),
                'b' => plain.push('\u{8}'),
                'f' => plain.push('\u{c}'),
                'n' => plain.push('\n'),
                'r' => plain.push('\r'),
                't' => plain.push('\t'),
                'u' => plain.push(self.unicode()?),
                '(' => {
                    self.nesting += 1;
                    if self.nesting > MAX_NESTING {
                        return Err("texts are nested too deep".to_owned());
                    }
                    parts.push(StringPart::Plain(std::mem::take(&mut plain)));
                    parts.push(StringPart::Program(self.words(true)?));
                    self.nesting -= 1;
                }
                other => return Err(format!("unknown escape '\\{other}'")),
            }
        }
    }

    /// The four digits behind `\u`, and those of the second half of a pair.
    fn unicode(&mut self) -> Result<char, String> {
        const BAD: &str = "'\\u' needs four hexadecimal digits";
        let mut unit = || {
            let digits = self.rest.get(..4).ok_or(BAD)?;
            let unit = u16::from_str_radix(digits, 16).map_err(|_| BAD)?;
            self.rest = &self.rest[4..];
            Ok::<u16, &str>(unit)
        };
        let first = unit()?;
        let units = match (0xd800..0xdc00).contains(&first) && self.rest.starts_with("\\u") {
            true => {
                self.rest = &self.rest[2..];
                let digits = self.rest.get(..4).ok_or(BAD)?;
                let second = u16::from_str_radix(digits, 16).map_err(|_| BAD)?;
                self.rest = &self.rest[4..];
                vec![first, second]
            }
            false => vec![first],
        };
        let decoded = char::decode_utf16(units).next().and_then(Result::ok);
        Ok(decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}
