//! Exclusive canonical XML (W3C, 1.0), without comments: the bytes of an element that signatures are made of.

use crate::xml::{Child, Document, ElementId};

/// The canonical form of an element. `inclusive` are prefixes that are treated as canonical XML 1.0 does (`#default`: that
/// without a name); `without` is an element that is left out.
pub fn exclusive(
    document: &Document,
    element: ElementId,
    inclusive: &[&str],
    without: Option<ElementId>,
) -> Vec<u8> {
    let mut writer = Writer {
        document,
        inclusive,
        without,
        declared: Vec::new(),
        out: Vec::new(),
    };
    writer.element(element);
    writer.out
}

struct Writer<'d> {
    document: &'d Document,
    inclusive: &'d [&'d str],
    without: Option<ElementId>,
    /// Prefixes with their namespaces, as the elements around have written them; the last one of a prefix counts.
    declared: Vec<(&'d str, &'d str)>,
    out: Vec<u8>,
}

impl<'d> Writer<'d> {
    /// Documents are not deep, so that it can call itself.
    fn element(&mut self, id: ElementId) {
        let element = self.document.at(id);
        let before = self.declared.len();
        self.out.push(b'<');
        self.name(&element.prefix, &element.local);
        self.namespaces(id);
        let mut attributes: Vec<_> = element.attributes.iter().collect();
        attributes.sort_by(|one, other| {
            (one.namespace.as_bytes(), one.local.as_bytes())
                .cmp(&(other.namespace.as_bytes(), other.local.as_bytes()))
        });
        for attribute in attributes {
            self.out.push(b' ');
            self.name(&attribute.prefix, &attribute.local);
            self.out.extend_from_slice(b"=\"");
            self.attribute_value(&attribute.value);
            self.out.push(b'"');
        }
        self.out.push(b'>');
        for child in &element.children {
            match child {
                Child::Element(inner) if Some(*inner) == self.without => {}
                Child::Element(inner) => self.element(*inner),
                Child::Text(text) => self.text(text),
            }
        }
        self.out.extend_from_slice(b"</");
        self.name(&element.prefix, &element.local);
        self.out.push(b'>');
        self.declared.truncate(before);
    }

    /// The namespaces that the element's own names use, unless they are written around it already.
    fn namespaces(&mut self, id: ElementId) {
        let document = self.document;
        let element = document.at(id);
        let used = element.attributes.iter().map(|it| it.prefix.as_str());
        let used = used.filter(|it| !it.is_empty());
        let listed = self
            .inclusive
            .iter()
            .map(|it| if *it == "#default" { "" } else { it });
        let mut prefixes: Vec<&'d str> = used.chain([element.prefix.as_str()]).chain(listed).collect();
        prefixes.retain(|it| *it != "xml");
        prefixes.sort_unstable();
        prefixes.dedup();
        for prefix in prefixes {
            let uri = document.bound(id, prefix);
            let declared = self.declared.iter().rev().find(|(known, _)| *known == prefix);
            // A prefix that was not written has no namespace; only the default one can be undone.
            if declared.map_or("", |(_, declared)| declared) == uri {
                continue;
            }
            self.out.extend_from_slice(b" xmlns");
            if !prefix.is_empty() {
                self.out.push(b':');
                self.out.extend_from_slice(prefix.as_bytes());
            }
            self.out.extend_from_slice(b"=\"");
            self.attribute_value(uri);
            self.out.push(b'"');
            self.declared.push((prefix, uri));
        }
    }

    fn name(&mut self, prefix: &str, local: &str) {
        if !prefix.is_empty() {
            self.out.extend_from_slice(prefix.as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(local.as_bytes());
    }

    fn attribute_value(&mut self, value: &str) {
        for byte in value.bytes() {
            match byte {
                b'&' => self.out.extend_from_slice(b"&amp;"),
                b'<' => self.out.extend_from_slice(b"&lt;"),
                b'"' => self.out.extend_from_slice(b"&quot;"),
                b'\t' => self.out.extend_from_slice(b"&#x9;"),
                b'\n' => self.out.extend_from_slice(b"&#xA;"),
                b'\r' => self.out.extend_from_slice(b"&#xD;"),
                other => self.out.push(other),
            }
        }
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                b'&' => self.out.extend_from_slice(b"&amp;"),
                b'<' => self.out.extend_from_slice(b"&lt;"),
                b'>' => self.out.extend_from_slice(b"&gt;"),
                b'\r' => self.out.extend_from_slice(b"&#xD;"),
                other => self.out.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::Limits;

    /// The canonical form of the first element of this local name.
    fn canonical(text: &str, local: &str, inclusive: &[&str]) -> String {
        let document = Document::parse(text, Limits::default()).expect("well-formed");
        let found = document.all().find(|it| document.at(*it).local == local);
        let bytes = exclusive(&document, found.expect("the element"), inclusive, None);
        String::from_utf8(bytes).expect("UTF-8")
    }

    /// The examples of the W3C's recommendation "Exclusive XML Canonicalization 1.0", section 2.
    #[test]
    fn examples_of_the_recommendation() {
        let plain = "<n1:elem1 xmlns:n1=\"http://b.example\">\n     content\n  </n1:elem1>";
        assert_eq!(canonical(plain, "elem1", &[]), plain);
        let enveloped = "<n0:pdu xmlns:n0=\"http://a.example\">\n  <n1:elem1 xmlns:n1=\"http://b.example\">\n     \
            content\n  </n1:elem1>\n</n0:pdu>";
        assert_eq!(canonical(enveloped, "elem1", &[]), plain);
        for around in [
            "<n0:local xmlns:n0=\"foo:bar\" xmlns:n3=\"ftp://example.org\">{}</n0:local>",
            "<n2:pdu xmlns:n1=\"http://example.com\" xmlns:n2=\"http://foo.example\" xml:lang=\"fr\" \
                xml:space=\"retain\">{}</n2:pdu>",
        ] {
            let inner = "<n1:elem2 xmlns:n1=\"http://example.net\" xml:lang=\"en\">\n    <n3:stuff \
                xmlns:n3=\"ftp://example.org\"/>\n  </n1:elem2>";
            let expected = "<n1:elem2 xmlns:n1=\"http://example.net\" xml:lang=\"en\">\n    <n3:stuff \
                xmlns:n3=\"ftp://example.org\"></n3:stuff>\n  </n1:elem2>";
            assert_eq!(canonical(&around.replace("{}", inner), "elem2", &[]), expected);
        }
    }

    /// Examples of "Canonical XML 1.0", section 3, whose exclusive form is the same or follows from it.
    #[test]
    fn tags_and_characters() {
        for (text, expected) in [
            // 3.3: start and end tags.
            ("<doc><e1   /><e2   ></e2></doc>", "<doc><e1></e1><e2></e2></doc>"),
            (
                "<doc><e3   name = \"elem3\"   id=\"elem3\"   /></doc>",
                "<doc><e3 id=\"elem3\" name=\"elem3\"></e3></doc>",
            ),
            (
                "<e5 a:attr=\"out\" b:attr=\"sorted\" attr2=\"all\" attr=\"I'm\"\n xmlns:b=\"http://www.ietf.org\" \
                 xmlns:a=\"http://www.w3.org\" xmlns=\"http://example.org\"/>",
                "<e5 xmlns=\"http://example.org\" xmlns:a=\"http://www.w3.org\" xmlns:b=\"http://www.ietf.org\" \
                 attr=\"I'm\" attr2=\"all\" b:attr=\"sorted\" a:attr=\"out\"></e5>",
            ),
            (
                "<e6 xmlns=\"\" xmlns:a=\"http://www.w3.org\"><e7 xmlns=\"http://www.ietf.org\"><e8 xmlns=\"\" \
                 xmlns:a=\"http://www.w3.org\"><e9 xmlns=\"\" xmlns:a=\"http://www.ietf.org\"/></e8></e7></e6>",
                "<e6><e7 xmlns=\"http://www.ietf.org\"><e8 xmlns=\"\"><e9></e9></e8></e7></e6>",
            ),
            // 3.4: characters and references to them.
            (
                "<text>First line&#x0d;&#10;Second line</text>",
                "<text>First line&#xD;\nSecond line</text>",
            ),
            ("<value>&#x32;</value>", "<value>2</value>"),
            (
                "<value><![CDATA[value>\"0\" && value<\"10\" ?\"valid\":\"error\"]]></value>",
                "<value>value&gt;\"0\" &amp;&amp; value&lt;\"10\" ?\"valid\":\"error\"</value>",
            ),
            (
                "<compute expr='value>\"0\" &amp;&amp; value&lt;\"10\" ?\"valid\":\"error\"'>valid</compute>",
                "<compute expr=\"value>&quot;0&quot; &amp;&amp; value&lt;&quot;10&quot; ?&quot;valid&quot;:&quot;\
                 error&quot;\">valid</compute>",
            ),
            (
                "<norm attr=' &apos;   &#x20;&#13;&#xa;&#9;   &apos; '/>",
                "<norm attr=\" '    &#xD;&#xA;&#x9;   ' \"></norm>",
            ),
            ("<norm attr='a\n\tb'/>", "<norm attr=\"a  b\"></norm>"),
            // Comments are no part of it.
            ("<a>b<!-- c -->d</a>", "<a>bd</a>"),
        ] {
            let document = Document::parse(text, Limits::default()).expect("well-formed");
            let bytes = exclusive(&document, document.root(), &[], None);
            assert_eq!(String::from_utf8_lossy(&bytes), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_of_the_list_are_written_where_they_are_in_scope() {
        let text = "<a xmlns=\"urn:a\" xmlns:xs=\"urn:xs\" xmlns:no=\"urn:no\"><b><c xmlns:xs=\"urn:other\"/></b></a>";
        let expected = "<b xmlns=\"urn:a\" xmlns:xs=\"urn:xs\"><c xmlns:xs=\"urn:other\"></c></b>";
        assert_eq!(canonical(text, "b", &["xs"]), expected);
        assert_eq!(
            canonical(
                "<x:a xmlns:x=\"urn:x\" xmlns=\"urn:d\"><x:b/></x:a>",
                "b",
                &["#default"]
            ),
            "<x:b xmlns=\"urn:d\" xmlns:x=\"urn:x\"></x:b>"
        );
        let bare = "<b xmlns=\"urn:a\"><c></c></b>";
        assert_eq!(canonical(text, "b", &[]), bare);
        let document = Document::parse(text, Limits::default()).expect("well-formed");
        let all: Vec<ElementId> = document.all().collect();
        let without = exclusive(&document, all[1], &[], Some(all[2]));
        assert_eq!(String::from_utf8_lossy(&without), "<b xmlns=\"urn:a\"></b>");
    }
}
