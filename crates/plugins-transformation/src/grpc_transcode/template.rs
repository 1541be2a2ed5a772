//! Path templates of `google.api.http`: `/v1/{name=shelves/*}/books/{id}:publish`.
//!
//! ```text
//! Template = "/" Segments [ ":" LITERAL ]      Segments = Segment { "/" Segment }
//! Segment  = "*" | "**" | LITERAL | Variable   Variable = "{" FieldPath [ "=" Segments ] "}"
//! ```

/// A template made ready for many paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate {
    segments: Vec<Segment>,
    /// What stands behind the last `:`.
    verb: Option<Vec<u8>>,
    variables: Vec<Variable>,
}

/// A part of the path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(Vec<u8>),
    /// One part, whatever it is.
    One,
    /// All parts that follow, none also; only behind all others.
    Rest,
}

/// A field that parts of the path are for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    field: String,
    /// Its first segment, and the one behind its last.
    range: (usize, usize),
}

/// Most bytes and most segments of a template.
const MAX_BYTES: usize = 1024;
const MAX_SEGMENTS: usize = 64;

impl PathTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("expected a path template of at most {MAX_BYTES} bytes"));
        }
        let wrong = || format!("expected a path template such as /v1/{{name}}, found '{text}'");
        let body = text.strip_prefix('/').ok_or_else(wrong)?;
        let open_end = body.rfind('}').map_or(0, |at| at + 1);
        let (body, verb) = match body[open_end..].rfind(':') {
            Some(at) => (&body[..open_end + at], Some(&body[open_end + at + 1..])),
            None => (body, None),
        };
        if verb.is_some_and(|verb| verb.is_empty() || verb.contains(['/', '*', '{'])) {
            return Err(wrong());
        }
        let mut parser = Parser {
            rest: body,
            segments: Vec::new(),
            variables: Vec::new(),
        };
        // The template of the root alone has no segment.
        if !body.is_empty() {
            parser.segments(true).ok_or_else(wrong)?;
        }
        let Parser {
            rest,
            segments,
            variables,
        } = parser;
        let is_rest_last = segments
            .iter()
            .position(|it| *it == Segment::Rest)
            .is_none_or(|at| at + 1 == segments.len());
        if !rest.is_empty() || !is_rest_last || segments.len() > MAX_SEGMENTS {
            return Err(wrong());
        }
        Ok(Self {
            segments,
            verb: verb.map(|verb| verb.as_bytes().to_vec()),
            variables,
        })
    }

    /// The paths of the fields that the template sets.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.field.as_str())
    }

    /// How many of its segments stand for themselves: of two templates that fit, the one with more is meant.
    pub fn literals(&self) -> usize {
        let literals = self
            .segments
            .iter()
            .filter(|it| matches!(it, Segment::Literal(_)));
        literals.count() + usize::from(self.verb.is_some())
    }

    /// What the variables stand for, in the order of [`PathTemplate::fields`], escaped as in the path; `None`: the
    /// path does not fit.
    pub fn matches<'p>(&self, path: &'p [u8]) -> Option<Vec<&'p [u8]>> {
        let body = path.strip_prefix(b"/")?;
        let body = match &self.verb {
            Some(verb) => body.strip_suffix(verb.as_slice())?.strip_suffix(b":")?,
            None => body,
        };
        // Where each segment begins and ends.
        let mut places = Vec::with_capacity(self.segments.len());
        let mut at = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 {
                // Nothing may be left for those that stand for nothing.
                match body.get(at) {
                    Some(b'/') => at += 1,
                    None if *segment == Segment::Rest => {}
                    _ => return None,
                }
            }
            let start = at;
            let rest = &body[at..];
            let length = memchr::memchr(b'/', rest).unwrap_or(rest.len());
            at += match segment {
                Segment::Literal(text) if rest[..length] == **text => length,
                Segment::One if length > 0 => length,
                Segment::Rest => rest.len(),
                _ => return None,
            };
            places.push((start, at));
        }
        if at != body.len() {
            return None;
        }
        let values = self.variables.iter().filter_map(|variable| {
            let (first, behind) = variable.range;
            let ((start, _), (_, end)) = (places.get(first)?, places.get(behind.checked_sub(1)?)?);
            body.get(*start..*end)
        });
        Some(values.collect())
    }
}

struct Parser<'t> {
    rest: &'t str,
    segments: Vec<Segment>,
    variables: Vec<Variable>,
}

impl Parser<'_> {
    fn segments(&mut self, may_hold_variables: bool) -> Option<()> {
        loop {
            self.segment(may_hold_variables)?;
            match self.rest.strip_prefix('/') {
                // A slash at the end is a segment of nothing.
                Some(rest) => self.rest = rest,
                None => return Some(()),
            }
        }
    }

    fn segment(&mut self, may_hold_variables: bool) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix('{') {
            if !may_hold_variables {
                return None;
            }
            self.rest = rest;
            return self.variable();
        }
        let end = self.rest.find(['/', '}']).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.segments.push(match text {
            "**" => Segment::Rest,
            "*" => Segment::One,
            text if text.contains(['*', '{', '=']) => return None,
            text => Segment::Literal(text.as_bytes().to_vec()),
        });
        Some(())
    }

    fn variable(&mut self) -> Option<()> {
        let end = self.rest.find(['=', '}'])?;
        let field = self.rest[..end].to_owned();
        let is_name = |part: &str| {
            let mut letters = part.bytes();
            letters
                .next()
                .is_some_and(|it| it.is_ascii_alphabetic() || it == b'_')
                && letters.all(|it| it.is_ascii_alphanumeric() || it == b'_')
        };
        if !field.split('.').all(is_name) || self.variables.iter().any(|known| known.field == field) {
            return None;
        }
        let first = self.segments.len();
        self.rest = &self.rest[end..];
        match self.rest.strip_prefix('=') {
            Some(rest) => {
                self.rest = rest;
                self.segments(false)?;
            }
            None => self.segments.push(Segment::One),
        }
        self.rest = self.rest.strip_prefix('}')?;
        let range = (first, self.segments.len());
        self.variables.push(Variable { field, range });
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched() {
        for (template, path, expected) in [
            ("/v1/messages", "/v1/messages", Some(vec![])),
            ("/v1/messages", "/v1/messages/", None),
            ("/v1/messages/", "/v1/messages/", Some(vec![])),
            ("/", "/", Some(vec![])),
            ("/", "/a", None),
            ("/v1/{id}", "/v1/7", Some(vec!["7"])),
            ("/v1/{id}", "/v1/", None),
            ("/v1/{id}", "/v1/7/8", None),
            ("/v1/{id}", "/v2/7", None),
            ("/v1/{id}", "v1/7", None),
            ("/v1/{a}/x/{b.c}", "/v1/1/x/2", Some(vec!["1", "2"])),
            (
                "/v1/{name=shelves/*/books/*}",
                "/v1/shelves/1/books/2",
                Some(vec!["shelves/1/books/2"]),
            ),
            (
                "/v1/{name=shelves/*}/books",
                "/v1/shelves/1/books",
                Some(vec!["shelves/1"]),
            ),
            ("/v1/{name=shelves/*}/books", "/v1/shelves//books", None),
            ("/v1/{rest=**}", "/v1/a/b/c", Some(vec!["a/b/c"])),
            ("/v1/{rest=**}", "/v1/", Some(vec![""])),
            ("/v1/{rest=**}", "/v1", Some(vec![""])),
            ("/v1/{rest=**}", "/v", None),
            ("/v1/{rest=a/**}", "/v1/a/b", Some(vec!["a/b"])),
            ("/v1/{id}/**", "/v1/ab", Some(vec!["ab"])),
            ("/v1/{id}/**", "/v1/ab/c", Some(vec!["ab"])),
            ("/v1/*/x", "/v1/anything/x", Some(vec![])),
            ("/v1/**", "/v1/a/b", Some(vec![])),
            ("/v1/{id}:publish", "/v1/7:publish", Some(vec!["7"])),
            ("/v1/{id}:publish", "/v1/7", None),
            ("/v1/{id}:publish", "/v1/:publish", None),
            ("/v1/{rest=**}:run", "/v1/a/b:run", Some(vec!["a/b"])),
            ("/v1/{id}", "/v1/7:publish", Some(vec!["7:publish"])),
            ("/v1/{id}", "/v1/a%2Fb", Some(vec!["a%2Fb"])),
        ] {
            let parsed = PathTemplate::parse(template).expect("a template");
            let found = parsed.matches(path.as_bytes()).map(|values| {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                values.into_iter().map(text).collect::<Vec<_>>()
            });
            assert_eq!(
                found,
                expected.map(|it: Vec<&str>| it.iter().map(|it| (*it).to_owned()).collect()),
                "{template} {path}"
            );
        }
    }

    #[test]
    fn wrong_templates_are_refused() {
        for template in [
            "",
            "v1",
            "/v1/{",
            "/v1/{}",
            "/v1/{a",
            "/v1/{a}b",
            "/v1/a{b}",
            "/v1/{1a}",
            "/v1/{a..b}",
            "/v1/{a=}x",
            "/v1/{a={b}}",
            "/v1/***",
            "/v1/a*",
            "/v1/**/x",
            "/v1/{a=**}/x",
            "/v1/{a}/{a}",
            "/v1:",
            "/v1/{a}:x/y",
            "/v1/}",
        ] {
            assert!(PathTemplate::parse(template).is_err(), "{template}");
        }
        assert!(PathTemplate::parse(&format!("/{}", "a/".repeat(600))).is_err());
        assert!(PathTemplate::parse(&format!("/{}", "a/".repeat(100))).is_err());
    }

    #[test]
    fn templates_rank_by_how_special_they_are() {
        for (template, literals) in [("/v1/{id}", 1), ("/v1/health", 2), ("/v1/{id}:x", 2), ("/**", 0)] {
            assert_eq!(
                PathTemplate::parse(template).map(|it| it.literals()),
                Ok(literals),
                "{template}"
            );
        }
    }

    #[test]
    fn any_template_and_any_path_will_do() {
        let pieces = [
            "/", "a", "{", "}", "=", "*", "**", ":", "{a}", "{b=**}", "{c=a/*}", "/a", ".", "%",
        ];
        let mut random = 7_u64;
        let mut text = || {
            let mut text = String::from("/");
            for _ in 0..8 {
                random = random
                    .wrapping_mul(0x5851_f42d_4c95_7f2d)
                    .wrapping_add(0x1405_7b7e_f767_814f);
                text.push_str(pieces[(random >> 40) as usize % pieces.len()]);
            }
            text
        };
        let mut fits = 0;
        for _ in 0..20_000 {
            let (template, path) = (text(), text());
            let Ok(parsed) = PathTemplate::parse(&template) else {
                continue;
            };
            for path in [&path, &template] {
                if let Some(values) = parsed.matches(path.as_bytes()) {
                    assert_eq!(values.len(), parsed.fields().count(), "{template} {path}");
                    fits += 1;
                }
            }
        }
        assert!(fits > 10, "{fits}");
    }
}
