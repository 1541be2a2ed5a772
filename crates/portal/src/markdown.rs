//! Markdown as a tree of few kinds of nodes. It holds texts, never HTML: what a person wrote as HTML is shown as the text
//! that it is, and links that would run something are texts, too.

use pulldown_cmark::{
    BlockQuoteKind, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest text that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The most nodes of a tree; what comes after them is left out.
const MAX_NODES: usize = 20_000;
/// The deepest nesting; what lies deeper becomes a sibling of its parent.
const MAX_DEPTH: usize = 40;

/// A part of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TextNode")]
pub struct Node {
    /// `heading`, `paragraph`, `list`, `item`, `quote`, `callout`, `code`, `table`, `row`, `cell`, `rule`, `text`,
    /// `strong`, `emphasis`, `strike`, `inline-code`, `link`, `image` or `break`.
    pub kind: String,
    /// Its text, of those kinds that have one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The target of a link, the address of an image, the language of code, the kind of a callout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// The level of a heading, the first number of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u64>,
    /// Its content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    fn text(kind: &str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::of(kind)
        }
    }

    fn to(kind: &str, to: impl Into<String>) -> Self {
        Self {
            to: to.into(),
            ..Self::of(kind)
        }
    }
}

/// The address of a link, if it only leads somewhere: `http`, `https`, `mailto`, or a path of the portal.
fn safe(to: &str) -> Option<String> {
    // Browsers take control characters out of an address before they read its scheme.
    let to: String = to.chars().filter(|it| !it.is_control() && *it != ' ').collect();
    let scheme_end = to.find(':');
    let path_begin = to.find(['/', '?', '#']);
    let scheme = match (scheme_end, path_begin) {
        (Some(end), Some(begin)) if begin < end => None,
        (Some(end), _) => Some(to[..end].to_ascii_lowercase()),
        (None, _) => None,
    };
    match scheme.as_deref() {
        None | Some("http" | "https" | "mailto") => Some(to),
        Some(_) => None,
    }
}

/// Whether an address is of the portal itself: pages load nothing from elsewhere.
fn is_own(to: &str) -> bool {
    to.starts_with('/') && !to.starts_with("//") && !to.contains('\\')
}

struct Builder {
    /// Nodes that are open, the outermost first.
    open: Vec<Node>,
    count: usize,
    /// Tags inside the deepest node, which get none.
    too_deep: usize,
}

/// Reads a text.
pub fn read(text: &str) -> Vec<Node> {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_GFM;
    let mut builder = Builder {
        open: vec![Node::default()],
        count: 0,
        too_deep: 0,
    };
    for event in Parser::new_ext(&text[..end], options) {
        if builder.count >= MAX_NODES {
            break;
        }
        builder.take(event);
    }
    while builder.open.len() > 1 {
        builder.close();
    }
    builder.open.pop().map(|root| root.children).unwrap_or_default()
}

impl Builder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            // As text: HTML means nothing here.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push_text(&text),
            Event::Code(text) => self.push(Node::text("inline-code", text.into_string())),
            Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(Node::text("inline-code", text.into_string()));
            }
            Event::SoftBreak => self.push_text(" "),
            Event::HardBreak => self.push(Node::of("break")),
            Event::Rule => self.push(Node::of("rule")),
            Event::FootnoteReference(text) => self.push_text(&text),
            Event::TaskListMarker(is_done) => self.push_text(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        if self.open.len() >= MAX_DEPTH {
            self.too_deep += 1;
            return;
        }
        let node = node_of(tag);
        self.count += 1;
        self.open.push(node);
    }

    fn end(&mut self, _end: TagEnd) {
        match self.too_deep {
            0 => self.close(),
            _ => self.too_deep -= 1,
        }
    }

    fn close(&mut self) {
        if let Some(mut node) = self.open.pop() {
            if matches!(node.kind.as_str(), "code" | "image") {
                // Their content is a text.
                node.text = plain(&node.children);
                node.children = Vec::new();
            }
            if let Some(parent) = self.open.last_mut() {
                parent.children.push(node);
            }
        }
    }

    fn push(&mut self, node: Node) {
        self.count += 1;
        if let Some(parent) = self.open.last_mut() {
            parent.children.push(node);
        }
    }

    fn push_text(&mut self, text: &str) {
        if let Some(last) = self.open.last_mut().and_then(|it| it.children.last_mut())
            && last.kind == "text"
        {
            last.text.push_str(text);
            return;
        }
        self.push(Node::text("text", text));
    }
}

fn node_of(tag: Tag<'_>) -> Node {
    match tag {
        Tag::Heading { level, .. } => Node {
            level: Some(number(level)),
            ..Node::of("heading")
        },
        Tag::BlockQuote(None) => Node::of("quote"),
        Tag::BlockQuote(Some(kind)) => Node::to("callout", callout(kind)),
        Tag::CodeBlock(CodeBlockKind::Fenced(language)) => Node::to("code", word(&language)),
        Tag::CodeBlock(CodeBlockKind::Indented) => Node::of("code"),
        Tag::List(first) => Node {
            level: first,
            ..Node::of("list")
        },
        Tag::Item => Node::of("item"),
        Tag::Table(_) => Node::of("table"),
        Tag::TableHead => Node::to("row", "head"),
        Tag::TableRow => Node::of("row"),
        Tag::TableCell => Node::of("cell"),
        Tag::Emphasis => Node::of("emphasis"),
        Tag::Strong => Node::of("strong"),
        Tag::Strikethrough => Node::of("strike"),
        Tag::Link { dest_url, .. } => match safe(&dest_url) {
            Some(to) => Node::to("link", to),
            None => Node::of("span"),
        },
        Tag::Image { dest_url, .. } => match safe(&dest_url) {
            Some(to) if is_own(&to) => Node::to("image", to),
            Some(to) => Node::to("link", to),
            None => Node::of("span"),
        },
        _ => Node::of("paragraph"),
    }
}

fn word(text: &CowStr<'_>) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.chars().take(20).collect()
}

fn number(level: HeadingLevel) -> u64 {
    level as u64
}

fn callout(kind: BlockQuoteKind) -> &'static str {
    match kind {
        BlockQuoteKind::Note => "note",
        BlockQuoteKind::Tip => "tip",
        BlockQuoteKind::Important => "important",
        BlockQuoteKind::Warning => "warning",
        BlockQuoteKind::Caution => "caution",
    }
}

/// The words of a tree, for search and descriptions.
pub fn plain(nodes: &[Node]) -> String {
    fn add(nodes: &[Node], text: &mut String) {
        for node in nodes {
            text.push_str(&node.text);
            add(&node.children, text);
            let is_block = !matches!(
                node.kind.as_str(),
                "text" | "strong" | "emphasis" | "strike" | "inline-code" | "link" | "span"
            );
            if is_block && !text.ends_with([' ', '\n']) && !text.is_empty() {
                text.push(' ');
            }
        }
    }
    let mut text = String::new();
    add(nodes, &mut text);
    match nodes {
        // The text of code keeps its end.
        [only] if only.kind == "text" => text,
        _ => text.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree(text: &str) -> serde_json::Value {
        json!(read(text))
    }

    #[test]
    fn blocks_and_words_become_nodes() {
        assert_eq!(
            tree("# Pets\n\nA *list* of `pets`."),
            json!([
                {"kind": "heading", "level": 1, "children": [{"kind": "text", "text": "Pets"}]},
                {"kind": "paragraph", "children": [
                    {"kind": "text", "text": "A "},
                    {"kind": "emphasis", "children": [{"kind": "text", "text": "list"}]},
                    {"kind": "text", "text": " of "},
                    {"kind": "inline-code", "text": "pets"},
                    {"kind": "text", "text": "."},
                ]},
            ])
        );
        assert_eq!(
            tree("```sh\ncurl x\n```"),
            json!([{"kind": "code", "to": "sh", "text": "curl x\n"}])
        );
        assert_eq!(tree("> [!WARNING]\n> Hot")[0]["kind"], "callout");
        assert_eq!(
            tree("| a | b |\n|---|---|\n| 1 | 2 |")[0]["children"][0]["to"],
            "head"
        );
    }

    /// 36
    #[test]
    fn what_would_run_is_text() {
        for (text, expected) in [
            ("<script>alert(1)</script>", "<script>alert(1)</script>"),
            (
                "a <img src=x onerror=alert(1)> b",
                "a <img src=x onerror=alert(1)> b",
            ),
            ("<svg onload=alert(1)></svg>", "<svg onload=alert(1)></svg>"),
        ] {
            let found = read(text);
            assert_eq!(plain(&found).trim(), expected);
            assert!(!json!(found).to_string().contains("html"), "{found:?}");
        }
        for to in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java\tscript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "\u{1}javascript:alert(1)",
        ] {
            assert_eq!(safe(to), None, "{to:?}");
        }
        for to in [
            "https://a.test/b:c",
            "/apis/a:b",
            "mailto:a@b.test",
            "#top",
            "a/b:c",
        ] {
            assert_eq!(safe(to).as_deref(), Some(to));
        }
        assert_eq!(read("[x](javascript:alert%281%29)")[0].children[0].kind, "span");
        // Nothing is loaded from elsewhere.
        assert_eq!(read("![x](https://evil.test/p.png)")[0].children[0].kind, "link");
        assert_eq!(read("![x](//evil.test/p.png)")[0].children[0].kind, "link");
        assert_eq!(read("![x](/images/p.png)")[0].children[0].kind, "image");
    }

    #[test]
    fn trees_are_bounded() {
        fn depth(nodes: &[Node]) -> usize {
            nodes.iter().map(|it| 1 + depth(&it.children)).max().unwrap_or(0)
        }
        assert!(depth(&read(&"> ".repeat(5_000))) <= MAX_DEPTH);
        let deep = format!("{}x", "> ".repeat(300));
        assert!(depth(&read(&deep)) <= MAX_DEPTH + 1);
        let many = "*a* ".repeat(50_000);
        fn count(nodes: &[Node]) -> usize {
            nodes.iter().map(|it| 1 + count(&it.children)).sum()
        }
        assert!(count(&read(&many)) <= MAX_NODES + MAX_DEPTH);
        assert!(read(&"é".repeat(MAX_BYTES)).len() == 1);
    }
}
