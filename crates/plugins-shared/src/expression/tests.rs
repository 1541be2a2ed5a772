//! Expressions as templates use them.

use super::*;
use std::sync::Arc;
use weir_plugins_testkit::*;

fn exchange() -> Exchange {
    let mut exchange = weir_plugins_testkit::exchange();
    let headers = [
        ("Host", "t.test"),
        ("X-Y", "xy"),
        ("A_B", "ab"),
        ("N", "5"),
        ("M", "1"),
        ("M", "2"),
    ];
    prepare(&mut exchange, "GET /p?q=1%202&e=&flag&m=1&m=2", &headers);
    exchange.captures = vec![
        (Arc::from("1"), b"b%20b".to_vec()),
        (Arc::from("who"), b"bob".to_vec()),
    ];
    exchange
}

#[test]
fn templates_are_filled_in() {
    let exchange = exchange();
    for (template, expected) in [
        ("plain", Ok("plain")),
        ("", Ok("")),
        ("$x ${y} $ (", Ok("$x ${y} $ (")),
        ("$(", Ok("$(")),
        ("a $(b $(headers.n)", Ok("a $(b 5")),
        ("$(headers.host)-$(query_params.q)", Ok("t.test-1 2")),
        ("$(headers.nope)", Ok("")),
        ("a-$(headers.x_y or 'dflt')-z", Ok("a-xy-z")),
        ("$(headers['x-low'] or \"none\")", Ok("none")),
        ("$(headers.a_b)$(headers['A_B'])", Ok("abab")),
        ("$(headers.m)|$(query_params.m)", Ok("1, 2|1, 2")),
        ("$(query_params.flag)$(query_params.e)", Ok("true")),
        (
            "$(uri_captures[1])/$(uri_captures['who'])/$(uri_captures.none)",
            Ok("b b/bob/"),
        ),
        (
            "$(type(headers.host))$(type(headers.no))$(type(headers))",
            Ok("stringniltable"),
        ),
        ("$(headers.n + 2 * 3 .. 'x')", Ok("11x")),
        ("$(1 / 4)$(7 % 3)$(-2 ^ 2)$(1e3)", Ok("0.251-41000")),
        ("$(headers.n == '5' and 'yes' or 'no')$(not nil)", Ok("yestrue")),
        ("$(2 < 10)$('2' < '10')$(1 ~= 1)", Ok("truefalsefalse")),
        (
            "$(headers.host:upper():sub(1, 1))$(headers.host:sub(-4))$(#headers.host)",
            Ok("Ttest6"),
        ),
        ("$((('a')))$('\\'' .. \"(\")", Ok("a'(")),
        ("$(shared.x)", Ok("")),
        ("$(error('x'))", Err("a value is called that is not a function")),
        (
            "$(string.upper(headers.host))",
            Err("a member of nothing is asked for"),
        ),
        ("$(headers.nope.x)", Err("a member of nothing is asked for")),
        (
            "$(headers.nope .. 'x')",
            Err("what is not a text cannot be joined with a text"),
        ),
        (
            "$(headers.host < 1)",
            Err("values that have no order are compared"),
        ),
        ("$(('x'):rep(99999999))", Err("a text is too long")),
        ("$(headers.host:format('a'))", Ok("t.test")),
        ("$(headers.host:dump())", Err("texts have no such method")),
    ] {
        let parsed = Interpolated::parse(template).unwrap_or_else(|fault| panic!("{template}: {fault}"));
        let mut out = Vec::new();
        let rendered = parsed
            .render(&RequestScope(&exchange), &mut out)
            .map_err(|fault| fault.0);
        let rendered = rendered.map(|()| String::from_utf8_lossy(&out).into_owned());
        assert_eq!(rendered, expected.map(str::to_owned), "{template}");
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    let deep = format!("$({}1{})", "(".repeat(200), ")".repeat(200));
    for template in [
        "$()",
        "$(1 +)",
        "$(a b)",
        "$(a..)",
        "$('x)",
        "$(a.1)",
        "$(1x)",
        "$(@)",
        "$(f(1,))",
        "$(a[1)",
        &deep,
        "$((function() return 1 end)())",
    ] {
        assert!(Interpolated::parse(template).is_err(), "{template}");
    }
    let long = format!("$({}1)", "1 + ".repeat(20_000));
    assert!(Interpolated::parse(&long).is_err());
}

#[test]
fn patterns_match_as_in_lua() {
    let exchange = exchange();
    for (expression, expected) in [
        ("('not actually'):gsub('not ', '')", Ok("actually")),
        ("('hello world'):gsub('o', '0', 1)", Ok("hell0 world")),
        (
            "('hello world'):gsub('(%w+) (%w+)', '%2 %1%%')",
            Ok("world hello%"),
        ),
        ("('abc'):gsub('%w', '%0%0')", Ok("aabbcc")),
        ("('abc'):gsub('', '-')", Ok("-a-b-c-")),
        ("('  a b '):gsub('^%s+', ''):gsub('%s+$', '')", Ok("a b")),
        ("('a.b.c'):gsub('%.', '/')", Ok("a/b/c")),
        ("('a=1, b=2'):gsub('(%w)=(%d)', '%2=%1')", Ok("1=a, 2=b")),
        ("('f(a(b)c)d'):gsub('%b()', '<>')", Ok("f<>d")),
        ("('THE (quick) fox'):gsub('%f[%a]%a+', 'x')", Ok("x (x) x")),
        ("('abab'):gsub('a(b)a%1', '!')", Ok("!")),
        ("('[x]-^'):gsub('[]^-]', '_')", Ok("[x___")),
        ("('2024-05-06'):match('%d+-(%d+)')", Ok("05")),
        ("('2024-05-06'):match('()-')", Ok("5")),
        ("('<b>x</b>'):match('<(.-)>')", Ok("b")),
        ("('<b>x</b>'):match('<(.*)>')", Ok("b>x</b")),
        (
            "('colour'):match('colou?r') .. ('color'):match('colou?r')",
            Ok("colourcolor"),
        ),
        ("('x-y'):match('[a-c]') or 'none'", Ok("none")),
        ("('x1y'):match('[^%a]')", Ok("1")),
        ("('a\tb'):find('%c')", Ok("2")),
        ("('a.b'):find('.', 1, true)", Ok("2")),
        ("('aXb'):find('%u', -2)", Ok("2")),
        ("('abc'):find('^b', 2)", Ok("2")),
        ("('abc'):find('d') or 'none'", Ok("none")),
        ("('a'):gsub('%', 'x')", Err("a pattern is malformed")),
        ("('a'):gsub('[a', 'x')", Err("a pattern is malformed")),
        ("('a'):gsub('a)', 'x')", Err("a pattern is malformed")),
        ("('a'):gsub('a%1', 'x')", Err("a pattern is malformed")),
        ("('a'):gsub('a', '%2')", Err("a pattern is malformed")),
        ("('a'):match('(a')", Err("a pattern is malformed")),
        ("('a'):gsub('a', headers.none)", Err("a text is wanted")),
        (
            "('a'):rep(300):gsub(('a?'):rep(300), '')",
            Err("a pattern is too deep"),
        ),
        (
            "('a'):rep(99999):gsub(('a-'):rep(9) .. 'b', '')",
            Err("there is too much to do"),
        ),
        (
            "('a'):rep(9999):gsub('a', ('b'):rep(9999))",
            Err("a text is too long"),
        ),
    ] {
        let parsed = Interpolated::parse(&format!("$({expression})")).expect(expression);
        let mut out = Vec::new();
        let rendered = parsed.render(&RequestScope(&exchange), &mut out);
        let rendered = rendered.map(|()| String::from_utf8_lossy(&out).into_owned());
        exchange.request.work.restart();
        assert_eq!(
            rendered.map_err(|fault| fault.0),
            expected.map(str::to_owned),
            "{expression}"
        );
    }
}
