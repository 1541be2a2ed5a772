//! A Rust source as the rules look at it: its text, its code without comments and texts, and which of its lines are
//! tests. A scanner, not a parser: it knows comments, literals and braces.

/// A Rust source.
pub struct Source {
    /// Path from the repository's root.
    pub path: String,
    /// The file's text.
    pub text: String,
    /// The text with comments and the inside of literals blanked; bytes and lines keep their positions.
    pub code: String,
    /// The code without what is compiled for tests only, likewise blanked. Empty if the whole file is.
    pub shipped: String,
}

/// A function's name and place.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// Lines from its `fn` to its closing brace.
    pub length: usize,
}

impl Source {
    pub fn new(path: String, text: String) -> Self {
        let code = blank_words(&text);
        let is_test = path.split('/').any(|part| {
            matches!(
                part,
                "tests" | "benches" | "examples" | "fuzz" | "tests.rs" | "testkit.rs"
            )
        });
        let shipped = match is_test || is_test_module(&text) {
            true => String::new(),
            false => blank_tests(&code),
        };
        Self {
            path,
            text,
            code,
            shipped,
        }
    }

    /// The line of a byte, from 1.
    pub fn line_of(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// `path:line` of a byte.
    pub fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path, self.line_of(at))
    }

    /// All functions with a body, inner ones too.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for at in words(&self.code, "fn") {
            let rest = &self.code[at + 2..];
            let name: String = rest
                .trim_start()
                .chars()
                .take_while(|it| it.is_alphanumeric() || *it == '_')
                .collect();
            // `fn(u8) -> u8` is a type; a method without a body ends in `;`.
            let (Some(open), false) = (body_of(rest), name.is_empty()) else {
                continue;
            };
            let open = at + 2 + open;
            let Some(close) = closing(&self.code, open) else {
                continue;
            };
            let line = self.line_of(at);
            functions.push(Function {
                name,
                line,
                length: self.line_of(close) - line + 1,
            });
        }
        functions
    }
}

/// The begin of a function's body, whose `fn` is just before `rest`; `None`: it has none.
fn body_of(rest: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The brace that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Where `word` stands in `text` by itself, not as a part of a longer name.
pub fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_name =
        |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '_' || it == '-');
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !is_name(text[..*at].chars().next_back()) && !is_name(text[at + word.len()..].chars().next())
    })
}

/// Whether a file says of itself that it is compiled for tests only.
fn is_test_module(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("#![cfg(test)]"))
}

/// Blanks the items under `#[cfg(test)]` and `#[test]`.
fn blank_tests(code: &str) -> String {
    let mut shipped = code.to_owned();
    for mark in ["#[cfg(test)]", "#[test]"] {
        while let Some(start) = shipped.find(mark) {
            let item = &shipped[start..];
            let end = match (item.find('{'), item.find(';')) {
                (Some(open), semicolon) if semicolon.is_none_or(|semicolon| open < semicolon) => {
                    closing(&shipped, start + open).map_or(shipped.len(), |close| close + 1)
                }
                (_, Some(semicolon)) => start + semicolon + 1,
                _ => shipped.len(),
            };
            let blank = blanked(&shipped[start..end]);
            shipped.replace_range(start..end, &blank);
        }
    }
    shipped
}

fn blanked(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect()
}

/// Blanks comments and what stands in literals.
fn blank_words(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => 1 + until_quote(&rest[1..]),
            '\'' => character(rest),
            'r' | 'b' | 'c' if !ends_in_name(&code) => prefixed_text(rest),
            _ => 0,
        };
        match length {
            0 => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
            }
            length => {
                code.push_str(&blanked(&rest[..length]));
                rest = &rest[length..];
            }
        }
    }
    code
}

fn ends_in_name(code: &str) -> bool {
    code.chars()
        .next_back()
        .is_some_and(|it| it.is_alphanumeric() || it == '_')
}

/// The length of a comment, inner ones included.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length up to and with the quote that ends a text.
fn until_quote(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal; 0: it is a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            let end = text[escaped + 1..].find('\'');
            end.map_or(0, |end| escaped + 1 + end + 1)
        }
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 0,
    }
}

/// The length of a text that begins with `r`, `b`, `c` or two of them; 0: it is no such text.
fn prefixed_text(text: &str) -> usize {
    let marks = text
        .find(|it| !matches!(it, 'r' | 'b' | 'c'))
        .unwrap_or(text.len());
    let (prefix, rest) = text.split_at(marks.min(2));
    let hashes = rest.find(|it| it != '#').unwrap_or(0);
    let quoted = &rest[hashes..];
    if quoted.starts_with('\'') && prefix == "b" && hashes == 0 {
        return match character(quoted) {
            0 => 0,
            length => prefix.len() + length,
        };
    }
    if !quoted.starts_with('"') || (hashes > 0 && !prefix.contains('r')) {
        return 0;
    }
    let inside = &quoted[1..];
    let length = match prefix.contains('r') {
        true => {
            let end = format!("\"{}", "#".repeat(hashes));
            inside.find(&end).map_or(inside.len(), |at| at + end.len())
        }
        false => until_quote(inside),
    };
    prefix.len() + hashes + 1 + length
}

#[test]
fn comments_and_texts_are_blanked() {
    for (text, code) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ */ d", "a                 d"),
        (r#"a("b\"c") + 1"#, "a(      ) + 1"),
        (r##"a(r#"b"c"#) + 1"##, "a(        ) + 1"),
        (
            "f(b\"x\", b'y', 'z', '\\'', '\\u{1f}')",
            "f(    ,     ,    ,     ,         )",
        ),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ("br\"{\" rb", "      rb"),
        ("for 'x: loop {}", "for 'x: loop {}"),
    ] {
        assert_eq!(blank_words(text), code, "{text}");
    }
}

#[test]
fn tests_are_distinguished_from_what_is_shipped() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { }\n}\n#[cfg(test)]\nmod c;\nfn d() {}\n";
    let source = Source::new("crates/x/src/y.rs".to_owned(), text.to_owned());
    let shipped: Vec<&str> = source.shipped.split_whitespace().collect();
    assert_eq!(shipped, ["fn", "a()", "{}", "fn", "d()", "{}"]);
    let test = Source::new("crates/x/tests/y.rs".to_owned(), text.to_owned());
    assert!(test.shipped.is_empty());
}

#[test]
fn functions_are_measured() {
    let text = "\
type F = fn(u8) -> u8;
fn a<T: Into<u8>, U>(
    x: [u8; 2],
) -> Result<T, U>
where
    T: Copy,
{
    fn b() {}
}
trait T { fn c(&self); fn d(&self) -> bool { true } }
";
    let source = Source::new("crates/x/src/y.rs".to_owned(), text.to_owned());
    let found: Vec<_> = source
        .functions()
        .into_iter()
        .map(|it| (it.name, it.line, it.length))
        .collect();
    let wanted =
        [("a", 2, 8), ("b", 8, 1), ("d", 10, 1)].map(|(name, line, length)| (name.to_owned(), line, length));
    assert_eq!(found, wanted);
}
