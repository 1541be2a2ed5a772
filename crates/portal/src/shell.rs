//! The built page of the application, taken apart at the places for a title, a description and a list.

use weir_console::{Archive, Files};

/// The page of the application among the built files.
const PAGE: &str = "portal.html";
/// The places in the built page for its title and its description.
const TITLE: &str = "<title>Developer portal</title>";
const NO_SCRIPT: (&str, &str) = ("<noscript>", "</noscript>");
/// The built files, and the page taken apart.
pub struct Shell {
    /// The built files.
    pub files: Files,
    before_title: String,
    between: String,
    after: String,
}

impl Shell {
    /// Takes the built page apart.
    pub fn new(archive: Archive) -> Self {
        let files = Files::new(archive);
        let page = files.text(PAGE).unwrap_or_else(|| {
            format!("<!doctype html><html lang=\"en\"><head>{TITLE}</head><body><noscript></noscript></body></html>")
        });
        let (before_title, rest) = page.split_once(TITLE).unwrap_or((&page, ""));
        let (between, rest) = rest.split_once(NO_SCRIPT.0).unwrap_or((rest, ""));
        let (_, after) = rest.split_once(NO_SCRIPT.1).unwrap_or(("", rest));
        Self {
            before_title: before_title.to_owned(),
            between: format!("{between}{}", NO_SCRIPT.0),
            after: format!("{}{after}", NO_SCRIPT.1),
            files,
        }
    }

    /// The page with what it is about.
    pub fn page(&self, about: &PageMetadata) -> String {
        let (title, description) = (escape(&about.title), escape(&about.description));
        format!(
            "{}<title>{title}</title><meta name=\"description\" content=\"{description}\" /><meta property=\"og:title\" content=\"{title}\" /><meta property=\"og:description\" content=\"{description}\" /><meta property=\"og:type\" content=\"website\" />{}{}{}",
            self.before_title, self.between, about.listed, self.after
        )
    }
}

/// The metadata of a page.
pub struct PageMetadata {
    pub title: String,
    pub description: String,
    /// HTML for those who run no scripts.
    pub listed: String,
    pub is_there: bool,
}

/// A text that means nothing in HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_mean_nothing_in_html() {
        assert_eq!(
            escape("</title><script>alert('\"&\")</script>"),
            "&lt;/title&gt;&lt;script&gt;alert(&#39;&quot;&amp;&quot;)&lt;/script&gt;"
        );
    }
}
