//! Fills the configuration templates, which read like the files they become. `{{name}}` is replaced by a value. A line
//! with nothing but `{{each NAME}}` repeats the lines up to its `{{end}}` for 1 to N, with the number as `{{NAME}}`;
//! one with `{{if NAME}}` keeps them only if that is given. Nothing more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, Result, bail};

/// What a template is filled with.
#[derive(Debug, Clone, Default)]
pub struct Values {
    texts: BTreeMap<&'static str, String>,
    set: BTreeSet<&'static str>,
    counts: BTreeMap<&'static str, u32>,
    single_path: bool,
}

impl Values {
    /// Gives `{{name}}` a value.
    pub fn text(&mut self, name: &'static str, value: impl ToString) -> &mut Self {
        self.texts.insert(name, value.to_string());
        self
    }

    /// Keeps the lines of `{{if name}}` when `kept`.
    pub fn flag(&mut self, name: &'static str, kept: bool) -> &mut Self {
        if kept {
            self.set.insert(name);
        }
        self
    }

    /// Repeats the lines of `{{each name}}`.
    pub fn count(&mut self, name: &'static str, count: u32) -> &mut Self {
        self.counts.insert(name, count);
        self
    }

    /// Inside `{{each route}}` the path is `/hello` when there is one route only, else `/hello1`, `/hello2`, …
    pub fn routes(&mut self, routes: u32) -> &mut Self {
        self.single_path = routes == 1;
        self.count("route", routes)
    }
}

enum TemplateNode<'t> {
    Text(&'t str),
    Value(&'t str),
    If(&'t str, Vec<TemplateNode<'t>>),
    Each(&'t str, Vec<TemplateNode<'t>>),
}

/// Renders `template`.
///
/// # Errors
/// A placeholder without a value, a block without an end or an end without a block.
pub fn render(template: &str, values: &Values) -> Result<String> {
    let mut rest = template;
    let parts = parse(&mut rest, false)?;
    let mut out = String::with_capacity(template.len());
    write_parts(&parts, values, None, &mut out)?;
    Ok(out)
}

fn parse<'t>(rest: &mut &'t str, inside: bool) -> Result<Vec<TemplateNode<'t>>> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(length);
        *rest = after;
        let directive = line
            .trim()
            .strip_prefix("{{")
            .and_then(|line| line.strip_suffix("}}"));
        match directive.and_then(|words| words.split_once(' ').or((words == "end").then_some((words, "")))) {
            Some(("end", "")) if inside => return Ok(parts),
            Some(("end", "")) => bail!("an {{{{end}}}} without a block"),
            Some(("if", name)) => parts.push(TemplateNode::If(name, parse(rest, true)?)),
            Some(("each", name)) => parts.push(TemplateNode::Each(name, parse(rest, true)?)),
            _ => parse_line(line, &mut parts)?,
        }
    }
    if inside {
        bail!("a block without {{{{end}}}}");
    }
    Ok(parts)
}

fn parse_line<'t>(mut line: &'t str, parts: &mut Vec<TemplateNode<'t>>) -> Result<()> {
    while let Some((before, after)) = line.split_once("{{") {
        let (name, after) = after
            .split_once("}}")
            .context("a placeholder that does not end on its line")?;
        parts.push(TemplateNode::Text(before));
        parts.push(TemplateNode::Value(name));
        line = after;
    }
    parts.push(TemplateNode::Text(line));
    Ok(())
}

fn write_parts(
    parts: &[TemplateNode<'_>],
    values: &Values,
    at: Option<(&str, u32)>,
    out: &mut String,
) -> Result<()> {
    for part in parts {
        match part {
            TemplateNode::Text(text) => out.push_str(text),
            TemplateNode::Value(name) => write_value(name, values, at, out)?,
            TemplateNode::If(name, parts) if values.set.contains(name) => {
                write_parts(parts, values, at, out)?
            }
            TemplateNode::If(..) => {}
            TemplateNode::Each(name, parts) => {
                for number in 1..=values.counts.get(name).copied().unwrap_or(0) {
                    write_parts(parts, values, Some((name, number)), out)?;
                }
            }
        }
    }
    Ok(())
}

fn write_value(name: &str, values: &Values, at: Option<(&str, u32)>, out: &mut String) -> Result<()> {
    match (name, at) {
        (_, Some((counted, number))) if counted == name => {
            write!(out, "{number}").context("writing to a string")
        }
        ("path", Some(("route", _))) if values.single_path => {
            out.push_str("/hello");
            Ok(())
        }
        ("path", Some(("route", number))) => write!(out, "/hello{number}").context("writing to a string"),
        _ => {
            let text = values.texts.get(name);
            out.push_str(text.with_context(|| format!("the template's {{{{{name}}}}} has no value"))?);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_conditions_and_repetitions() {
        let cases = [
            ("listen {{listen}};", Some("listen 127.0.0.1:1;")),
            (
                "a {{listen}} {b: {{listen}}}",
                Some("a 127.0.0.1:1 {b: 127.0.0.1:1}"),
            ),
            (
                "r:\n{{each route}}\n- {{path}} {{listen}} {{route}}\n{{end}}\n#END\n",
                Some("r:\n- /hello1 127.0.0.1:1 1\n- /hello2 127.0.0.1:1 2\n#END\n"),
            ),
            ("{{each change}}\nx\n{{end}}\n", Some("")),
            (
                "{{if key}}\nyes\n{{end}}\n{{if jwt}}\nno\n{{end}}\n",
                Some("yes\n"),
            ),
            (
                "{{each route}}\n  {{if key}}\n{{route}}\n  {{end}}\n{{if jwt}}\nno\n{{end}}\n{{end}}\n",
                Some("1\n2\n"),
            ),
            ("{{unknown}}", None),
            ("{{path}}", None),
            ("{{open", None),
            ("{{each route}}\nx\n", None),
            ("{{end}}\n", None),
        ];
        let mut values = Values::default();
        values
            .text("listen", "127.0.0.1:1")
            .flag("key", true)
            .flag("jwt", false)
            .routes(2);
        for (template, expected) in cases {
            assert_eq!(render(template, &values).ok().as_deref(), expected, "{template}");
        }
        values.routes(1);
        let one = render("{{each route}}\n{{path}}\n{{end}}\n", &values).unwrap();
        assert_eq!(one, "/hello\n");
    }
}
