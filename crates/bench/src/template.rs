//! Fills the configuration templates: `{{name}}` is replaced by a value, and the lines between `{{each route}}` and
//! `{{end}}` are repeated for routes 1 to N. Nothing more, so that a template reads like the file it becomes.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

const EACH_ROUTE: &str = "{{each route}}\n";
const END: &str = "{{end}}\n";
const ROUTE: &str = "{{route}}";

/// Renders `template` with `values` (name, value) and its repeated part once for each of `routes`.
///
/// # Errors
/// A placeholder without a value, or a repeated part without an end.
pub fn render(template: &str, values: &[(&str, &str)], routes: u32) -> Result<String> {
    let mut once = template.to_owned();
    for (name, value) in values {
        once = once.replace(&format!("{{{{{name}}}}}"), value);
    }
    let text = repeat_routes(&once, routes)?;
    if let Some(at) = text.find("{{") {
        let rest: String = text[at..].chars().take(40).collect();
        bail!("the template has a placeholder without a value: {rest}");
    }
    Ok(text)
}

fn repeat_routes(text: &str, routes: u32) -> Result<String> {
    let Some((before, rest)) = text.split_once(EACH_ROUTE) else {
        return Ok(text.to_owned());
    };
    let (block, after) = rest
        .split_once(END)
        .context("the template has {{each route}} without {{end}}")?;
    let pieces: Vec<&str> = block.split(ROUTE).collect();
    let mut out = String::with_capacity(text.len() + (block.len() + 8) * routes as usize);
    out.push_str(before);
    for route in 1..=routes {
        for (index, piece) in pieces.iter().enumerate() {
            if index > 0 {
                write!(out, "{route}").context("writing to a string")?;
            }
            out.push_str(piece);
        }
    }
    out.push_str(after);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_repeated_parts() {
        let cases = [
            ("listen {{listen}};", 0, Some("listen 127.0.0.1:1;")),
            (
                "a {{listen}} b {{listen}}",
                0,
                Some("a 127.0.0.1:1 b 127.0.0.1:1"),
            ),
            (
                "r:\n{{each route}}\n- /h{{route}} {{listen}} {{route}}\n{{end}}\n#END\n",
                2,
                Some("r:\n- /h1 127.0.0.1:1 1\n- /h2 127.0.0.1:1 2\n#END\n"),
            ),
            ("{{unknown}}", 0, None),
            ("{{each route}}\nx\n", 3, None),
        ];
        for (template, routes, expected) in cases {
            let rendered = render(template, &[("listen", "127.0.0.1:1")], routes).ok();
            assert_eq!(rendered.as_deref(), expected, "{template}");
        }
    }
}
