//! A difference in lines of text. The console, the command line and mails show the same.

use super::{Diff, Kind};
use std::fmt::Write;

/// One line for each operation, then its changes; those that break callers are marked.
pub fn in_lines(diff: &Diff) -> String {
    let mut out = String::new();
    for operation in &diff.operations {
        let sign = match operation.kind {
            Kind::Added => '+',
            Kind::Removed => '-',
            Kind::Changed => '~',
        };
        // Writing into a text cannot fail.
        let _written = writeln!(
            out,
            "{sign} {} {} ({})",
            operation.method, operation.path, operation.id
        );
        for change in &operation.changes {
            let mark = if change.breaking { "breaking: " } else { "" };
            let place = match change.place.as_str() {
                "" => String::new(),
                place => format!("{place}: "),
            };
            let _written = writeln!(out, "    {mark}{place}{}", change.message);
        }
    }
    if out.is_empty() {
        out.push_str("no operation changes\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Change, OperationChange};

    #[test]
    fn a_difference_is_shown_in_lines() {
        let change = |kind, changes| OperationChange {
            id: "listPets".into(),
            method: "GET".into(),
            path: "/pets".into(),
            kind,
            changes,
        };
        let narrower = Change {
            place: "parameters.query.limit".into(),
            message: "it is required now".into(),
            breaking: true,
        };
        let diff = Diff {
            operations: vec![
                change(Kind::Added, Vec::new()),
                change(Kind::Changed, vec![narrower]),
            ],
        };
        assert_eq!(
            in_lines(&diff),
            "+ GET /pets (listPets)\n~ GET /pets (listPets)\n    breaking: parameters.query.limit: it is required now\n"
        );
        assert_eq!(
            in_lines(&Diff {
                operations: Vec::new()
            }),
            "no operation changes\n"
        );
    }
}
