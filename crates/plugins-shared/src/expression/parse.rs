//! Reading expressions into trees of bounded depth. What they come to is found elsewhere.

use super::builtin;
use super::value::Value;

/// Levels of an expression at most.
const MAX_DEPTH: usize = 64;
/// Words and signs of an expression at most; together they bound how deep an evaluation goes.
const MAX_TOKENS: usize = 400;

/// An expression.
#[derive(Debug, Clone)]
pub enum Expression {
    /// A value as written.
    Literal(Value),
    /// A variable.
    Name(String),
    /// A member: of what, by which key.
    Member(Box<Expression>, Box<Expression>),
    /// A new list of these; without any, an empty table.
    List(Vec<Expression>),
    /// A call: of what, with which arguments.
    Call(Box<Expression>, Vec<Expression>),
    /// `of:name(…)`.
    Method(Box<Expression>, String, Vec<Expression>),
    /// An operator and its operand.
    Unary(&'static str, Box<Expression>),
    /// An operator and both operands.
    Binary(&'static str, Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Text(Vec<u8>),
    Number(f64),
    Symbol(&'static str),
}

/// Longer ones first.
const SYMBOLS: [&str; 24] = [
    "...", "..", "==", "~=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "#", "(", ")", "[", "]",
    ".", ":", ",", "{", "}",
];

/// Binary operators by how tightly they bind.
const LEVELS: [&[&str]; 6] = [
    &["or"],
    &["and"],
    &["==", "~=", "<=", ">=", "<", ">"],
    &[".."],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Where the `)` stands in `text` that closes what was opened before it.
pub fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut letters = text.bytes().enumerate();
    while let Some((at, character)) = letters.next() {
        match (quote, character) {
            (Some(_), b'\\') => {
                letters.next();
            }
            (Some(open), character) if open == character => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(character),
            (None, b'(') => depth += 1,
            (None, b')') if depth == 0 => return Some(at),
            (None, b')') => depth -= 1,
            _ => {}
        }
    }
    None
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let tokens = tokens(text)?;
        if tokens.len() > MAX_TOKENS {
            return Err(format!("more than {MAX_TOKENS} words and signs"));
        }
        let mut parser = Parser {
            tokens: &tokens,
            at: 0,
        };
        let expression = parser.binary(0, 0)?;
        match parser.tokens.get(parser.at) {
            None => Ok(expression),
            Some(token) => Err(format!("unexpected {} in '{text}'", display(token))),
        }
    }
}

impl Expression {
    /// The name of a function that is called and that there is not, so that the expression never has a value.
    pub fn missing_function(&self) -> Option<String> {
        let of_all = |all: &[Self]| all.iter().find_map(Self::missing_function);
        match self {
            Self::Literal(_) | Self::Name(_) => None,
            Self::List(members) => of_all(members),
            Self::Member(of, key) => of.missing_function().or_else(|| key.missing_function()),
            Self::Call(function, arguments) => {
                let called = match function.as_ref() {
                    Self::Name(name) => (!builtin::is_function(name)).then(|| name.clone()),
                    Self::Member(of, key) => match (of.as_ref(), key.as_ref()) {
                        (Self::Name(library), Self::Literal(Value::Text(name))) => {
                            let name = String::from_utf8_lossy(name);
                            let is_known = builtin::of_library(library, &name).is_some();
                            (!is_known).then(|| format!("{library}.{name}"))
                        }
                        _ => None,
                    },
                    _ => None,
                };
                called.or_else(|| of_all(arguments))
            }
            Self::Method(of, name, arguments) => {
                let is_known = builtin::of_texts(name).is_some();
                let called = (!is_known).then(|| name.clone());
                called
                    .or_else(|| of.missing_function())
                    .or_else(|| of_all(arguments))
            }
            Self::Unary(_, of) => of.missing_function(),
            Self::Binary(_, left, right) => left.missing_function().or_else(|| right.missing_function()),
        }
    }
}

fn display(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("'{name}'"),
        Token::Text(_) => "a text".to_owned(),
        Token::Number(number) => number.to_string(),
        Token::Symbol(symbol) => format!("'{symbol}'"),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = if first.is_ascii_alphabetic() || first == '_' {
            let end = rest
                .find(|it: char| !it.is_ascii_alphanumeric() && it != '_')
                .unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            end
        } else if first.is_ascii_digit() {
            let end = rest
                .find(|it: char| !it.is_ascii_alphanumeric() && it != '.')
                .unwrap_or(rest.len());
            // `1..2` joins texts.
            let end = rest[..end].find("..").unwrap_or(end);
            let number = rest[..end]
                .parse()
                .map_err(|_| format!("'{}' is not a valid number", &rest[..end]))?;
            tokens.push(Token::Number(number));
            end
        } else if first == '"' || first == '\'' {
            let (content, end) = quoted(rest)?;
            tokens.push(Token::Text(content));
            end
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        } else {
            return Err(format!("'{first}' is not allowed in an expression"));
        };
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

/// The content of the quoted text at the start, and how many bytes it takes.
fn quoted(text: &str) -> Result<(Vec<u8>, usize), String> {
    let mut letters = text.char_indices();
    let open = letters.next().map(|(_, character)| character);
    let mut content = String::new();
    while let Some((at, character)) = letters.next() {
        if Some(character) == open {
            return Ok((content.into_bytes(), at + 1));
        }
        if character != '\\' {
            content.push(character);
            continue;
        }
        match letters.next().map(|(_, character)| character) {
            Some('n') => content.push('\n'),
            Some('r') => content.push('\r'),
            Some('t') => content.push('\t'),
            Some(other) => content.push(other),
            None => break,
        }
    }
    Err(format!("{text} has no closing quote"))
}

struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl Parser<'_> {
    fn next_is(&mut self, symbol: &str) -> bool {
        let is_it = matches!(self.tokens.get(self.at), Some(Token::Symbol(next)) if *next == symbol);
        self.at += usize::from(is_it);
        is_it
    }

    fn require(&mut self, symbol: &str) -> Result<(), String> {
        match self.next_is(symbol) {
            true => Ok(()),
            false => Err(format!("expected '{symbol}', found {}", self.found())),
        }
    }

    fn found(&self) -> String {
        self.tokens
            .get(self.at)
            .map_or_else(|| "the end".to_owned(), display)
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        let next = match self.tokens.get(self.at)? {
            Token::Symbol(symbol) => symbol,
            Token::Name(name) => name.as_str(),
            _ => return None,
        };
        let operator = LEVELS.get(level)?.iter().find(|operator| **operator == next)?;
        self.at += 1;
        Some(operator)
    }

    fn binary(&mut self, level: usize, depth: usize) -> Result<Expression, String> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels"));
        }
        if level == LEVELS.len() {
            return self.unary(depth + 1);
        }
        let mut left = self.binary(level + 1, depth)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1, depth + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} levels"));
        }
        for operator in ["-", "#"] {
            if self.next_is(operator) {
                return Ok(Expression::Unary(operator, Box::new(self.unary(depth + 1)?)));
            }
        }
        if matches!(self.tokens.get(self.at), Some(Token::Name(name)) if name == "not") {
            self.at += 1;
            return Ok(Expression::Unary("not", Box::new(self.unary(depth + 1)?)));
        }
        let base = self.postfix(depth)?;
        match self.next_is("^") {
            true => Ok(Expression::Binary(
                "^",
                Box::new(base),
                Box::new(self.unary(depth + 1)?),
            )),
            false => Ok(base),
        }
    }

    fn postfix(&mut self, depth: usize) -> Result<Expression, String> {
        let mut base = self.primary(depth)?;
        let mut links = 0;
        loop {
            links += 1;
            if links > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} levels"));
            }
            if self.next_is(".") {
                let name = Value::Text(self.name()?.into_bytes());
                base = Expression::Member(Box::new(base), Box::new(Expression::Literal(name)));
            } else if self.next_is("[") {
                let key = self.binary(0, depth + 1)?;
                self.require("]")?;
                base = Expression::Member(Box::new(base), Box::new(key));
            } else if self.next_is("(") {
                base = Expression::Call(Box::new(base), self.list(")", depth)?);
            } else if self.next_is(":") {
                let name = self.name()?;
                self.require("(")?;
                base = Expression::Method(Box::new(base), name, self.list(")", depth)?);
            } else {
                return Ok(base);
            }
        }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.get(self.at) {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name.clone())
            }
            _ => Err(format!("expected a name, found {}", self.found())),
        }
    }

    /// Arguments or members up to the closing sign.
    fn list(&mut self, closing: &str, depth: usize) -> Result<Vec<Expression>, String> {
        let mut members = Vec::new();
        if self.next_is(closing) {
            return Ok(members);
        }
        loop {
            members.push(self.binary(0, depth + 1)?);
            if !self.next_is(",") {
                self.require(closing)?;
                return Ok(members);
            }
        }
    }

    fn primary(&mut self, depth: usize) -> Result<Expression, String> {
        if self.next_is("(") {
            let inner = self.binary(0, depth + 1)?;
            self.require(")")?;
            return Ok(inner);
        }
        if self.next_is("{") {
            return Ok(Expression::List(self.list("}", depth)?));
        }
        let literal = match self.tokens.get(self.at) {
            Some(Token::Number(number)) => Value::Number(*number),
            Some(Token::Text(text)) => Value::Text(text.clone()),
            Some(Token::Name(name)) => match name.as_str() {
                "nil" => Value::Nil,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "function" => return Err("functions are not available in this version of Weir".to_owned()),
                "and" | "or" | "not" => return Err(format!("unexpected '{name}'")),
                name => {
                    self.at += 1;
                    return Ok(Expression::Name(name.to_owned()));
                }
            },
            _ => return Err(format!("expected an expression, found {}", self.found())),
        };
        self.at += 1;
        Ok(Expression::Literal(literal))
    }
}
