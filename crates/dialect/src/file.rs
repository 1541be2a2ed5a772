//! The forms of a dialect's files, and how they are distinguished. Nothing here reads a file.

use serde_json::Value;
use std::borrow::Cow;
use weir_model::Diagnostic;

/// How the files of a dialect look, and what holds for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileForm {
    /// What a file is usually called: `weir.yaml`.
    pub name: &'static str,
    /// The keys at the top of a document of which one shows that it is of this dialect. None: it is of this dialect if no
    /// other one recognises it.
    pub marks: &'static [&'static str],
    /// Whether several files may be served together. Where the original knows one file, what holds globally in one (an
    /// access check) would silently not hold for the routes of the other.
    pub may_be_several: bool,
    /// Whether a key that is repeated in a map is an error. Where the original takes the last one, it is a warning.
    pub refuses_repeated_keys: bool,
    /// Whether the rest of a file is served if an item of it cannot be, as from a store: a credential or a certificate is
    /// left out, and a route refuses its calls. Otherwise the file is refused.
    pub serves_the_rest: bool,
    /// Whether the dialect's Admin API can stand over such a file.
    pub has_admin: bool,
    /// Whether that Admin API is open if nothing but such files is served and no flag names an address, as the original's
    /// is.
    pub opens_admin: bool,
}

impl FileForm {
    /// Whether a document is of this dialect.
    pub fn recognises(&self, document: &Value) -> bool {
        self.marks.iter().any(|mark| document.get(mark).is_some())
    }

    /// The same for a text that is not (yet) valid YAML, by the keys at its left margin, so that its fault is reported
    /// in the right terms.
    pub fn recognises_text(&self, text: &str) -> bool {
        let has_key = |name: &str| {
            text.lines().any(|line| {
                let key = line.trim_start_matches(['{', '"', '\'']);
                key.strip_prefix(name)
                    .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
            })
        };
        self.marks.iter().any(|mark| has_key(mark))
    }
}

/// What a text is prepared for.
pub struct Purpose<'p> {
    /// The variables of the environment.
    pub environment: &'p dyn Fn(&str) -> Option<String>,
    /// To look at it, perhaps on a machine that has no such variables: this stands for those that are not set. `None`: to
    /// serve it.
    pub placeholder: Option<&'p str>,
}

/// A text that YAML can be read from.
#[derive(Debug)]
pub struct PreparedText<'t> {
    /// The text.
    pub text: Cow<'t, str>,
    /// Variables that are not set and that something stands for.
    pub unset: Vec<Diagnostic>,
}

impl<'t> PreparedText<'t> {
    /// The text as it is in the file.
    pub fn as_it_is(text: &'t str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            unset: Vec::new(),
        }
    }
}
