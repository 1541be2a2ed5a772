//! The functions of matchers, as Casbin's documentation describes them.

use regex::Regex;
use std::collections::HashMap;
use std::net::IpAddr;

/// A function of two texts: a value and a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Function {
    KeyMatch,
    KeyMatch2,
    KeyMatch3,
    KeyMatch4,
    KeyMatch5,
    RegexMatch,
    IpMatch,
    GlobMatch,
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "keyMatch" => Self::KeyMatch,
            "keyMatch2" => Self::KeyMatch2,
            "keyMatch3" => Self::KeyMatch3,
            "keyMatch4" => Self::KeyMatch4,
            "keyMatch5" => Self::KeyMatch5,
            "regexMatch" => Self::RegexMatch,
            "ipMatch" => Self::IpMatch,
            "globMatch" => Self::GlobMatch,
            _ => return None,
        })
    }

    /// The regular expression of a pattern; `None` if the function does not use one.
    fn expression(self, pattern: &str) -> Option<String> {
        Some(match self {
            Self::KeyMatch2 => template(pattern, Names::Colon),
            Self::KeyMatch3 | Self::KeyMatch5 => template(pattern, Names::Braces),
            Self::RegexMatch => pattern.to_owned(),
            Self::GlobMatch => glob(pattern),
            Self::KeyMatch | Self::KeyMatch4 | Self::IpMatch => return None,
        })
    }
}

/// Patterns of a policy that are ready to be used.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<Function, HashMap<String, Regex>>);

impl Patterns {
    /// Makes a pattern ready. One that is not an expression is left out.
    pub(super) fn add(&mut self, function: Function, pattern: &str) {
        let expression = function.expression(pattern);
        if let Some(regex) = expression.and_then(|it| Regex::new(&it).ok()) {
            self.0
                .entry(function)
                .or_default()
                .insert(pattern.to_owned(), regex);
        }
    }

    /// Whether the value matches the pattern. An invalid pattern matches nothing.
    pub(super) fn holds(&self, function: Function, value: &str, pattern: &str) -> bool {
        let value = match function {
            Function::KeyMatch => {
                return match pattern.split_once('*') {
                    Some((start, _)) => value.starts_with(start),
                    None => value == pattern,
                };
            }
            Function::KeyMatch4 => return same_names(pattern, value),
            Function::IpMatch => return is_in_network(value, pattern),
            Function::KeyMatch5 => value.split('?').next().unwrap_or_default(),
            _ => value,
        };
        if let Some(known) = self.0.get(&function).and_then(|known| known.get(pattern)) {
            return known.is_match(value);
        }
        let made = function.expression(pattern).and_then(|it| Regex::new(&it).ok());
        made.is_some_and(|regex| regex.is_match(value))
    }
}

/// How a path pattern writes its named parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// `/:id`
    Colon,
    /// `/{id}`
    Braces,
}

/// A path pattern as a regular expression: `*` stands for anything, a name for one part.
fn template(pattern: &str, names: Names) -> String {
    let mut out = String::from("^");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '*' => out.push_str(".*"),
            ':' if names == Names::Colon => {
                while characters.next_if(|character| *character != '/').is_some() {}
                out.push_str("[^/]+");
            }
            '{' if names == Names::Braces => {
                for character in characters.by_ref() {
                    if character == '}' {
                        break;
                    }
                }
                out.push_str("[^/]+");
            }
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push('$');
    out
}

/// `keyMatch4`: the same name stands for the same text.
fn same_names(pattern: &str, value: &str) -> bool {
    let mut names = Vec::new();
    let mut rest = pattern;
    let mut expression = String::from("^");
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, behind)) = behind.split_once('}') else {
            return false;
        };
        let part = template(before, Names::Braces);
        expression.push_str(part[1..].strip_suffix('$').unwrap_or_default());
        expression.push_str("([^/]+)");
        names.push(name);
        rest = behind;
    }
    let end = template(rest, Names::Braces);
    expression.push_str(&end[1..]);
    let Some(found) = Regex::new(&expression).ok().and_then(|regex| {
        regex.captures(value).map(|found| {
            (1..=names.len())
                .map(|at| found.get(at).map_or("", |it| it.as_str()).to_owned())
                .collect::<Vec<_>>()
        })
    }) else {
        return false;
    };
    names.iter().zip(&found).all(|(name, text)| {
        let first = names.iter().position(|other| other == name);
        first.is_some_and(|first| found[first] == *text)
    })
}

/// `*` stands for anything but a `/`, `?` for one letter.
fn glob(pattern: &str) -> String {
    let mut out = String::from("^");
    for character in pattern.chars() {
        match character {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push('$');
    out
}

fn is_in_network(value: &str, pattern: &str) -> bool {
    let Ok(address) = value.parse::<IpAddr>() else {
        return false;
    };
    match pattern.parse::<ipnet::IpNet>() {
        Ok(network) => network.contains(&address),
        Err(_) => pattern.parse() == Ok(address),
    }
}
