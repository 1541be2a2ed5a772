//! Reading templates once, when a configuration is made ready: texts, expressions, conditions and loops.

use weir_plugins_shared::expression::Expression;

/// Levels of blocks at most.
const MAX_DEPTH: usize = 32;

/// Begins and ends a text in which nothing is filled in.
const RAW: &str = "{-raw-}";

/// A template made ready.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) nodes: Vec<Node>,
    /// The names behind `_ctx.var.`.
    pub(super) variables: Vec<String>,
}

/// A part of a template.
#[derive(Debug)]
pub(super) enum Node {
    Text(String),
    /// A value, and whether it is escaped.
    Value(Expression, bool),
    /// Branches with their conditions; one without is always taken.
    If(Vec<(Option<Expression>, Vec<Node>)>),
    /// For each member of a list (or, if `is_any`, also of a map): the names of key and value.
    Each {
        key: String,
        value: String,
        of: Expression,
        is_any: bool,
        nodes: Vec<Node>,
    },
    /// For each number from the first to the second, by the third.
    Count {
        name: String,
        bounds: Vec<Expression>,
        nodes: Vec<Node>,
    },
    Local(String, Expression),
}

/// A piece of a template's text.
enum TemplateNode<'t> {
    Text(&'t str),
    Value(&'t str, bool),
    Statement(&'t str),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = pieces(text)?.into_iter();
        let (nodes, end) = block(&mut pieces, 0)?;
        match end {
            None => Ok(Self {
                nodes,
                variables: variables(text),
            }),
            Some(word) => Err(format!("unexpected '{word}'")),
        }
    }
}

fn pieces(text: &str) -> Result<Vec<TemplateNode<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut searched = 0;
    while let Some(at) = rest[searched..].find('{').map(|at| searched + at) {
        let (mark, end): (&str, &str) = match rest.as_bytes().get(at + 1) {
            Some(b'{') => ("{{", "}}"),
            Some(b'*') => ("{*", "*}"),
            Some(b'%') => ("{%", "%}"),
            Some(b'#') => ("{#", "#}"),
            // What stands between two of these is no template.
            Some(b'-') if rest[at..].starts_with(RAW) => (RAW, RAW),
            Some(sign @ (b'(' | b'[')) if is_include(&rest[at + 2..], *sign) => {
                return Err(
                    "templates within templates are not available in this version of Weir".to_owned(),
                );
            }
            _ => {
                searched = at + 1;
                continue;
            }
        };
        let inner = &rest[at + mark.len()..];
        let Some(length) = inner.find(end) else {
            searched = at + 1;
            continue;
        };
        pieces.push(TemplateNode::Text(&rest[..at]));
        if mark == RAW {
            pieces.push(TemplateNode::Text(&inner[..length]));
        }
        let content = inner[..length].trim();
        rest = &inner[length + end.len()..];
        match mark {
            "{{" => pieces.push(TemplateNode::Value(content, true)),
            "{*" => pieces.push(TemplateNode::Value(content, false)),
            "{%" => {
                pieces.push(TemplateNode::Statement(content));
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            _ => {}
        }
        searched = 0;
    }
    pieces.push(TemplateNode::Text(rest));
    Ok(pieces)
}

/// Whether `(…)}` or `[…]}` follows on the same line: else it is a text, as in JSON.
fn is_include(inner: &str, sign: u8) -> bool {
    let end = if sign == b'(' { ")}" } else { "]}" };
    let line = inner.lines().next().unwrap_or_default();
    let content = line.find(end).map(|at| &line[..at]);
    content.is_some_and(|content| !content.contains(['{', '"', ',']))
}

/// Nodes up to the end, or to a word that ends or continues a block.
fn block<'t>(
    pieces: &mut impl Iterator<Item = TemplateNode<'t>>,
    depth: usize,
) -> Result<(Vec<Node>, Option<&'t str>), String> {
    if depth > MAX_DEPTH {
        return Err(format!("more than {MAX_DEPTH} levels"));
    }
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        match piece {
            TemplateNode::Text("") => {}
            TemplateNode::Text(text) => nodes.push(Node::Text(text.to_owned())),
            TemplateNode::Value(text, escaped) => nodes.push(Node::Value(expression(text)?, escaped)),
            TemplateNode::Statement(text) => {
                let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                match word {
                    "end" | "else" | "elseif" => return Ok((nodes, Some(text))),
                    "if" => nodes.push(branches(rest, pieces, depth)?),
                    "for" => nodes.push(each(rest, pieces, depth)?),
                    "local" => {
                        let (name, value) = rest.split_once('=').ok_or("expected 'local NAME = …'")?;
                        nodes.push(Node::Local(named(name)?, expression(value.trim())?));
                    }
                    _ => return Err(format!("'{text}' is not available in this version of Weir")),
                }
            }
        }
    }
    Ok((nodes, None))
}

/// An expression that may have a value.
fn expression(text: &str) -> Result<Expression, String> {
    let expression = Expression::parse(text)?;
    match expression.missing_function() {
        None => Ok(expression),
        Some(name) => Err(format!(
            "the function '{name}' is not available in this version of Weir"
        )),
    }
}

fn condition(text: &str) -> Result<Expression, String> {
    let condition = text.trim_end().strip_suffix("then").ok_or("expected 'then'")?;
    expression(condition.trim())
}

fn branches<'t>(
    first: &str,
    pieces: &mut impl Iterator<Item = TemplateNode<'t>>,
    depth: usize,
) -> Result<Node, String> {
    let mut made = Vec::new();
    let mut test = Some(condition(first)?);
    loop {
        let is_last = test.is_none();
        let (nodes, end) = block(pieces, depth + 1)?;
        made.push((test, nodes));
        match end.map(|end| end.split_once(char::is_whitespace).unwrap_or((end, ""))) {
            Some(("end", _)) => return Ok(Node::If(made)),
            Some(("else", _)) if !is_last => test = None,
            Some(("elseif", rest)) if !is_last => test = Some(condition(rest)?),
            _ => return Err("expected 'end'".to_owned()),
        }
    }
}

fn each<'t>(
    text: &str,
    pieces: &mut impl Iterator<Item = TemplateNode<'t>>,
    depth: usize,
) -> Result<Node, String> {
    let head = text.trim_end().strip_suffix("do").ok_or("expected 'do'")?.trim();
    let (nodes, end) = block(pieces, depth + 1)?;
    if end != Some("end") {
        return Err("expected 'end'".to_owned());
    }
    if let Some((names, list)) = head.split_once(" in ") {
        let (key, value) = names.split_once(',').unwrap_or((names, "_"));
        let list = list.trim();
        let is_any = list.starts_with("pairs");
        let of = list.strip_prefix("ipairs").or_else(|| list.strip_prefix("pairs"));
        let of = of.and_then(|list| list.trim().strip_prefix('(')?.strip_suffix(')'));
        let of = of.ok_or("expected 'pairs(…)' or 'ipairs(…)'")?;
        return Ok(Node::Each {
            key: named(key)?,
            value: named(value)?,
            of: expression(of.trim())?,
            is_any,
            nodes,
        });
    }
    let (name, bounds) = head
        .split_once('=')
        .ok_or("expected 'for NAME = …, … do' or 'for …, … in … do'")?;
    let bounds = bounds.split(',').map(|bound| expression(bound.trim()));
    let bounds = bounds.collect::<Result<Vec<_>, _>>()?;
    match bounds.len() {
        2 | 3 => Ok(Node::Count {
            name: named(name)?,
            bounds,
            nodes,
        }),
        _ => Err("expected two or three bounds".to_owned()),
    }
}

fn named(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = name.bytes().all(is_word) && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    match is_name {
        true => Ok(name.to_owned()),
        false => Err(format!("'{name}' is not a valid name")),
    }
}

/// The names behind `_ctx.var.` in a template.
fn variables(text: &str) -> Vec<String> {
    let names = text.split("_ctx.var.").skip(1).map(|rest| {
        let end = rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.dedup();
    names
}
