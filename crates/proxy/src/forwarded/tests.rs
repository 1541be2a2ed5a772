//! Paths and other hops, as upstreams see them.

use super::*;
use weir_plugin::PathRules;
use weir_plugin::uri::NormalForm;

#[test]
fn prefixes_have_no_escapes_that_a_header_does_not_need() {
    for (prefix, expected) in [
        (&b"/plain"[..], &b"/plain"[..]),
        (b"/e%20x", b"/e x"),
        (b"/caf%C3%A9", b"/caf\xc3\xa9"),
        (b"/a%2Fb%3f%25", b"/a%2Fb%3f%25"),
        (b"/a%0D%0AX:%20y%00%7F", b"/a%0D%0AX: y%00%7F"),
        (b"/%4", b"/%4"),
        (b"/%zz%", b"/%zz%"),
    ] {
        assert_eq!(prefix_value(prefix).as_ref(), expected);
        assert!(is_value(&prefix_value(prefix)));
    }
}

#[test]
fn paths_join_as_documented() {
    let rewrite = |base: &str, strip_matched, join| PathRewrite {
        strip_matched,
        base: (!base.is_empty()).then(|| base.to_owned()),
        join,
    };
    use PathJoin::{Concatenate as Bytes, Segments};
    #[rustfmt::skip]
    let cases = [
        ("/", "/route", true, "/route", Segments, "/"),
        ("/", "/route", true, "/route/", Segments, "/"),
        ("/", "/route", true, "/routereq", Segments, "/req"),
        ("/", "/route/", true, "/route/req", Segments, "/req"),
        ("/srv", "/rou", false, "/roureq", Segments, "/srv/roureq"),
        ("/srv", "/rou", true, "/roureq", Segments, "/srv/req"),
        ("/srv/", "/rou", true, "/rou", Segments, "/srv"),
        ("/service", "/", true, "/", Segments, "/service"),
        ("/service", "/", false, "/", Segments, "/service"),
        ("/service", "/", true, "/route", Segments, "/service/route"),
        ("/service", "/route", true, "/route/", Segments, "/service/"),
        ("/service", "/route/", true, "/route/", Segments, "/service/"),
        ("/service", "/route/", true, "/route/req", Segments, "/service/req"),
        ("/service", "/route", true, "/route./req", Segments, "/service/req"),
        ("/service", "/route", true, "/route", Bytes, "/service"),
        ("/service", "/route/", true, "/route/req", Bytes, "/servicereq"),
        ("/srv/", "/rou", true, "/rou", Bytes, "/srv/"),
        ("/", "/route", true, "/route/req", Bytes, "/req"),
        ("/srv", "/rou", false, "/rou/x", Bytes, "/srvrou/x"),
        ("/srv/", "", false, "/", Segments, "/srv/"),
        ("/srv/", "/", true, "/", Segments, "/srv/"),
        ("/srv/", "/", true, "/x", Segments, "/srv/x"),
        ("/srv/", "/rou/", true, "/rou/", Segments, "/srv/"),
        ("/srv/", "/rou", true, "/rou/", Segments, "/srv/"),
        ("/srv/", "/rou", true, "/rou/x", Segments, "/srv/x"),
        ("/srv", "", true, "/x", Segments, "/srv/x"),
        ("/srv", "", true, "/", Segments, "/srv"),
        ("/srv", "", true, "/x", Bytes, "/srvx"),
    ];
    for (base, matched, strip, path, join_mode, wanted) in cases {
        let mut out = Vec::new();
        join(
            &rewrite(base, strip, join_mode),
            matched.len(),
            path.as_bytes(),
            &mut out,
        );
        assert_eq!(
            String::from_utf8_lossy(&out),
            wanted,
            "{base} {matched} {strip} {path} {join_mode:?}"
        );
    }
}

#[test]
fn other_hops_come_first() {
    for (first_line_only, wanted) in [(false, "1.0 a, 1.1 b, "), (true, "1.0 a, ")] {
        let forwarded = ForwardedHeaderPolicy {
            first_line_only,
            ..ForwardedHeaderPolicy::default()
        };
        let mut headers = Headers::default();
        assert_eq!(list_so_far(&forwarded, &headers, b"via"), None);
        headers.append(b"Via", b"1.0 a");
        headers.append(b"via", b"1.1 b");
        let list = list_so_far(&forwarded, &headers, b"via").expect("there is one");
        assert_eq!(String::from_utf8_lossy(&list), wanted);
    }
}

#[test]
fn decoded_paths_go_as_they_came_unless_something_changes_them() {
    for (path, query, form, upstream_path, wanted) in [
        ("/a/b", None, NormalForm::Decoded, None, "/a/b"),
        (
            "/a%2Fb%2f%41",
            Some("q"),
            NormalForm::Decoded,
            None,
            "/a%2Fb%2f%41?q",
        ),
        ("//a//%C3%BC", Some(""), NormalForm::Decoded, None, "//a//%C3%BC?"),
        ("/a/./b%2Fc", Some(""), NormalForm::Decoded, None, "/a/b/c"),
        ("/x/..%2Fa", None, NormalForm::Decoded, None, "/a"),
        ("/a#b%2Fc", None, NormalForm::Decoded, None, "/a%23b/c"),
        ("/a%2Fb", Some(""), NormalForm::Decoded, Some("/c"), "/c"),
        ("/a//b%2fc%41", Some(""), NormalForm::Encoded, None, "/a/b%2FcA?"),
    ] {
        let mut exchange = Exchange::new(|| 0, 1);
        exchange.request.raw_path = path.into();
        exchange.request.query = query.map(Into::into);
        let rules = PathRules {
            form,
            strips_parameters: false,
            drops_tail_slash: false,
        };
        exchange.request.normalize_path(rules).expect("a path");
        exchange.upstream_path = upstream_path.map(Into::into);
        let mut out = Vec::new();
        let is_decoded = form == NormalForm::Decoded;
        write_target(&PathRewrite::default(), 0, is_decoded, &exchange, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), wanted, "{path}");
    }
}
