//! Logos of portals and APIs: SVG as a text, or PNG in base64. Only what is inert is accepted: of SVG the elements that
//! draw, and nothing that runs, loads or refers to another place.
//!
//! **What it is not**: it repairs nothing. What is not known to be harmless is refused, with the place.

use data_encoding::BASE64;

/// The longest logo as it is written, in bytes.
pub const MAX: usize = 64 << 10;
/// The largest side of a PNG, in pixels.
const MAX_SIDE: u32 = 2_048;
/// How a PNG is written.
const PNG: &str = "data:image/png;base64,";
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Elements that only draw, in lower case.
const ELEMENTS: [&str; 21] = [
    "svg",
    "g",
    "defs",
    "symbol",
    "use",
    "title",
    "desc",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "lineargradient",
    "radialgradient",
    "stop",
    "clippath",
    "mask",
    "text",
    "tspan",
];

/// A logo as it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logo {
    /// Its media type.
    pub media: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Reads a logo as documents hold it; `Ok(None)`: no logo.
///
/// # Errors
/// What is wrong, and what to do.
pub fn read(text: &str) -> Result<Option<Logo>, String> {
    let text = text.trim();
    if text.len() > MAX {
        return Err(format!("the logo is longer than {MAX} bytes: make it smaller"));
    }
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(encoded) = text.strip_prefix(PNG) {
        let bytes = BASE64.decode(encoded.as_bytes());
        let bytes = bytes.map_err(|error| format!("the logo is not valid Base64: {error}"))?;
        check_png(&bytes)?;
        return Ok(Some(Logo {
            media: "image/png",
            bytes,
        }));
    }
    if !text.starts_with('<') {
        return Err(format!("expected the text of an SVG, or a PNG as {PNG}…"));
    }
    check_svg(text)?;
    Ok(Some(Logo {
        media: "image/svg+xml",
        bytes: text.as_bytes().to_vec(),
    }))
}

/// The fault of a logo.
pub fn fault(text: &str) -> Option<String> {
    read(text).err()
}

/// A PNG as documents hold it.
pub fn of_png(bytes: &[u8]) -> String {
    format!("{PNG}{}", BASE64.encode(bytes))
}

/// The signature, whole chunks from `IHDR` to `IEND`, and nothing after them.
fn check_png(bytes: &[u8]) -> Result<(), String> {
    let broken = || "the logo is not a whole PNG".to_owned();
    let mut rest = bytes.strip_prefix(SIGNATURE).ok_or_else(broken)?;
    let mut is_first = true;
    loop {
        let (head, after) = rest.split_at_checked(8).ok_or_else(broken)?;
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = &head[4..];
        let (data, after) = after.split_at_checked(length).ok_or_else(broken)?;
        let (_checksum, after) = after.split_at_checked(4).ok_or_else(broken)?;
        if is_first {
            let sides = data.get(..8).filter(|_| kind == b"IHDR").ok_or_else(broken)?;
            let side =
                |at: usize| u32::from_be_bytes([sides[at], sides[at + 1], sides[at + 2], sides[at + 3]]);
            if side(0).max(side(4)) > MAX_SIDE {
                return Err(format!(
                    "the logo is larger than {MAX_SIDE} pixels: make it smaller"
                ));
            }
        }
        if kind == b"IEND" {
            return if after.is_empty() { Ok(()) } else { Err(broken()) };
        }
        (rest, is_first) = (after, false);
    }
}

/// Goes through the tags. It reads no more of XML than logos need: no entities of their own, no instructions.
fn check_svg(text: &str) -> Result<(), String> {
    let mut rest = text;
    if let Some(after) = rest.strip_prefix("<?xml ") {
        rest = after
            .split_once("?>")
            .ok_or("the declaration <?xml … has no end")?
            .1;
    }
    let (mut is_first, mut open) = (true, 0_usize);
    while let Some(begin) = rest.find('<') {
        let tag = &rest[begin..];
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.split_once("-->").ok_or("a comment has no end")?.1;
            continue;
        }
        let (body, after) = tag_of(tag)?;
        rest = after;
        if let Some(name) = body.strip_prefix('/') {
            check_element(name.trim())?;
            open = open.checked_sub(1).ok_or("an element ends that has not begun")?;
            continue;
        }
        let (body, is_whole) = body.strip_suffix('/').map_or((body, false), |it| (it, true));
        let (name, attributes) = body
            .split_once(|it: char| it.is_ascii_whitespace())
            .unwrap_or((body, ""));
        check_element(name)?;
        if is_first != name.eq_ignore_ascii_case("svg") && is_first {
            return Err(format!("expected <svg> first, found <{name}>"));
        }
        is_first = false;
        check_attributes(name, attributes)?;
        open += usize::from(!is_whole);
    }
    match (is_first, open) {
        (true, _) => Err("there is no <svg>".to_owned()),
        (_, 0) => Ok(()),
        _ => Err("an element has no end".to_owned()),
    }
}

/// The text between `<` and `>`, and what follows. A `>` in quotes belongs to it.
fn tag_of(tag: &str) -> Result<(&str, &str), String> {
    let mut quote = None;
    for (at, character) in tag.char_indices().skip(1) {
        match (quote, character) {
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            (None, '>') => return Ok((&tag[1..at], &tag[at + 1..])),
            (_, '<') => return Err("a '<' is inside a tag".to_owned()),
            _ => {}
        }
    }
    Err("a tag has no end".to_owned())
}

fn check_element(name: &str) -> Result<(), String> {
    match ELEMENTS.contains(&name.to_ascii_lowercase().as_str()) {
        true => Ok(()),
        false => Err(format!(
            "the element <{name}> is not allowed in a logo: draw with shapes and attributes only"
        )),
    }
}

fn check_attributes(element: &str, mut rest: &str) -> Result<(), String> {
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let unreadable = || format!("an attribute of <{element}> cannot be read");
        let (name, after) = rest.split_once('=').ok_or_else(unreadable)?;
        let (name, after) = (name.trim(), after.trim_start());
        let quote = after
            .chars()
            .next()
            .filter(|it| matches!(it, '"' | '\''))
            .ok_or_else(unreadable)?;
        let (value, after) = after[1..].split_once(quote).ok_or_else(unreadable)?;
        if !is_inert(name, value) {
            return Err(format!(
                "the attribute {name} of <{element}> is not allowed in a logo"
            ));
        }
        rest = after;
    }
}

/// Whether an attribute runs nothing and refers to nothing outside of the file.
fn is_inert(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_name = name
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-:_".contains(&it));
    if !is_name || name.starts_with("on") || matches!(name.as_str(), "src" | "base" | "xml:base") {
        return false;
    }
    if name == "xmlns" || name.starts_with("xmlns:") {
        return value.starts_with("http://www.w3.org/");
    }
    // Entities and escapes could spell anything; no logo needs them.
    if value.contains(['&', '\\', '@']) {
        return false;
    }
    if name == "href" || name.ends_with(":href") {
        return value.starts_with('#');
    }
    let plain: String = value
        .chars()
        .filter(|it| !it.is_whitespace() && !it.is_control())
        .collect();
    let plain = plain.to_lowercase();
    let is_away = ["javascript:", "data:", "http:", "https:", "//", "expression("];
    let leads_away = plain
        .split("url(")
        .skip(1)
        .any(|it| !it.trim_start_matches(['"', '\'']).starts_with('#'));
    !leads_away && !is_away.iter().any(|it| plain.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hostile logos stay out, those of people get in.
    #[test]
    fn logos_are_inert() {
        let inside = |body: &str| {
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\">{body}</svg>")
        };
        for (body, is_good) in [
            ("<path d=\"M0 0h8v8z\" fill='#0a6685'/>", true),
            (
                "<defs><linearGradient id=\"a\"><stop offset=\"1\" stop-color=\"red\"/></linearGradient></defs><rect fill=\"url(#a)\"/>",
                true,
            ),
            (
                "<!-- made by hand --><title>a &amp; b</title><use href=\"#a\"/>",
                true,
            ),
            ("<g style=\"fill:url( '#a' )\"></g>", true),
            ("<script>alert(1)</script>", false),
            ("<SCRIPT>alert(1)</SCRIPT>", false),
            ("<path onload=\"alert(1)\"/>", false),
            ("<path OnClick='x'/>", false),
            ("<a href=\"javascript:alert(1)\"><path/></a>", false),
            ("<use href=\"https://evil.test/x.svg#a\"/>", false),
            ("<use xlink:href=\"data:image/svg+xml,x#a\"/>", false),
            ("<image href=\"https://evil.test/pixel\"/>", false),
            ("<foreignObject><body/></foreignObject>", false),
            ("<style>@import url(https://evil.test)</style>", false),
            ("<rect fill=\"url(https://evil.test)\"/>", false),
            ("<rect style=\"background: u\\72l(https://evil.test)\"/>", false),
            ("<rect fill=\"java&#115;cript:x\"/>", false),
            ("<set attributeName=\"href\" to=\"javascript:x\"/>", false),
            ("<animate/>", false),
            ("<!DOCTYPE svg>", false),
            ("<![CDATA[x]]>", false),
            ("<?xml-stylesheet href=\"x\"?>", false),
            ("<path d=\"<script>\"/>", false),
            ("<g>", false),
            ("</g>", false),
            ("<path a/>", false),
        ] {
            let found = read(&inside(body));
            assert_eq!(found.is_ok(), is_good, "{body}: {found:?}");
        }
        assert!(read("<?xml version=\"1.0\"?><!DOCTYPE svg [<!ENTITY a \"b\">]><svg></svg>").is_err());
        assert!(read("<g></g>").is_err());
        assert!(read("https://example.com/logo.png").is_err());
        assert_eq!(read(" "), Ok(None));
        assert!(read(&inside(&" ".repeat(MAX))).is_err());
    }

    fn png(side: u32, behind: &[u8]) -> String {
        let mut bytes = SIGNATURE.to_vec();
        let mut chunk = |kind: &[u8], data: &[u8]| {
            bytes.extend(u32::try_from(data.len()).expect("small").to_be_bytes());
            bytes.extend(kind);
            bytes.extend(data);
            bytes.extend([0; 4]);
        };
        let mut head = [side.to_be_bytes(), 8_u32.to_be_bytes()].concat();
        head.extend([8, 6, 0, 0, 0]);
        chunk(b"IHDR", &head);
        chunk(b"IDAT", &[0; 9]);
        chunk(b"IEND", &[]);
        bytes.extend(behind);
        of_png(&bytes)
    }

    #[test]
    fn pictures_are_whole_and_bounded() {
        for (text, is_good) in [
            (png(64, b""), true),
            (png(4_096, b""), false),
            (png(64, b"<script>"), false),
            (of_png(b"GIF89a"), false),
            (of_png(SIGNATURE), false),
            ("data:image/png;base64,?".to_owned(), false),
            ("data:image/svg+xml;base64,PHN2Zz4=".to_owned(), false),
        ] {
            assert_eq!(read(&text).is_ok(), is_good, "{text}");
        }
    }
}
