//! Lint: rules over a description. Rules that Spectral's `oas` set has, too, have its names, so that people's
//! `.spectral.yaml` files hold here; rules of the gateway begin with `weir-`.

pub(crate) mod check_schema;
mod examples;
mod formats;
mod functions;
mod gateway;
mod junit;
mod locations;
mod operations;
mod ruleset;
mod structure;
mod values;

pub(crate) use junit::escaped;
pub use junit::junit;
pub use ruleset::{Ruleset, UNREADABLE_RULES};

use crate::finding::{Finding, Level};
use crate::openapi::{Description, MAX_FINDINGS, locate};
use weir_model::DocPath;

/// The context of a check.
pub(crate) struct Context<'d> {
    /// The document.
    pub description: &'d Description,
    /// The base path at which it is to be published; empty if that is not known.
    pub base_path: Option<&'d str>,
    rule: &'d str,
    level: Level,
    findings: &'d mut Vec<Finding>,
}

impl Context<'_> {
    /// Whether there is no room for another finding: then its place need not be looked for.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS
    }

    /// Notes a finding of the rule that is being checked.
    pub fn add(&mut self, path: DocPath, message: impl Into<String>) {
        if !self.is_full() {
            self.findings.push(Finding {
                rule: self.rule.to_owned(),
                level: self.level,
                message: shortened(message.into()),
                path,
                position: None,
            });
        }
    }
}

/// The longest message of a finding, in bytes: an enumeration may have a million values.
const MAX_MESSAGE: usize = 1_000;

/// A message of bounded length.
fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
    message
}

/// A built-in rule.
pub(crate) struct Rule {
    pub name: &'static str,
    /// Its level, if no severities file says otherwise.
    pub level: Level,
    /// Whether it counts if no severities file turns it on.
    pub is_recommended: bool,
    pub check: fn(&mut Context<'_>),
}

const fn rule(name: &'static str, level: Level, check: fn(&mut Context<'_>)) -> Rule {
    Rule {
        name,
        level,
        is_recommended: true,
        check,
    }
}

const fn optional(name: &'static str, level: Level, check: fn(&mut Context<'_>)) -> Rule {
    Rule {
        is_recommended: false,
        ..rule(name, level, check)
    }
}

/// All built-in rules.
fn rules() -> impl Iterator<Item = &'static Rule> {
    // Findings are bounded: those about the form, which are errors, come before matters of taste.
    structure::RULES
        .iter()
        .chain(&operations::RULES)
        .chain(&values::RULES)
        .chain(&examples::RULES)
        .chain(&formats::RULES)
        .chain(&gateway::RULES)
}

/// The names of all built-in rules.
pub fn rule_names() -> Vec<&'static str> {
    rules().map(|it| it.name).collect()
}

/// The additions of a publication to a document.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'o> {
    /// The path that the API is published under.
    pub base_path: Option<&'o str>,
}

/// All findings, in the order of the text that the description was read from.
pub fn run(text: &str, description: &Description, ruleset: &Ruleset, options: Options<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(level) = ruleset.level(crate::openapi::INVALID_REF, Level::Error, true) {
        findings.extend(
            description
                .faults
                .iter()
                .map(|it| Finding { level, ..it.clone() }),
        );
    }
    if let Some(level) = ruleset.level(crate::openapi::REPEATED_KEY, Level::Error, true) {
        findings.extend(repeated_keys(text, level));
    }
    for rule in rules() {
        let Some(level) = ruleset.level(rule.name, rule.level, rule.is_recommended) else {
            continue;
        };
        let mut context = Context {
            description,
            base_path: options.base_path,
            rule: rule.name,
            level,
            findings: &mut findings,
        };
        (rule.check)(&mut context);
    }
    for finding in findings.iter_mut().filter(|it| it.position.is_none()) {
        finding.path = locations::written(&description.source, &finding.path);
    }
    // They look at the document as it is written.
    ruleset.run_custom(description, &mut findings);
    findings.truncate(MAX_FINDINGS);
    locate(text, &mut findings);
    findings.sort_by(|one, other| {
        (one.position, one.level, &one.rule, &one.message).cmp(&(
            other.position,
            other.level,
            &other.rule,
            &other.message,
        ))
    });
    findings.dedup();
    findings
}

/// Findings about repeated keys at most: there has to be room for those of the rules.
const MAX_REPEATED_KEYS: usize = 100;

/// Fields of the text that only the last of their values counts for.
fn repeated_keys(text: &str, level: Level) -> impl Iterator<Item = Finding> {
    let repeats = crate::openapi::repeated_keys(text, MAX_REPEATED_KEYS);
    repeats.into_iter().map(move |it| Finding {
        rule: crate::openapi::REPEATED_KEY.to_owned(),
        level,
        message: format!(
            "This name is in its map twice: its value in line {} is ignored.",
            it.before
        ),
        path: it.path,
        position: Some(it.position),
    })
}

#[cfg(test)]
mod tests;
