//! Whether a chunk of Lua can be one: it begins as a statement does, its blocks and brackets are closed, its texts end. What it
//! does is not looked at.
//!
//! **What it is not**: a parser of Lua. That comes with what runs the code; until then, a chunk may pass that Lua refuses.

/// Words with which a statement begins.
const STATEMENTS: [&str; 10] = [
    "break", "do", "for", "function", "goto", "if", "local", "repeat", "return", "while",
];

/// Words with which none does.
const NO_STATEMENTS: [&str; 6] = ["and", "false", "nil", "not", "or", "true"];

/// What is wrong with a chunk, in the words of Lua; `None`: nothing that is looked for.
pub fn error(chunk: &str) -> Option<String> {
    let mut lines = chunk.lines();
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { "..." } else { "" };
    error_in(chunk, &format!("{first}{more}"))
}

/// The same of a chunk that has a name.
pub fn error_in(chunk: &str, name: &str) -> Option<String> {
    let (line, problem) = wrong_start(chunk).or_else(|| open_block(chunk))?;
    Some(format!("[string \"{name}\"]:{line}: {problem}"))
}

/// Whether a chunk gives something back.
pub fn returns(chunk: &str) -> bool {
    let mut reader = Reader { rest: chunk, line: 1 };
    let mut depth = 0_usize;
    while let Ok(Some((token, _))) = reader.next() {
        match token {
            "function" | "do" | "if" | "repeat" => depth += 1,
            "end" | "until" => depth = depth.saturating_sub(1),
            "return" if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// What is wrong with the beginning, and in which line.
fn wrong_start(chunk: &str) -> Option<(usize, String)> {
    let mut reader = Reader { rest: chunk, line: 1 };
    let rest = chunk.trim_start();
    if !rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return None;
    }
    let (first, line) = reader.next().ok()??;
    if STATEMENTS.contains(&first) {
        return None;
    }
    if NO_STATEMENTS.contains(&first) {
        return Some((line, format!("unexpected symbol near '{first}'")));
    }
    let rest = reader.rest.trim_start();
    let near = match rest.chars().next() {
        None => "<eof>".to_owned(),
        Some(next) if next.is_ascii_alphabetic() || next == '_' => reader.next().ok()??.0.to_owned(),
        Some(_) => return None,
    };
    // A word by itself is no statement.
    let is_closer = matches!(first, "end" | "until" | "else" | "elseif" | "then" | "in");
    (!is_closer).then(|| (reader.line, format!("'=' expected near '{near}'")))
}

/// The block or bracket that is not closed, or closed too often, and in which line that is seen.
fn open_block(chunk: &str) -> Option<(usize, String)> {
    let mut reader = Reader { rest: chunk, line: 1 };
    let mut open: Vec<(&str, usize)> = Vec::new();
    let problem = loop {
        let (token, line) = match reader.next() {
            Ok(Some(token)) => token,
            Ok(None) => {
                let (opener, at) = open.pop()?;
                let closer = closer(opener);
                break match at == reader.line {
                    true => format!("'{closer}' expected near '<eof>'"),
                    false => format!("'{closer}' expected (to close '{opener}' at line {at}) near '<eof>'"),
                };
            }
            Err(problem) => break problem,
        };
        match token {
            "function" | "do" | "if" | "repeat" | "(" | "[" | "{" => open.push((token, line)),
            "end" | "until" | ")" | "]" | "}" => {
                let opener = open.pop().map(|(opener, _)| opener);
                let wanted = opener.map(closer);
                if wanted != Some(token) {
                    let is_bracket = |it: &&str| matches!(*it, ")" | "]" | "}");
                    break match (wanted.filter(is_bracket), is_bracket(&token)) {
                        (Some(wanted), _) => format!("'{wanted}' expected near '{token}'"),
                        (None, true) => format!("unexpected symbol near '{token}'"),
                        (None, false) => format!("'<eof>' expected near '{token}'"),
                    };
                }
            }
            _ => {}
        }
    };
    Some((reader.line, problem))
}

/// What closes a block or a bracket.
fn closer(opener: &str) -> &'static str {
    match opener {
        "repeat" => "until",
        "(" => ")",
        "[" => "]",
        "{" => "}",
        _ => "end",
    }
}

struct Reader<'c> {
    rest: &'c str,
    line: usize,
}

impl<'c> Reader<'c> {
    /// The next word or bracket, and the line that it is in; texts and comments are passed over.
    fn next(&mut self) -> Result<Option<(&'c str, usize)>, String> {
        loop {
            let rest = self.rest;
            let Some(first) = rest.chars().next() else {
                return Ok(None);
            };
            if let Some(comment) = rest.strip_prefix("--") {
                match level(comment) {
                    Some(level) => self.long(2, level, "comment")?,
                    None => self.skip(rest.find('\n').unwrap_or(rest.len())),
                }
            } else if let Some(level) = level(rest) {
                self.long(0, level, "string")?;
            } else if first == '"' || first == '\'' {
                self.short(first)?;
            } else if first.is_ascii_alphabetic() || first == '_' {
                let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
                let length = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
                self.skip(length);
                return Ok(Some((&rest[..length], self.line)));
            } else {
                self.skip(first.len_utf8());
                if "()[]{}".contains(first) {
                    return Ok(Some((&rest[..1], self.line)));
                }
            }
        }
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    /// A text or comment between long brackets.
    fn long(&mut self, start: usize, level: usize, what: &str) -> Result<(), String> {
        let closing = format!("]{}]", "=".repeat(level));
        match self.rest[start..].find(&closing) {
            Some(at) => {
                self.skip(start + at + closing.len());
                Ok(())
            }
            None => {
                self.skip(self.rest.len());
                Err(format!("unfinished long {what} near '<eof>'"))
            }
        }
    }

    fn short(&mut self, quote: char) -> Result<(), String> {
        let mut escaped = false;
        for (at, character) in self.rest.char_indices().skip(1) {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' => return Err(format!("unfinished string near '{}'", &self.rest[..at])),
                _ if character == quote => {
                    self.skip(at + 1);
                    return Ok(());
                }
                _ => {}
            }
        }
        Err("unfinished string near '<eof>'".to_owned())
    }
}

/// How many `=` a long bracket has that begins here; `None`: none does.
fn level(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let level = inner.len() - inner.trim_start_matches('=').len();
    inner[level..].starts_with('[').then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_begin_as_such() {
        for (chunk, wanted) in [
            ("a", Some("[string \"a\"]:1: '=' expected near '<eof>'")),
            (
                "invalid script",
                Some("[string \"invalid script\"]:1: '=' expected near 'script'"),
            ),
            (
                "not a function",
                Some("[string \"not a function\"]:1: unexpected symbol near 'not'"),
            ),
            ("a = 1", None),
            ("ngx.say('a')", None),
            ("  -- a comment\nlocal a = 1", None),
            ("local function a() end return a", None),
        ] {
            assert_eq!(error(chunk).as_deref(), wanted, "{chunk}");
        }
        assert!(returns("local a = 1 return function() end"));
        assert!(!returns("local a = function() return 1 end"));
        assert_eq!(
            error_in("not a", "meta pre_function").as_deref(),
            Some("[string \"meta pre_function\"]:1: unexpected symbol near 'not'")
        );
    }

    #[test]
    fn brackets_are_closed() {
        for (chunk, wanted) in [
            ("return )", Some("unexpected symbol near ')'")),
            ("return (", Some("')' expected near '<eof>'")),
            ("return {1, 2)", Some("'}' expected near ')'")),
            ("f(function() ) end", Some("unexpected symbol near ')'")),
            ("if a then f(b end", Some("')' expected near 'end'")),
            ("a[b[1]] = ({...})[1]", None),
            ("a = [[)]] b = ')' -- )", None),
            ("a[ [[x]] ] = {f{}, f'', (g)()}", None),
        ] {
            let message =
                error(chunk).map(|message| message.split("]:1: ").last().unwrap_or_default().to_owned());
            assert_eq!(message.as_deref(), wanted, "{chunk}");
        }
    }

    #[test]
    fn blocks_are_closed() {
        for (chunk, wanted) in [
            ("return function(vars) return vars.x == 'end' end", None),
            (
                "return function(a) if a then for i = 1, 2 do end end repeat until a end -- end",
                None,
            ),
            (
                "return function(vars) ",
                Some("[string \"return function(vars) \"]:1: 'end' expected near '<eof>'"),
            ),
            (
                "return function(a)\n  if a then\n",
                Some(
                    "[string \"return function(a)...\"]:3: 'end' expected (to close 'if' at line 2) near '<eof>'",
                ),
            ),
            (
                "x = [==[ ]] ]==] end",
                Some("[string \"x = [==[ ]] ]==] end\"]:1: '<eof>' expected near 'end'"),
            ),
            (
                "x = \"a",
                Some("[string \"x = \"a\"]:1: unfinished string near '<eof>'"),
            ),
        ] {
            assert_eq!(error(chunk).as_deref(), wanted, "{chunk}");
        }
    }
}
