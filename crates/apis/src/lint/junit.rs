//! Findings as a JUnit report, which build servers show.

use crate::finding::{Finding, Level};
use std::fmt::Write;

/// A report about one file: each rule with findings is a test case, and findings of the level `fails` or above make it
/// fail.
pub fn junit(file: &str, findings: &[Finding], fails: Level) -> String {
    let failed = findings.iter().filter(|it| it.level <= fails).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let tests = findings.len().max(1);
    let _written = writeln!(
        out,
        "<testsuites tests=\"{tests}\" failures=\"{failed}\">\n  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\">",
        escaped(file)
    );
    if findings.is_empty() {
        let _written = writeln!(
            out,
            "    <testcase name=\"lint\" classname=\"{}\"/>",
            escaped(file)
        );
    }
    for found in findings {
        let place = found
            .position
            .map_or_else(String::new, |it| format!(":{}:{}", it.line, it.column));
        let text = escaped(&found.to_string());
        let element = match found.level <= fails {
            true => format!(
                "<failure message=\"{}\">{text}</failure>",
                escaped(&found.message)
            ),
            false => format!("<system-out>{text}</system-out>"),
        };
        let _written = writeln!(
            out,
            "    <testcase name=\"{} {}{place}\" classname=\"{}\">{element}</testcase>",
            escaped(&found.rule),
            escaped(file),
            escaped(file)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// A text as XML has it.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            // XML has no other control characters.
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
