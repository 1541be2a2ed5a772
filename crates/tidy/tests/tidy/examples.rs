//! Every configuration that the documentation shows is one that Weir takes.

use crate::assert_none;
use crate::repository::{documents, files, read};
use weir_model::{Diagnostic, Model, document};
use weir_snapshot::PersistentState;

/// A whole configuration in a document.
struct Example {
    /// The document.
    path: String,
    /// The line of its first line.
    line: usize,
    text: String,
}

/// The blocks of YAML in a document.
fn blocks(path: &str, text: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut block: Option<Example> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match &mut block {
            None if line.trim() == "```yaml" => {
                block = Some(Example {
                    path: path.to_owned(),
                    line: number + 1,
                    text: String::new(),
                });
            }
            None => {}
            Some(_) if line.trim() == "```" => found.extend(block.take()),
            Some(block) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
    }
    found
}

type Translated = Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>>;

/// Reads a text through the dialect that it is for; `None`: it is a part of a configuration only.
fn translate(text: &str) -> Option<Translated> {
    let first = text
        .lines()
        .find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if first.starts_with("weir:") {
        return Some(parse(text).and_then(|value| weir_native::translate(&value)));
    }
    if first.starts_with("_format_version:") {
        let options = weir_kong::Options::default();
        return Some(parse(text).and_then(|value| weir_kong::translate(&value, &options)));
    }
    text.trim_end().ends_with("#END").then(|| {
        let prepared = weir_apisix::prepare(text, &|_| None).map_err(|found| vec![found])?;
        let options = weir_apisix::Options::default();
        weir_apisix::translate(&parse(&prepared)?, &options)
    })
}

fn parse(text: &str) -> Result<serde_json::Value, Vec<Diagnostic>> {
    document::parse(text).map_err(|found| vec![found])
}

/// The faults of an example; empty if it is good.
fn findings(example: &Example) -> Vec<String> {
    let Some(translated) = translate(&example.text) else {
        return Vec::new();
    };
    let found = match translated {
        Ok((model, found)) if found.is_empty() => {
            match weir_snapshot::compile(&model, &weir_plugins::registry(), &PersistentState::default()) {
                Ok((_, found)) | Err(found) => found,
            }
        }
        Ok((_, found)) | Err(found) => found,
    };
    let place = format!("{}:{}", example.path, example.line);
    found.iter().map(|it| it.render(&place, &example.text)).collect()
}

#[test]
fn examples_are_good() {
    let mut examples: Vec<Example> = documents()
        .iter()
        .flat_map(|(path, text)| blocks(path, text))
        .collect();
    for path in files("examples", ".yaml")
        .into_iter()
        .chain(files("examples", ".yml"))
    {
        let text = read(&path);
        examples.push(Example { path, line: 1, text });
    }
    let whole = examples
        .iter()
        .filter(|example| translate(&example.text).is_some())
        .count();
    assert!(whole >= 10, "only {whole} whole configurations: are they found?");
    let breaches: Vec<String> = examples.iter().flat_map(findings).collect();
    assert_none(&breaches, "an example can be copied and served, without a remark");
}

/// A row of the table of plugins: `| `NAME` | what it does | `CONFIGURATION` |`; the name may be a link.
fn plugin_row(line: &str) -> Option<(&str, &str)> {
    let row = line.strip_prefix("| ")?;
    let mut quoted = row.strip_prefix('[').unwrap_or(row).strip_prefix('`')?.split('`');
    let name = quoted.next()?;
    let config = line.rsplit('`').nth(1)?;
    (weir_plugins::registry().get(name).is_some() && config.starts_with('{')).then_some((name, config))
}

#[test]
fn short_examples_of_plugins_are_good() {
    let path = "docs/configuration.md";
    let mut names = Vec::new();
    let mut breaches = Vec::new();
    for (line, text) in (1..).zip(read(path).lines()) {
        let Some((name, config)) = plugin_row(text) else {
            continue;
        };
        names.push(name.to_owned());
        let route = format!(
            "{{name: r, paths: [/], to: {{respond: {{status: 503}}}}, plugins: [{{{name}: {config}}}]}}"
        );
        breaches.extend(findings(&Example {
            path: path.to_owned(),
            line,
            text: format!("weir: 1\nroutes: [{route}]\n"),
        }));
    }
    let registry = weir_plugins::registry();
    let wanted: Vec<&str> = registry.iter().map(|plugin| plugin.name()).collect();
    assert_eq!(names, wanted, "the table has a row for each plugin, by name");
    assert_none(&breaches, "a plugin's short example can be used as it is");
}
