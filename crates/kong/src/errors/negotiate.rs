//! Which form an `Accept` header asks for, by Kong's reading of it.

/// The forms in which a message can be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{"message": …, "request_id": …}`.
    Json,
    /// Lines of text.
    Plain,
    /// A page.
    Html,
    /// An `<error>` document.
    Xml,
}

impl Form {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Plain => "text/plain; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Xml => "application/xml; charset=utf-8",
        }
    }
}

/// The form of the type with the highest quality, the first of several. Types are compared with their case;
/// what is not known, and no `Accept` at all, means JSON.
pub fn preferred(accept: Option<&[u8]>) -> Form {
    let accept = accept
        .and_then(|accept| std::str::from_utf8(accept).ok())
        .unwrap_or_default();
    let mut best: Option<(f32, &str)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let quality = parts
            .find_map(|part| part.strip_prefix("q=")?.trim().parse().ok())
            .unwrap_or(1.0);
        if best.is_none_or(|(highest, _)| quality > highest) {
            best = Some((quality, media_type));
        }
    }
    match best.map_or("", |(_, media_type)| media_type) {
        "text/plain" | "text/*" => Form::Plain,
        "text/html" => Form::Html,
        "application/xml" => Form::Xml,
        _ => Form::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_follow_accept_as_kong_reads_it() {
        for (accept, form) in [
            (None, Form::Json),
            (Some("*/*"), Form::Json),
            (Some("text/plain"), Form::Plain),
            (Some("text/*"), Form::Plain),
            (Some("text/html"), Form::Html),
            (Some("application/xml"), Form::Xml),
            (Some("text/xml"), Form::Json),
            (Some("TEXT/HTML"), Form::Json),
            (Some("image/png, text/plain"), Form::Json),
            (Some("text/html;q=0.1, application/json;q=0.9"), Form::Json),
            (Some("application/json;q=0.1, text/html;q=0.9"), Form::Html),
            (Some("application/json; charset=utf-8"), Form::Json),
            (Some(""), Form::Json),
        ] {
            assert_eq!(preferred(accept.map(str::as_bytes)), form, "{accept:?}");
        }
    }
}
