//! Media types of calls, and lists of those that are let in.

/// A media type: its two parts and its parameters, all in lower case but for the parameters' values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType {
    main: String,
    sub: String,
    parameters: Vec<(String, String)>,
}

impl MediaType {
    /// Parses a media type (RFC 9110, 8.3.1); `None` if it is invalid.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut parts = text.split(';');
        let (main, sub) = parts.next()?.trim().split_once('/')?;
        let is_token = |text: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            !text.is_empty() && text.bytes().all(is_plain)
        };
        let mut parameters = Vec::new();
        for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches('"');
            parameters.push((name.trim().to_ascii_lowercase(), value.to_ascii_lowercase()));
        }
        parameters.sort();
        (is_token(main) && is_token(sub)).then(|| Self {
            main: main.to_ascii_lowercase(),
            sub: sub.to_ascii_lowercase(),
            parameters,
        })
    }

    /// Whether this type, which may be a range, takes another one. `with_parameters`: they must have the same parameters.
    pub fn takes(&self, given: &Self, with_parameters: bool) -> bool {
        let is_in = |range: &str, part: &str| range == "*" || range == part;
        is_in(&self.main, &given.main)
            && is_in(&self.sub, &given.sub)
            && (!with_parameters || self.parameters == given.parameters)
    }

    /// The value of a parameter, in lower case.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether such bodies are JSON.
    pub fn is_json(&self) -> bool {
        self.sub == "json" || self.sub.ends_with("+json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_taken_by_ranges_and_parameters() {
        for (wanted, given, with_parameters, takes) in [
            ("application/json", "application/json", true, true),
            ("application/json", "Application/JSON", true, true),
            ("application/json", "application/json; charset=utf-8", true, false),
            ("application/json", "application/json; charset=utf-8", false, true),
            (
                "application/json; charset=UTF-8",
                "application/json;charset=\"utf-8\"",
                true,
                true,
            ),
            ("application/*", "application/json", true, true),
            ("*/*", "text/plain", true, true),
            ("text/*", "application/json", true, false),
        ] {
            let read = |text: &str| MediaType::parse(text.as_bytes()).expect("a media type");
            let found = read(wanted).takes(&read(given), with_parameters);
            assert_eq!(found, takes, "{wanted} {given}");
        }
        for text in ["json", "a/b/c", "/b", "a/", "a b/c", "a/b; c"] {
            assert_eq!(MediaType::parse(text.as_bytes()), None, "{text}");
        }
    }
}
