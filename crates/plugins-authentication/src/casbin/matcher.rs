//! Matchers: expressions over a request and a rule of the policy.

use super::functions::{Function, Patterns};

/// A text of a matcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operand {
    /// A field of the request, by its place.
    Request(usize),
    /// A field of the rule, by its place.
    Rule(usize),
    /// A text as it is.
    Text(String),
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Truth(bool),
    Equal(Operand, Operand),
    In(Operand, Vec<Operand>),
    Call(Function, Operand, Operand),
    /// Whether the first has the role of the second, by this kind of roles.
    Role(usize, Operand, Operand),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

/// What an expression may name.
pub(super) struct Names<'n> {
    pub(super) request: &'n [String],
    pub(super) rule: &'n [String],
    pub(super) roles: &'n [String],
}

/// What an expression is evaluated with.
pub(super) struct Values<'v> {
    pub(super) request: [&'v str; 3],
    pub(super) rule: &'v [String],
    pub(super) patterns: &'v Patterns,
    /// Whether the first has the role of the second.
    pub(super) has_role: &'v dyn Fn(usize, &str, &str) -> bool,
}

impl Operand {
    fn value<'o>(&'o self, values: &Values<'o>) -> &'o str {
        match self {
            Self::Request(at) => values.request.get(*at).copied().unwrap_or_default(),
            Self::Rule(at) => values.rule.get(*at).map_or("", String::as_str),
            Self::Text(text) => text,
        }
    }
}

impl Expression {
    /// Tells each function with the patterns that it may be called with: texts, and fields of these rules.
    pub(super) fn patterns(&self, rules: &[Vec<String>], tell: &mut impl FnMut(Function, &str)) {
        match self {
            Self::Call(function, _, Operand::Text(text)) => tell(*function, text),
            Self::Call(function, _, Operand::Rule(at)) => {
                let fields = rules.iter().filter_map(|rule| rule.get(*at));
                fields.for_each(|field| tell(*function, field));
            }
            Self::Not(inner) => inner.patterns(rules, tell),
            Self::And(left, right) | Self::Or(left, right) => {
                left.patterns(rules, tell);
                right.patterns(rules, tell);
            }
            _ => {}
        }
    }

    pub(super) fn holds<'e>(&'e self, values: &Values<'e>) -> bool {
        match self {
            Self::Truth(truth) => *truth,
            Self::Equal(left, right) => left.value(values) == right.value(values),
            Self::In(one, list) => {
                let one = one.value(values);
                list.iter().any(|it| it.value(values) == one)
            }
            Self::Call(function, value, pattern) => {
                let (value, pattern) = (value.value(values), pattern.value(values));
                values.patterns.holds(*function, value, pattern)
            }
            Self::Role(kind, user, role) => (values.has_role)(*kind, user.value(values), role.value(values)),
            Self::Not(inner) => !inner.holds(values),
            Self::And(left, right) => left.holds(values) && right.holds(values),
            Self::Or(left, right) => left.holds(values) || right.holds(values),
        }
    }
}

/// How deep expressions may be nested.
const MAX_DEPTH: usize = 64;

/// Reads a matcher.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(text: &str, names: &Names<'_>) -> Result<Expression, String> {
    let mut reader = Reader {
        rest: text,
        names,
        depth: 0,
    };
    let expression = reader.or()?;
    match reader.rest.trim_start() {
        "" => Ok(expression),
        rest => Err(format!(
            "expected the end of the matcher before '{}'",
            shortened(rest)
        )),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(20).collect()
}

struct Reader<'r> {
    rest: &'r str,
    names: &'r Names<'r>,
    depth: usize,
}

impl<'r> Reader<'r> {
    fn take(&mut self, mark: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(mark) {
            Some(behind) => {
                self.rest = behind;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, mark: &str) -> Result<(), String> {
        match self.take(mark) {
            true => Ok(()),
            false => Err(format!(
                "expected '{mark}' before '{}'",
                shortened(self.rest.trim_start())
            )),
        }
    }

    fn or(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("expected at most {MAX_DEPTH} levels"));
        }
        let mut left = self.and()?;
        while self.take("||") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, String> {
        let mut left = self.not()?;
        while self.take("&&") {
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, String> {
        let mut turned = false;
        while !self.rest.trim_start().starts_with("!=") && self.take("!") {
            turned = !turned;
        }
        let inner = self.primary()?;
        Ok(if turned {
            Expression::Not(Box::new(inner))
        } else {
            inner
        })
    }

    fn primary(&mut self) -> Result<Expression, String> {
        if self.take("(") {
            let inner = self.or()?;
            self.need(")")?;
            return Ok(inner);
        }
        let start = self.rest.trim_start();
        if start.starts_with(['"', '\'']) {
            let operand = self.operand()?;
            return self.comparison(operand);
        }
        let word = self.word()?;
        match word {
            "true" => return Ok(Expression::Truth(true)),
            "false" => return Ok(Expression::Truth(false)),
            _ => {}
        }
        if self.take("(") {
            return self.call(word);
        }
        let operand = self.field(word)?;
        self.comparison(operand)
    }

    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let first = self.operand()?;
        self.need(",")?;
        let second = self.operand()?;
        if self.take(",") {
            return Err(format!(
                "'{name}' with more than two arguments (domains) is not available"
            ));
        }
        self.need(")")?;
        if let Some(kind) = self.names.roles.iter().position(|role| role == name) {
            return Ok(Expression::Role(kind, first, second));
        }
        let function = Function::named(name).ok_or_else(|| format!("there is no function '{name}'"))?;
        Ok(Expression::Call(function, first, second))
    }

    fn comparison(&mut self, left: Operand) -> Result<Expression, String> {
        if self.take("==") {
            return Ok(Expression::Equal(left, self.operand()?));
        }
        if self.take("!=") {
            let equal = Expression::Equal(left, self.operand()?);
            return Ok(Expression::Not(Box::new(equal)));
        }
        let rest = self.rest.trim_start();
        if let Some(behind) = rest.strip_prefix("in").filter(|it| it.starts_with([' ', '('])) {
            self.rest = behind;
            self.need("(")?;
            let mut list = vec![self.operand()?];
            while self.take(",") {
                list.push(self.operand()?);
            }
            self.need(")")?;
            return Ok(Expression::In(left, list));
        }
        Err(format!("expected a comparison before '{}'", shortened(rest)))
    }

    fn word(&mut self) -> Result<&'r str, String> {
        let start = self.rest.trim_start();
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.');
        let end = start.find(|character| !is_part(character)).unwrap_or(start.len());
        if end == 0 {
            return Err(format!("expected a name before '{}'", shortened(start)));
        }
        self.rest = &start[end..];
        Ok(&start[..end])
    }

    fn operand(&mut self) -> Result<Operand, String> {
        let start = self.rest.trim_start();
        if let Some(mark) = start.chars().next().filter(|it| matches!(it, '"' | '\'')) {
            let (text, behind) = start[1..]
                .split_once(mark)
                .ok_or_else(|| "expected the end of a text".to_owned())?;
            self.rest = behind;
            return Ok(Operand::Text(text.to_owned()));
        }
        let word = self.word()?;
        self.field(word)
    }

    fn field(&self, word: &str) -> Result<Operand, String> {
        let place = |fields: &[String], name: &str| fields.iter().position(|it| it == name);
        let found = match word.split_once('.') {
            Some(("r", name)) => place(self.names.request, name).map(Operand::Request),
            Some(("p", name)) => place(self.names.rule, name).map(Operand::Rule),
            _ => None,
        };
        found.ok_or_else(|| format!("there is no field '{word}'"))
    }
}
