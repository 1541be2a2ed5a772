//! The tree of a program: what it is made of. How it is read and run stands elsewhere.

use super::value::Value;
use std::sync::Arc;

/// A part of a program.
#[derive(Debug)]
pub enum Node {
    Identity,
    /// `..`
    Recurse,
    Literal(Value),
    /// A format by itself.
    Format(String),
    /// A text with programs in it, each shown by the format.
    Text(Option<String>, Vec<TextPart>),
    Index(Box<Node>, Box<Node>),
    Slice(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
    Iterate(Box<Node>),
    Try(Box<Node>, Option<Box<Node>>),
    Pipe(Box<Node>, Box<Node>),
    Comma(Box<Node>, Box<Node>),
    Negate(Box<Node>),
    Arithmetic(char, Box<Node>, Box<Node>),
    Compare(&'static str, Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Alternative(Box<Node>, Box<Node>),
    /// `=`
    Assign(Box<Node>, Box<Node>),
    /// `|=`
    Update(Box<Node>, Box<Node>),
    /// `+=` and the like; `/` twice for `//=`.
    ArithmeticUpdate(&'static str, Box<Node>, Box<Node>),
    If(Box<Node>, Box<Node>, Option<Box<Node>>),
    Reduce(Box<Node>, Pattern, Box<Node>, Box<Node>),
    Foreach(Box<Node>, Pattern, Box<Node>, Box<Node>, Option<Box<Node>>),
    Define(Arc<Definition>, Box<Node>),
    Bind(Box<Node>, Pattern, Box<Node>),
    Label(String, Box<Node>),
    Break(String),
    Variable(String),
    Call(String, Vec<Node>),
    List(Option<Box<Node>>),
    /// Names with their values; without one, the member of this name of the input.
    Object(Vec<(Node, Option<Node>)>),
}

/// A part of a text.
#[derive(Debug)]
pub enum TextPart {
    Plain(String),
    Program(Node),
}

/// Names for parts of a value.
#[derive(Debug)]
pub enum Pattern {
    Variable(String),
    List(Vec<Pattern>),
    Object(Vec<(Option<String>, Node, Option<Pattern>)>),
}

/// A function.
#[derive(Debug)]
pub struct Definition {
    pub name: String,
    /// A parameter that begins with `$` is a value, others are programs.
    pub parameters: Vec<String>,
    pub body: Node,
}
