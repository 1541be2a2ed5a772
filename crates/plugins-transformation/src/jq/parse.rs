//! From words and signs to a program, whose nesting and length are bounded. Whether its names stand for something is
//! checked elsewhere.

use super::lex::{StringPart, Token, lex};
use super::tree::{Definition, Node, Pattern, TextPart};
use super::value::Value;
use std::sync::Arc;

/// How deep a program may be nested.
const MAX_NESTING: usize = 100;
/// Words and signs of a program at most: operators in a row are nested, too.
const MAX_TOKENS: usize = 800;

/// Reads a program.
///
/// # Errors
/// What cannot be read.
pub fn parse(program: &str) -> Result<Node, String> {
    let tokens = lex(program)?;
    if count(&tokens) > MAX_TOKENS {
        return Err(format!("expected at most {MAX_TOKENS} words and signs"));
    }
    if tokens.is_empty() {
        return Ok(Node::Identity);
    }
    whole(tokens, 0)
}

/// The words and signs of a program, with those of programs in its texts.
fn count(tokens: &[Token]) -> usize {
    let inner = |token: &Token| match token {
        Token::Text(parts) => parts
            .iter()
            .map(|part| match part {
                StringPart::Plain(_) => 0,
                StringPart::Program(tokens) => count(tokens),
            })
            .sum(),
        _ => 0,
    };
    tokens.iter().map(|token| 1 + inner(token)).sum()
}

/// Reads definitions only.
///
/// # Errors
/// What cannot be read.
pub fn definitions(text: &str) -> Result<Vec<Arc<Definition>>, String> {
    let mut parser = Parser {
        tokens: lex(text)?,
        at: 0,
        nesting: 0,
    };
    let mut found = Vec::new();
    while parser.word("def") {
        found.push(Arc::new(parser.definition()?));
    }
    match parser.at == parser.tokens.len() {
        true => Ok(found),
        false => Err("expected a definition".to_owned()),
    }
}

fn whole(tokens: Vec<Token>, nesting: usize) -> Result<Node, String> {
    let mut parser = Parser {
        tokens,
        at: 0,
        nesting,
    };
    let node = parser.pipe()?;
    match parser.peek() {
        None => Ok(node),
        Some(other) => Err(format!("unexpected {other}")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
}

const KEYWORDS: [&str; 18] = [
    "def", "as", "if", "then", "elif", "else", "end", "try", "catch", "reduce", "foreach", "label", "and",
    "or", "import", "include", "module", "__loc__",
];

fn boxed(node: Node) -> Box<Node> {
    Box::new(node)
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn fault<T>(&self, expected: &str) -> Result<T, String> {
        match self.peek() {
            None => Err(format!("expected {expected} at the end")),
            Some(found) => Err(format!("expected {expected}, found {found}")),
        }
    }

    fn require(&mut self, sign: &str) -> Result<(), String> {
        match self.sign(sign) {
            true => Ok(()),
            false => self.fault(sign),
        }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), String> {
        match self.word(word) {
            true => Ok(()),
            false => self.fault(word),
        }
    }

    fn variable(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(Token::Variable(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.fault("a variable"),
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err("the program is nested too deep".to_owned());
        }
        let node = read(self);
        self.nesting -= 1;
        node
    }

    fn pipe(&mut self) -> Result<Node, String> {
        self.nested(|parser| {
            if parser.word("def") {
                let definition = Arc::new(parser.definition()?);
                return Ok(Node::Define(definition, boxed(parser.pipe()?)));
            }
            if parser.word("label") {
                let name = parser.variable()?;
                parser.require("|")?;
                return Ok(Node::Label(name, boxed(parser.pipe()?)));
            }
            let left = parser.comma()?;
            match parser.sign("|") {
                true => Ok(Node::Pipe(boxed(left), boxed(parser.pipe()?))),
                false => Ok(left),
            }
        })
    }

    /// Behind `def`.
    fn definition(&mut self) -> Result<Definition, String> {
        let name = match self.peek() {
            Some(Token::Word(name)) if !KEYWORDS.contains(&name.as_str()) => name.clone(),
            _ => return self.fault("a name"),
        };
        self.at += 1;
        let mut parameters = Vec::new();
        if self.sign("(") {
            loop {
                match self.peek() {
                    Some(Token::Word(name)) => parameters.push(name.clone()),
                    Some(Token::Variable(name)) => parameters.push(format!("${name}")),
                    _ => return self.fault("a parameter"),
                }
                self.at += 1;
                if !self.sign(";") {
                    break;
                }
            }
            self.require(")")?;
        }
        self.require(":")?;
        let body = self.pipe()?;
        self.require(";")?;
        Ok(Definition {
            name,
            parameters,
            body,
        })
    }

    fn comma(&mut self) -> Result<Node, String> {
        let mut left = self.operators(0)?;
        while self.sign(",") {
            left = Node::Comma(boxed(left), boxed(self.operators(0)?));
        }
        Ok(left)
    }

    /// Operators from this strength on: `//`, assignments, `or`, `and`, comparisons, sums, products.
    fn operators(&mut self, strength: u8) -> Result<Node, String> {
        let mut left = self.postfix()?;
        loop {
            let Some((found, sign)) = self.operator().filter(|(found, _)| *found >= strength) else {
                return Ok(left);
            };
            self.at += 1;
            // `//` groups to the right, assignments and comparisons not at all, the others to the left.
            let right = self.nested(|parser| parser.operators(if found == 0 { 0 } else { found + 1 }))?;
            let (one, other) = (boxed(left), boxed(right));
            left = match sign {
                "//" => Node::Alternative(one, other),
                "=" => Node::Assign(one, other),
                "|=" => Node::Update(one, other),
                "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => Node::ArithmeticUpdate(sign, one, other),
                "or" => Node::Or(one, other),
                "and" => Node::And(one, other),
                "+" => Node::Arithmetic('+', one, other),
                "-" => Node::Arithmetic('-', one, other),
                "*" => Node::Arithmetic('*', one, other),
                "/" => Node::Arithmetic('/', one, other),
                "%" => Node::Arithmetic('%', one, other),
                sign => Node::Compare(sign, one, other),
            };
        }
    }

    fn operator(&self) -> Option<(u8, &'static str)> {
        match self.peek()? {
            Token::Word(word) if word == "or" => Some((2, "or")),
            Token::Word(word) if word == "and" => Some((3, "and")),
            Token::Sign(sign) => Some((
                match *sign {
                    "//" => 0,
                    "=" | "|=" | "+=" | "-=" | "*=" | "/=" | "%=" | "//=" => 1,
                    "==" | "!=" | "<" | "<=" | ">" | ">=" => 4,
                    "+" | "-" => 5,
                    "*" | "/" | "%" => 6,
                    _ => return None,
                },
                sign,
            )),
            _ => None,
        }
    }

    /// A term with what stands behind it, and what it is bound to.
    fn postfix(&mut self) -> Result<Node, String> {
        if self.sign("-") {
            let term = self.nested(Self::postfix)?;
            return Ok(Node::Negate(boxed(term)));
        }
        let mut term = self.nested(Self::term)?;
        loop {
            term = match self.peek() {
                Some(Token::Field(name)) => {
                    let name = Node::Literal(Value::text(name.as_str()));
                    self.at += 1;
                    Node::Index(boxed(term), boxed(name))
                }
                Some(Token::Sign("?")) => {
                    self.at += 1;
                    Node::Try(boxed(term), None)
                }
                Some(Token::Sign("[")) => self.brackets(term)?,
                Some(Token::Sign("."))
                    if matches!(
                        self.tokens.get(self.at + 1),
                        Some(Token::Text(_) | Token::Sign("["))
                    ) =>
                {
                    self.at += 1;
                    match self.is_sign("[") {
                        true => self.brackets(term)?,
                        false => Node::Index(boxed(term), boxed(self.text(None)?)),
                    }
                }
                Some(Token::Word(word)) if word == "as" => {
                    self.at += 1;
                    let pattern = self.nested(Self::pattern)?;
                    self.require("|")?;
                    return Ok(Node::Bind(boxed(term), pattern, boxed(self.pipe()?)));
                }
                _ => return Ok(term),
            };
        }
    }

    /// `[…]` behind a term.
    fn brackets(&mut self, term: Node) -> Result<Node, String> {
        self.require("[")?;
        if self.sign("]") {
            return Ok(Node::Iterate(boxed(term)));
        }
        if self.sign(":") {
            let end = self.pipe()?;
            self.require("]")?;
            return Ok(Node::Slice(boxed(term), None, Some(boxed(end))));
        }
        let first = self.pipe()?;
        if self.sign(":") {
            let end = match self.is_sign("]") {
                true => None,
                false => Some(boxed(self.pipe()?)),
            };
            self.require("]")?;
            return Ok(Node::Slice(boxed(term), Some(boxed(first)), end));
        }
        self.require("]")?;
        Ok(Node::Index(boxed(term), boxed(first)))
    }

    fn term(&mut self) -> Result<Node, String> {
        let Some(token) = self.peek().cloned() else {
            return self.fault("a term");
        };
        match token {
            Token::Text(_) => return self.text(None),
            Token::Format(name) => {
                self.at += 1;
                return match self.peek() {
                    Some(Token::Text(_)) => self.text(Some(name)),
                    _ => Ok(Node::Format(name)),
                };
            }
            _ => self.at += 1,
        }
        match token {
            Token::Number(number) => Ok(Node::Literal(Value::number(number))),
            Token::Field(name) => {
                let name = Node::Literal(Value::text(name));
                Ok(Node::Index(boxed(Node::Identity), boxed(name)))
            }
            Token::Variable(name) => Ok(Node::Variable(name)),
            Token::Sign("..") => Ok(Node::Recurse),
            Token::Sign(".") => match self.peek() {
                Some(Token::Text(_)) => Ok(Node::Index(boxed(Node::Identity), boxed(self.text(None)?))),
                _ => Ok(Node::Identity),
            },
            Token::Sign("(") => {
                let inner = self.pipe()?;
                self.require(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                if self.sign("]") {
                    return Ok(Node::List(None));
                }
                let inner = self.pipe()?;
                self.require("]")?;
                Ok(Node::List(Some(boxed(inner))))
            }
            Token::Sign("{") => self.object(),
            Token::Word(word) => self.keyword(&word),
            other => Err(format!("unexpected {other}")),
        }
    }

    fn keyword(&mut self, word: &str) -> Result<Node, String> {
        match word {
            "if" => self.condition(),
            "try" => {
                let body = self.try_body()?;
                let handler = match self.word("catch") {
                    true => Some(boxed(self.try_body()?)),
                    false => None,
                };
                Ok(Node::Try(boxed(body), handler))
            }
            "reduce" | "foreach" => self.fold(word == "reduce"),
            "def" => {
                let definition = Arc::new(self.definition()?);
                Ok(Node::Define(definition, boxed(self.pipe()?)))
            }
            "break" => Ok(Node::Break(self.variable()?)),
            "null" => Ok(Node::Literal(Value::Null)),
            "true" | "false" => Ok(Node::Literal(Value::Bool(word == "true"))),
            word if KEYWORDS.contains(&word) => Err(format!("unexpected {word}")),
            name => {
                let mut arguments = Vec::new();
                if self.sign("(") {
                    loop {
                        arguments.push(self.pipe()?);
                        if !self.sign(";") {
                            break;
                        }
                    }
                    self.require(")")?;
                }
                Ok(Node::Call(name.to_owned(), arguments))
            }
        }
    }

    /// A term with what stands behind it, but without a binding.
    fn try_body(&mut self) -> Result<Node, String> {
        let body = self.postfix()?;
        match body {
            Node::Bind(..) => Err("expected no 'as' in a try".to_owned()),
            body => Ok(body),
        }
    }

    /// Behind `if` or `elif`.
    fn condition(&mut self) -> Result<Node, String> {
        let condition = boxed(self.pipe()?);
        self.expect_word("then")?;
        let then = boxed(self.pipe()?);
        if self.word("elif") {
            let other = self.nested(Self::condition)?;
            return Ok(Node::If(condition, then, Some(boxed(other))));
        }
        let other = match self.word("else") {
            true => Some(boxed(self.pipe()?)),
            false => None,
        };
        self.expect_word("end")?;
        Ok(Node::If(condition, then, other))
    }

    /// Behind `reduce` or `foreach`.
    fn fold(&mut self, is_reduce: bool) -> Result<Node, String> {
        let mut source = self.nested(Self::term)?;
        while self.is_sign("[") || matches!(self.peek(), Some(Token::Field(_))) || self.is_sign("?") {
            source = match self.peek().cloned() {
                Some(Token::Field(name)) => {
                    self.at += 1;
                    Node::Index(boxed(source), boxed(Node::Literal(Value::text(name))))
                }
                Some(Token::Sign("?")) => {
                    self.at += 1;
                    Node::Try(boxed(source), None)
                }
                _ => self.brackets(source)?,
            };
        }
        self.expect_word("as")?;
        let pattern = self.nested(Self::pattern)?;
        self.require("(")?;
        let first = boxed(self.pipe()?);
        self.require(";")?;
        let update = boxed(self.pipe()?);
        let extract = match !is_reduce && self.sign(";") {
            true => Some(boxed(self.pipe()?)),
            false => None,
        };
        self.require(")")?;
        Ok(match is_reduce {
            true => Node::Reduce(boxed(source), pattern, first, update),
            false => Node::Foreach(boxed(source), pattern, first, update, extract),
        })
    }

    fn pattern(&mut self) -> Result<Pattern, String> {
        if self.sign("[") {
            let mut items = Vec::new();
            loop {
                items.push(self.nested(Self::pattern)?);
                if !self.sign(",") {
                    break;
                }
            }
            self.require("]")?;
            return Ok(Pattern::List(items));
        }
        if !self.sign("{") {
            return self.variable().map(Pattern::Variable);
        }
        let mut members = Vec::new();
        loop {
            let (own, name) = match self.peek().cloned() {
                Some(Token::Variable(name)) => {
                    self.at += 1;
                    (Some(name.clone()), Node::Literal(Value::text(name)))
                }
                _ => (None, self.member_name()?),
            };
            let inner = match self.sign(":") {
                true => Some(self.nested(Self::pattern)?),
                false if own.is_some() => None,
                false => return self.fault(":"),
            };
            members.push((own, name, inner));
            if !self.sign(",") {
                break;
            }
        }
        self.require("}")?;
        Ok(Pattern::Object(members))
    }

    fn member_name(&mut self) -> Result<Node, String> {
        match self.peek().cloned() {
            Some(Token::Word(name)) => {
                self.at += 1;
                Ok(Node::Literal(Value::text(name)))
            }
            Some(Token::Text(_)) => self.text(None),
            Some(Token::Format(name)) => {
                self.at += 1;
                self.text(Some(name))
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                let name = self.pipe()?;
                self.require(")")?;
                Ok(name)
            }
            _ => self.fault("the name of a member"),
        }
    }

    /// Behind `{`.
    fn object(&mut self) -> Result<Node, String> {
        let mut members = Vec::new();
        while !self.is_sign("}") {
            // Behind some names, the value may be left out.
            let (name, own) = match self.peek() {
                Some(Token::Variable(name)) => {
                    let name = name.clone();
                    self.at += 1;
                    (
                        Node::Literal(Value::text(name.as_str())),
                        Some(Some(Node::Variable(name))),
                    )
                }
                Some(Token::Word(_) | Token::Text(_) | Token::Format(_)) => (self.member_name()?, Some(None)),
                _ => (self.member_name()?, None),
            };
            let value = match (self.sign(":"), own) {
                (true, _) => Some(self.member_value()?),
                (false, Some(own)) => own,
                (false, None) => return self.fault(":"),
            };
            members.push((name, value));
            if !self.sign(",") {
                break;
            }
        }
        self.require("}")?;
        Ok(Node::Object(members))
    }

    /// A value of an object: no comma, which parts members.
    fn member_value(&mut self) -> Result<Node, String> {
        let left = self.nested(|parser| parser.operators(0))?;
        match self.sign("|") {
            true => Ok(Node::Pipe(boxed(left), boxed(self.nested(Self::member_value)?))),
            false => Ok(left),
        }
    }

    fn text(&mut self, format: Option<String>) -> Result<Node, String> {
        let Some(Token::Text(parts)) = self.peek().cloned() else {
            return self.fault("a text");
        };
        self.at += 1;
        if let [StringPart::Plain(text)] = parts.as_slice() {
            return Ok(Node::Literal(Value::text(text.as_str())));
        }
        let mut read = Vec::with_capacity(parts.len());
        for part in parts {
            read.push(match part {
                StringPart::Plain(text) => TextPart::Plain(text),
                StringPart::Program(tokens) => TextPart::Program(whole(tokens, self.nesting + 1)?),
            });
        }
        Ok(Node::Text(format, read))
    }
}
