//! Whether a function in Lua can be one: its blocks are closed, its texts end. What it does is not looked at.

/// What is wrong with a chunk, in the words of Lua; `None`: nothing that is looked for.
pub fn error(chunk: &str) -> Option<String> {
    let mut reader = Reader { rest: chunk, line: 1 };
    let mut open: Vec<(&str, usize)> = Vec::new();
    let problem = loop {
        let (token, line) = match reader.next() {
            Ok(Some(token)) => token,
            Ok(None) => {
                let (opener, at) = open.pop()?;
                let closer = if opener == "repeat" { "until" } else { "end" };
                break match at == reader.line {
                    true => format!("'{closer}' expected near '<eof>'"),
                    false => format!("'{closer}' expected (to close '{opener}' at line {at}) near '<eof>'"),
                };
            }
            Err(problem) => break problem,
        };
        match token {
            "function" | "do" | "if" | "repeat" => open.push((token, line)),
            "end" | "until" => {
                let wanted = open.pop().map(|(opener, _)| opener);
                if wanted.is_none_or(|opener| (opener == "repeat") != (token == "until")) {
                    break format!("'<eof>' expected near '{token}'");
                }
            }
            _ => {}
        }
    };
    let mut lines = chunk.lines();
    let first = lines.next().unwrap_or_default();
    let more = if lines.next().is_some() { "..." } else { "" };
    Some(format!("[string \"{first}{more}\"]:{}: {problem}", reader.line))
}

struct Reader<'c> {
    rest: &'c str,
    line: usize,
}

impl<'c> Reader<'c> {
    /// The next word, and the line that it is in; texts and comments are passed over.
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
