//! The header list.

use super::*;

#[test]
fn headers_keep_order_and_duplicates() {
    let mut headers = Headers::default();
    headers.append(b"A", b"1");
    headers.append(b"b", b"2");
    headers.append(b"a", b"3");
    assert_eq!(headers.get(b"A"), Some(&b"1"[..]));
    assert_eq!(headers.get_all(b"a").collect::<Vec<_>>(), [b"1", b"3"]);
    headers.set(b"a", b"4");
    let mut lines = Vec::new();
    headers.write_lines(&mut lines);
    assert_eq!(lines, b"b: 2\r\na: 4\r\n");
    assert_eq!(
        headers.iter().map(|it| it.value).collect::<Vec<_>>(),
        [b"2", b"4"]
    );
    assert!(headers.remove(b"B") && !headers.remove(b"B"));
    assert_eq!(headers.len(), 1);
}

#[test]
fn names_are_checked_once() {
    assert_eq!(FieldName::new(""), None);
    assert_eq!(FieldName::new("a b"), None);
    let name = FieldName::new("X-Limit").expect("a name");
    let mut headers = Headers::default();
    headers.append(b"A", b"1");
    headers.append_named(&name, b"20");
    headers.append_named(&name, b"");
    assert_eq!(headers.get_all(b"x-limit").collect::<Vec<_>>(), [&b"20"[..], b""]);
    let mut lines = Vec::new();
    headers.write_lines(&mut lines);
    assert_eq!(lines, b"A: 1\r\nX-Limit: 20\r\nX-Limit: \r\n");
}

#[test]
fn loaded_lines_are_written_as_they_came() {
    let mut headers = Headers::default();
    headers.index_line(b"A", 0, 2..3, 5);
    headers.index_line(b"Connection", 5, 17..18, 20);
    headers.index_line(b"B", 20, 24..25, 28);
    headers.load(b"A:1\r\nConnection: x\r\nB:  2 \r\n");
    headers.append(b"C", b"3");
    headers.remove(b"connection");
    let mut lines = Vec::new();
    headers.write_lines(&mut lines);
    assert_eq!(lines, b"A:1\r\nB:  2 \r\nC: 3\r\n");
    assert_eq!(headers.get(b"b"), Some(&b"2"[..]));
}

#[test]
fn lists_join_with_the_others_values_first() {
    for (own, other, joined) in [
        ("a: 1\r\n", "b: 2\r\nc: 3\r\n", "a: 1\r\nb: 2\r\nc: 3\r\n"),
        ("A: 1\r\nb: 2\r\n", "a: 3\r\n", "b: 2\r\na: 3\r\nA: 1\r\n"),
        (
            "a: 1\r\nb: 2\r\nA: 3\r\n",
            "c: 4\r\na: 5\r\na: 6\r\n",
            "b: 2\r\nc: 4\r\na: 5\r\na: 6\r\na: 1\r\nA: 3\r\n",
        ),
        (
            "a: 1\r\nb: 2\r\n",
            "b: 3\r\na: 4\r\n",
            "b: 3\r\na: 4\r\na: 1\r\nb: 2\r\n",
        ),
        ("a: 1\r\n", "", "a: 1\r\n"),
        ("", "a: 1\r\n", "a: 1\r\n"),
    ] {
        let list = |text: &str| {
            let mut headers = Headers::default();
            headers.append(b"gone", b"before");
            for line in text.lines() {
                let (name, value) = line.split_once(": ").expect("a header");
                headers.append(name.as_bytes(), value.as_bytes());
            }
            headers.remove(b"gone");
            headers
        };
        let (mut headers, other) = (list(own), list(other));
        headers.prepend_all(&other);
        let mut lines = Vec::new();
        headers.write_lines(&mut lines);
        assert_eq!(String::from_utf8_lossy(&lines), joined);
    }
}

#[test]
fn a_value_grows_in_its_place() {
    let mut headers = Headers::default();
    headers.index_line(b"A", 0, 2..3, 5);
    headers.index_line(b"Type", 5, 12..16, 19);
    headers.index_line(b"B", 19, 22..23, 25);
    headers.load(b"A:1\r\nType:  text \r\nB: 2\r\n");
    headers.extend_value(b"type", |value| {
        (value == b"text").then_some(&b"; charset=utf-8"[..])
    });
    headers.extend_value(b"none", |_| Some(b"x"));
    headers.extend_value(b"b", |_| None);
    let mut lines = Vec::new();
    headers.write_lines(&mut lines);
    assert_eq!(lines, b"A:1\r\nType: text; charset=utf-8\r\nB: 2\r\n");
    assert_eq!(headers.get(b"type"), Some(&b"text; charset=utf-8"[..]));
}

#[test]
fn what_would_split_a_message_is_not_added() {
    let mut headers = Headers::default();
    for (name, value) in [
        ("a b", "x"),
        ("", "x"),
        ("a:", "x"),
        ("a", "x\r\ny: z"),
        ("a", "\0"),
        ("a\n", "x"),
    ] {
        headers.append(name.as_bytes(), value.as_bytes());
    }
    assert!(headers.is_empty());
}

#[test]
fn several_names_are_removed_at_once() {
    let mut headers = Headers::default();
    for name in ["Expect", "Extent", "accept", "UPGRADE", "expect", "Upgrades"] {
        headers.append(name.as_bytes(), b"x");
    }
    headers.remove_any([b"expect", b"upgrade"]);
    let left: Vec<&[u8]> = headers.iter().map(|header| header.name).collect();
    assert_eq!(left, [&b"Extent"[..], b"accept", b"Upgrades"]);
    headers.remove_any([b"expect"]);
    assert_eq!(headers.len(), 3);
}
