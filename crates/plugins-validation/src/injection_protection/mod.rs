//! `injection-protection`: refuses calls whose path, query, headers or body look like an injection.
//!
//! ```yaml
//! rules: [sql, js]
//! locations: [path_and_query, body]
//! custom: [{name: shell, regex: "(?i)\\bcat\\s+/etc/"}]
//! ```
//!
//! Each text is checked as it is written, and with its escapes decoded once and twice.
//!
//! Security: patterns find common attacks, not all possible ones. They do not replace parameters in queries and
//! escaping in pages. If bodies are checked, bodies with a content coding are refused, because they cannot be checked.

use crate::openapi_validation::Action;
use crate::refuse::refuse;
use regex::bytes::{RegexSet, RegexSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::uri::decode_form;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

const PLUGIN: &str = "injection-protection";
/// The memory of all patterns of an instance.
const MAX_PATTERNS: usize = 10 << 20;

/// Configuration of `injection-protection`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The attacks to look for: `sql`, `js`, `ssi`, `xpath_abbreviated`, `xpath_extended`, `java_exception`.
    pub rules: Vec<Rule>,
    /// The parts to search: `path_and_query`, `headers`, `body`.
    pub locations: Vec<Location>,
    /// Your own patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom>,
    /// What happens to calls in which something is found.
    pub action: Action,
    /// Status of a refusal, 400 to 599.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// The message of a refusal.
    pub message: String,
    /// The most bytes of a body that are read; calls with a larger body are refused.
    pub max_body_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rules: vec![Rule::Sql],
            locations: vec![Location::PathAndQuery],
            custom: Vec::new(),
            action: Action::Refuse,
            status: 400,
            message: "Bad Request".into(),
            max_body_bytes: 1 << 20,
        }
    }
}

/// A kind of injection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Statements of SQL.
    Sql,
    /// Scripts in pages.
    Js,
    /// Server-side includes.
    Ssi,
    /// Paths of XPath in their short form.
    XpathAbbreviated,
    /// Axes of XPath.
    XpathExtended,
    /// Traces of exceptions in Java.
    JavaException,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Js => "js",
            Self::Ssi => "ssi",
            Self::XpathAbbreviated => "xpath_abbreviated",
            Self::XpathExtended => "xpath_extended",
            Self::JavaException => "java_exception",
        }
    }

    fn pattern(self) -> &'static str {
        match self {
            Self::Sql => {
                r"\b(delete\s+from|exec(ute)?\s|drop\s+(table|database|view)|insert\s+into|shutdown\b|update\s+\S+\s+set\b|union\s+(all\s+)?select\b)|['\x22)]\s*(or|and)\s+['\x22(\d]|\bor\s+\d+\s*=\s*\d+"
            }
            Self::Js => r"<\s*script\b[^>]*>|\bon(error|load|click|focus|mouseover)\s*=|javascript:",
            Self::Ssi => r"<!--#\s*(include|exec|echo|config|printenv)\b",
            Self::XpathAbbreviated => r"(//|/@)[\w*]|\[\s*(@\w+|\d+|\w+\(\))\s*([=<>!]|\])",
            Self::XpathExtended => {
                r"/?\b(ancestor(-or-self)?|descendant(-or-self)?|following(-sibling)?|preceding(-sibling)?|parent|child|self)::"
            }
            Self::JavaException => r"\bException in thread\b",
        }
    }
}

/// A part of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// The path and the query.
    PathAndQuery,
    /// The values of headers.
    Headers,
    /// The body.
    Body,
}

/// Your own pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// Its name, for the log.
    pub name: String,
    /// A regular expression.
    pub regex: String,
}

/// The plugin `injection-protection`.
pub struct InjectionProtection;

impl Plugin for InjectionProtection {
    fn name(&self) -> &'static str {
        "injection-protection"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_any(&[
            ("rules", config.rules.is_empty()),
            ("custom", config.custom.is_empty()),
        ]);
        if config.locations.is_empty() {
            faults.add("locations", "expected at least one location");
        }
        if !(400..=599).contains(&config.status) {
            faults.add(
                "status",
                format!("expected a status from 400 to 599, found {}", config.status),
            );
        }
        let own = config
            .rules
            .iter()
            .map(|rule| (rule.name().to_owned(), format!("(?i:{})", rule.pattern())));
        let custom = config.custom.iter().map(|it| (it.name.clone(), it.regex.clone()));
        let (names, patterns): (Vec<String>, Vec<String>) = own.chain(custom).unzip();
        let patterns = RegexSetBuilder::new(&patterns).size_limit(MAX_PATTERNS).build();
        let patterns = patterns.unwrap_or_else(|error| {
            faults.add("custom", format!("not a regular expression: {error}"));
            RegexSet::empty()
        });
        faults.done()?;
        let looks_at = |location: Location| config.locations.contains(&location);
        Ok(Arc::new(InjectionFilter {
            names,
            patterns,
            path_and_query: looks_at(Location::PathAndQuery),
            headers: looks_at(Location::Headers),
            body: looks_at(Location::Body),
            config,
        }))
    }
}

/// An instance of `injection-protection`.
struct InjectionFilter {
    config: Config,
    names: Vec<String>,
    patterns: RegexSet,
    path_and_query: bool,
    headers: bool,
    body: bool,
}

impl InjectionFilter {
    /// What is found in a text, as it is written and with its escapes undone once and twice.
    fn find(&self, text: &[u8]) -> Option<&str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..3 {
            if let Some(place) = self.patterns.matches(&text).iter().next() {
                return self.names.get(place).map(String::as_str);
            }
            let Cow::Owned(decoded) = decode_form(&text) else {
                break;
            };
            text = Cow::Owned(decoded);
        }
        None
    }

    fn find_in_head(&self, exchange: &Exchange) -> Option<(&'static str, &str)> {
        let request = &exchange.request;
        if self.path_and_query {
            for text in [Some(&request.raw_path), request.query.as_ref()]
                .into_iter()
                .flatten()
            {
                if let Some(name) = self.find(text) {
                    return Some(("path_and_query", name));
                }
            }
        }
        if self.headers {
            for header in request.headers.iter() {
                if let Some(name) = self.find(header.value) {
                    return Some(("headers", name));
                }
            }
        }
        None
    }

    fn evaluate(&self, location: &str, name: &str) -> Outcome {
        let fault = format!("{name} in {location}");
        match self.config.action {
            Action::Refuse => refuse(PLUGIN, self.config.status, self.config.message.as_str(), &fault),
            Action::Log => {
                tracing::warn!(plugin = PLUGIN, "a call with an injection passes: {fault}");
                Outcome::Continue
            }
        }
    }
}

impl Filter for InjectionFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let has_asked = exchange.filter_state.is_body_requested(self);
        if !has_asked && let Some((location, name)) = self.find_in_head(exchange) {
            return self.evaluate(location, name);
        }
        let request = &exchange.request;
        if !self.body || !request.has_body {
            return Outcome::Continue;
        }
        if request.headers.contains(b"content-encoding") {
            return self.evaluate("body", "a content coding");
        }
        let Some(body) = request.body.as_deref() else {
            if !exchange.filter_state.mark_body_requested(self) {
                return self.evaluate("body", "more than is looked at");
            }
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        };
        match self.find(body) {
            Some(name) => self.evaluate("body", name),
            None => Outcome::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn call(config: &Value, line: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
        let filter = build(&InjectionProtection, config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, line, headers);
        let outcome = with_body(&*filter, &mut exchange, body);
        match outcome {
            Outcome::Refuse(refusal) => format!("{} {}", refusal.status, refusal.message.unwrap_or_default()),
            outcome => word(&outcome),
        }
    }

    #[test]
    fn injections_are_found_where_they_are_looked_for() {
        let all = json!({
            "rules": ["sql", "js", "ssi", "xpath_abbreviated", "xpath_extended", "java_exception"],
            "locations": ["path_and_query", "headers", "body"],
            "custom": [{"name": "shell", "regex": "/etc/passwd"}],
        });
        for text in [
            "1;+DROP+TABLE+users",
            "1'%20or%20'1'='1",
            "1%2527%2520or%2520%25271",
            "x'+union+select+password",
            "%3Cscript%3Ealert(1)%3C/script%3E",
            "%3Cimg+onerror=x%3E",
            "%3C!--%23exec+cmd=%22ls%22--%3E",
            "//user[name()='x']",
            "/ancestor::node()",
            "Exception+in+thread",
            "../../etc/passwd",
        ] {
            assert_eq!(
                call(&all, &format!("GET /?q={text}"), &[], None),
                "400 Bad Request",
                "{text}"
            );
            assert_eq!(
                call(&all, "GET /", &[("X-A", text)], None),
                "400 Bad Request",
                "{text}"
            );
            assert_eq!(call(&all, "POST /", &[], Some(text)), "400 Bad Request", "{text}");
        }
        for text in [
            "update", "an+or+a", "select", "a/b", "O'Reilly", "a=1&b=2", "deleted", "script",
        ] {
            assert_eq!(
                call(&all, &format!("GET /?q={text}"), &[], None),
                "continue",
                "{text}"
            );
        }
        let standard = json!({});
        assert_eq!(
            call(
                &standard,
                "GET /",
                &[("X-A", "; drop table x")],
                Some("; drop table x")
            ),
            "continue"
        );
        assert_eq!(
            call(&standard, "GET /a;drop%20table%20x", &[], None),
            "400 Bad Request"
        );
        let log = json!({"action": "log"});
        assert_eq!(call(&log, "GET /a;drop%20table%20x", &[], None), "continue");
        assert_eq!(
            call(&all, "POST /", &[("Content-Encoding", "gzip")], Some("x")),
            "400 Bad Request"
        );
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({"rules": [], "locations": []}), vec!["", "locations"]),
            (
                json!({"custom": [{"name": "a", "regex": "("}], "status": 1}),
                vec!["status", "custom"],
            ),
        ] {
            assert_eq!(refused_at(&InjectionProtection, &config), places, "{config}");
        }
        assert!(build(&InjectionProtection, &example(include_str!("mod.rs"))).is_ok());
    }
}
