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

#[test]
fn names_of_any_case_are_the_same() {
    for own in 0..=u8::MAX {
        for other in 0..=u8::MAX {
            // In the first eight bytes, and behind them.
            for at in [1, 9] {
                let (mut name, mut asked) = (*b"Accept-Abc", *b"aCCEPT-aBC");
                (name[at], asked[at]) = (own, other);
                let is_same = name.eq_ignore_ascii_case(&asked);
                assert_eq!(is_same_name(&name, &asked), is_same, "{own} {other} {at}");
            }
        }
    }
    assert!(!is_same_name(b"accept", b"accept-1"));
}

#[test]
fn names_are_found_by_their_first_letter() {
    let mut headers = Headers::default();
    for name in ["X-B", "x-a", "Y-a"] {
        headers.append(name.as_bytes(), b"1");
    }
    headers.remove(b"X-A");
    for (initial, name, is_there) in [
        (b'x', "X-B", true),
        (b'x', "x-a", false),
        (b'x', "Y-a", false),
        (b'y', "Y-a", true),
    ] {
        let found = headers.any_name(initial, |it| it == name.as_bytes());
        assert_eq!(found, is_there, "{initial} {name}");
    }
}

#[test]
fn lists_know_the_names_that_they_cannot_have() {
    let mut headers = Headers::default();
    assert!(!headers.may_have(Tag::of(b"a")));
    headers.append(b"Accept", b"1");
    let mut other = Headers::default();
    other.append(b"Via", b"1");
    headers.prepend_all(&other);
    let mut copy = Headers::default();
    copy.copy_from(&headers);
    for list in [&headers, &copy] {
        assert!(list.contains(b"accept") && list.contains(b"VIA"));
        assert!(!list.may_have(Tag::of(b"Transfer-Encoding")));
        assert_eq!(list.get_all(b"upgrade").count(), 0);
    }
    headers.clear();
    assert!(!headers.may_have(Tag::of(b"accept")));
}
