//! Programs with what jq makes of them.

mod bodies;
mod bounds;

use super::budget::{Budget, Interrupt};
use super::builtin::arithmetic;
use super::value::Value;
use super::{Failure, Jq, Output, Program, check, definitions, fault};
use serde_json::json;
use weir_plugin::Outcome;
use weir_plugins_testkit::*;

fn run_program(program: &str, input: &str) -> Result<String, Failure> {
    let program = Program::read(program).expect("a program");
    let body = program.run(input.as_bytes(), &Output::default())?;
    Ok(String::from_utf8(body).expect("text"))
}

/// Programs, inputs and outputs, as jq 1.7 prints them with `-c`.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (".", r#"{"b":1,"a":[1.5,"x"]}"#, r#"{"b":1,"a":[1.5,"x"]}"#),
    (".a.b", r#"{"a":{"b":2}}"#, "2"),
    (".a?", "[1]", ""),
    (r#"."a b""#, r#"{"a b":1}"#, "1"),
    (".[1], .[-1], .[9]", "[1,2,3]", "2\n3\nnull"),
    (".[1:], .[:-1], .[1:2]", "[1,2,3]", "[2,3]\n[1,2]\n[2]"),
    (".[2:4]", r#""abcdef""#, r#""cd""#),
    ("[.[] | . * 2]", "[1,2]", "[2,4]"),
    ("..", "[[1]]", "[[1]]\n[1]\n1"),
    (
        r#"{a, "b": .c, (.d): 1}"#,
        r#"{"a":0,"c":3,"d":"k"}"#,
        r#"{"a":0,"b":3,"k":1}"#,
    ),
    (
        r#".x as $v | {$v, w: $v | not}"#,
        r#"{"x":true}"#,
        r#"{"v":true,"w":false}"#,
    ),
    (r#""a\(.x)b\("c")""#, r#"{"x":1}"#, r#""a1bc""#),
    (
        r#"@base64, @uri, @json, @html, (@base64 | @base64d)"#,
        r#""<&>é""#,
        "\"PCY+w6k=\"\n\"%3C%26%3E%C3%A9\"\n\"\\\"<&>é\\\"\"\n\"&lt;&amp;&gt;é\"\n\"<&>é\"",
    ),
    (
        r#"@csv, @tsv, @sh"#,
        r#"[1,"a\"b",null,true]"#,
        "\"1,\\\"a\\\"\\\"b\\\",,true\"\n\"1\\ta\\\"b\\t\\ttrue\"\n\"1 'a\\\"b' null true\"",
    ),
    ("1 + 2 * 3 - 4 / 2 % 3", "null", "5"),
    ("7 % 3, -7 % 3, 1 / 4", "null", "1\n-1\n0.25"),
    (
        ". + null, [1] + [2], {a:1} + {b:2}, \"x\" + \"y\"",
        "0",
        "0\n[1,2]\n{\"a\":1,\"b\":2}\n\"xy\"",
    ),
    ("{a:{b:1}} * {a:{c:2}}", "null", r#"{"a":{"b":1,"c":2}}"#),
    ("[1,2,1,3] - [1]", "null", "[2,3]"),
    (r#""ab" * 3, "a,b" / ",""#, "null", "\"ababab\"\n[\"a\",\"b\"]"),
    (
        "1 < 2, \"a\" < \"b\", null < false, [] > {}, 1 == 1.0",
        "null",
        "true\ntrue\ntrue\nfalse\ntrue",
    ),
    (
        "true and (true, false), (false or false), (null | not)",
        "null",
        "true\nfalse\nfalse\ntrue",
    ),
    (".a // \"d\", (false, null, 1) // 2", "{}", "\"d\"\n1"),
    (
        "if . > 1 then \"big\" elif . == 1 then \"one\" else \"small\" end",
        "1",
        "\"one\"",
    ),
    ("if false then 1 end", "5", "5"),
    (
        "try error(\"x\") catch ., (try (1, error(\"y\"), 3)), \"z\"",
        "null",
        "\"x\"\n1\n\"z\"",
    ),
    (".a[]?", r#"{"a":1}"#, ""),
    ("reduce .[] as $x (0; . + $x)", "[1,2,3]", "6"),
    (
        "[foreach .[] as $x (0; . + $x; [$x, .])]",
        "[1,2]",
        "[[1,1],[2,3]]",
    ),
    (
        "def f(x): x * 2; def g($a; $b): $a + $b; f(.), g(1; 2)",
        "4",
        "8\n3",
    ),
    (
        "def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; fac",
        "10",
        "3628800",
    ),
    (". as [$a, {b: $c}] | [$c, $a]", r#"[1,{"b":2}]"#, "[2,1]"),
    ("label $out | 1, 2, break $out, 3", "null", "1\n2"),
    (
        "[limit(3; range(10))], first(range(5; 10)), [range(0; 10; 4)], isempty(empty)",
        "null",
        "[0,1,2]\n5\n[0,4,8]\ntrue",
    ),
    (
        "[.[] | select(.id > 1) | .n]",
        r#"[{"id":1,"n":"a"},{"id":2,"n":"b"}]"#,
        r#"["b"]"#,
    ),
    (".a = 1 | .b.c = 2", "{}", r#"{"a":1,"b":{"c":2}}"#),
    (".[] |= . + 1", "[1,2]", "[2,3]"),
    (
        ".a += 1 | .b -= 1 | .c *= 2 | .d //= 9",
        r#"{"a":1,"b":1,"c":3}"#,
        r#"{"a":2,"b":0,"c":6,"d":9}"#,
    ),
    (
        "del(.a, .b[0])",
        r#"{"a":1,"b":[1,2],"c":3}"#,
        r#"{"b":[2],"c":3}"#,
    ),
    (
        ".users |= map({id, name})",
        r#"{"users":[{"id":1,"name":"a","pw":"x"}]}"#,
        r#"{"users":[{"id":1,"name":"a"}]}"#,
    ),
    (".[1:] = [9]", "[1,2,3]", "[1,9]"),
    (
        "(.. | select(type == \"number\")) |= . * 10",
        r#"{"a":[1,{"b":2}]}"#,
        r#"{"a":[10,{"b":20}]}"#,
    ),
    ("[paths]", r#"{"a":[1]}"#, r#"[["a"],["a",0]]"#),
    ("[path(.a[0].b)]", "null", r#"[["a",0,"b"]]"#),
    (
        "getpath([\"a\",0]), setpath([\"b\"]; 1), delpaths([[\"a\"]])",
        r#"{"a":[5]}"#,
        "5\n{\"a\":[5],\"b\":1}\n{}",
    ),
    (
        "to_entries, (to_entries | from_entries), with_entries(.value += 1)",
        r#"{"a":1}"#,
        "[{\"key\":\"a\",\"value\":1}]\n{\"a\":1}\n{\"a\":2}",
    ),
    (
        "keys, keys_unsorted, length, add, any, all",
        r#"{"b":1,"a":2}"#,
        "[\"a\",\"b\"]\n[\"b\",\"a\"]\n2\n3\ntrue\ntrue",
    ),
    (
        "sort, unique, min, max, reverse, add",
        "[3,1,2,1]",
        "[1,1,2,3]\n[1,2,3]\n1\n3\n[1,2,1,3]\n7",
    ),
    (
        "sort_by(.a), group_by(.a), unique_by(.a), min_by(.a), max_by(.a)",
        r#"[{"a":2},{"a":1},{"a":2,"b":1}]"#,
        "[{\"a\":1},{\"a\":2},{\"a\":2,\"b\":1}]\n[[{\"a\":1}],[{\"a\":2},{\"a\":2,\"b\":1}]]\n[{\"a\":1},{\"a\":2}]\n{\"a\":1}\n{\"a\":2,\"b\":1}",
    ),
    (
        "flatten, flatten(1), transpose",
        "[[1,[2]],[3]]",
        "[1,2,3]\n[1,[2],3]\n[[1,3],[[2],null]]",
    ),
    (
        "has(\"a\"), has(\"z\"), (\"a\" | in({\"a\":1}))",
        r#"{"a":null}"#,
        "true\nfalse\ntrue",
    ),
    (
        "contains({a:[1]}), inside({a:[1,2],b:1})",
        r#"{"a":[1,2]}"#,
        "true\ntrue",
    ),
    (
        "tostring, tojson, (tojson | fromjson), type",
        r#"[1,"a"]"#,
        "\"[1,\\\"a\\\"]\"\n\"[1,\\\"a\\\"]\"\n[1,\"a\"]\n\"array\"",
    ),
    (
        "tonumber, ascii_downcase, ascii_upcase, ltrimstr(\"1\"), rtrimstr(\"2\"), startswith(\"1\")",
        r#""12""#,
        "12\n\"12\"\n\"12\"\n\"2\"\n\"1\"\ntrue",
    ),
    (
        "split(\",\"), join(\"-\")?, (split(\",\") | join(\"-\")), ascii_upcase, length, utf8bytelength",
        r#""a,é""#,
        "[\"a\",\"é\"]\n\"a-é\"\n\"A,é\"\n3\n4",
    ),
    (
        "explode, (explode | implode), index(\"b\"), rindex(\"b\"), indices(\"b\")",
        r#""abb""#,
        "[97,98,98]\n\"abb\"\n1\n2\n[1,2]",
    ),
    (
        "floor, ceil, round, sqrt, fabs, -.",
        "2.25",
        "2\n3\n2\n1.5\n2.25\n-2.25",
    ),
    (
        "test(\"B\"; \"i\"), [match(\"b\"; \"g\").offset], capture(\"(?<x>b)\"), [scan(\"b\")], sub(\"b\"; \"X\"), gsub(\"(?<l>b)\"; \"<\\(.l)>\")",
        r#""éabb""#,
        "true\n[2,3]\n{\"x\":\"b\"}\n[\"b\",\"b\"]\n\"éaXb\"\n\"éa<b><b>\"",
    ),
    (
        "[splits(\", *\")], split(\", *\"; null)",
        r#""a, b,c""#,
        "[\"a\",\"b\",\"c\"]\n[\"a\",\"b\",\"c\"]",
    ),
    (
        "walk(if type == \"number\" then . + 1 else . end)",
        r#"[1,{"a":2}]"#,
        r#"[2,{"a":3}]"#,
    ),
    (
        "[while(. < 20; . * 2)], [limit(3; repeat(. * 2))]?, until(. > 100; . * 2)",
        "3",
        "[3,6,12]\n[3,6,12]\n192",
    ),
    (
        "[recurse(if . < 3 then . + 1 else empty end)], map_values(. + 1)?",
        "1",
        "[1,2,3]",
    ),
    (
        "pick(.a.b), [leaf_paths], [.[] | numbers]",
        r#"{"a":{"b":1,"c":2},"d":3}"#,
        "{\"a\":{\"b\":1}}\n[[\"a\",\"b\"],[\"a\",\"c\"],[\"d\"]]\n[3]",
    ),
    (
        "[combinations], any(. == [1]; .), all(.[]; length > 0)",
        "[[1,2],[3]]",
        "[[1,3],[2,3]]\nfalse\ntrue",
    ),
    (
        "first, last, nth(1), [skip(1; .[])], last(.[]), nth(1; .[])",
        "[1,2,3]",
        "1\n3\n2\n[2,3]\n3\n2",
    ),
    ("(.[] | select(. >= 2)) |= empty", "[1,5,3,0,7]", "[1,0]"),
    (
        r#"{"a\(1, 2)"}, {@text "x"}"#,
        r#"{"a1":1,"a2":2,"x":3}"#,
        "{\"a1\":1}\n{\"a2\":2}\n{\"x\":3}",
    ),
    ("del(.[-1], .[0:2]), del(.[1], .[1:3])", "[1,2,3,4]", "[3]\n[1,4]"),
    (
        "del(.a.b, .a.c, .d[1].e)",
        r#"{"a":{"b":1,"c":2,"f":3},"d":[0,{"e":1}]}"#,
        r#"{"a":{"f":3},"d":[0,{}]}"#,
    ),
    (
        ".[0:2][0] = 9, (.[1:] |= map(. + 1))",
        "[1,2,3]",
        "[9,2,3]\n[1,3,4]",
    ),
    (
        "setpath([\"a\", 2]; 1), (.a[1] |= 5)",
        "null",
        "{\"a\":[null,null,1]}\n{\"a\":[null,5]}",
    ),
    (
        "add, (map([.]) | add), (map({(tostring): .}) | add), ([] | add), ([null, 1] | add)",
        "[1,2]",
        "3\n[1,2]\n{\"1\":1,\"2\":2}\nnull\n1",
    ),
    (
        "[.[] | gsub(\"(?<a>.)b?\"; \"\\(.a)-\")], (.[0] | sub(\"z\"; 1))",
        r#"["abc","b"]"#,
        "[\"a-c-\",\"b-\"]\n\"abc\"",
    ),
    ("# a comment\n.a # another", r#"{"a":1}"#, "1"),
    ("\"\\u00e9\\ud83d\\ude00\\n\"", "null", "\"é😀\\n\""),
    ("9007199254740993, 1e3, .5", "null", "9007199254740992\n1000\n0.5"),
    (".", "12345678901234567890", "12345678901234567890"),
];

#[test]
fn programs_do_what_jq_does() {
    let mut faults = Vec::new();
    for (program, input, wanted) in PROGRAMS.iter() {
        assert_eq!(fault(program), None, "{program}");
        let found = run_program(program, input);
        if found.as_deref() != Ok(*wanted) {
            faults.push((program, input, found));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn failures_are_reported() {
    for (program, input, wanted) in [
        (".a", "[1]", "Cannot index array with \"a\""),
        (".[0]", "{}", "Cannot index object with number"),
        (".[]", "1", "Cannot iterate over number (1)"),
        ("{} + 1", "null", "object ({}) and number (1) cannot be added"),
        (
            "1 / 0",
            "null",
            "number (1) and number (0) cannot be divided because the divisor is zero",
        ),
        ("{(1): 2}", "null", "Object keys must be strings, not number"),
        ("error({a: 1})", "null", "{\"a\":1}"),
        ("\"x\" | tonumber", "null", "Cannot parse 'x' as JSON"),
        (
            "\"a\" | test(\"(\")",
            "null",
            "( (at offset 0) is not a valid regex",
        ),
        ("path(1)", "null", "Invalid path expression with result 1"),
    ] {
        assert_eq!(
            run_program(program, input),
            Err(Failure::Failed(wanted.to_owned())),
            "{program}"
        );
    }
    assert_eq!(run_program(".", "{"), Err(Failure::NotJson));
}

#[test]
fn reasons_are_short() {
    for (program, input) in [
        ("error(.)", format!("\"{}\"", "é".repeat(5_000))),
        ("error([.])", format!("\"{}\"", "é".repeat(5_000))),
        (".[0].a", "[1]".to_owned()),
    ] {
        let Err(failure) = run_program(program, &input) else {
            panic!("{program}");
        };
        assert!(failure.to_string().chars().count() < 140, "{failure}");
    }
}

#[test]
fn programs_are_checked() {
    for (program, message) in [
        (".a |", "expected a term at the end"),
        ("(.a", "expected ) at the end"),
        ("{a: }", "unexpected }"),
        ("foo", "foo/0 is not defined"),
        ("map", "map/0 is not defined"),
        ("$x", "$x is not defined"),
        ("1 as $x | 2 | $y", "$y is not defined"),
        ("break $x", "$*label-x is not defined"),
        ("@foo", "foo is not a valid format"),
        ("input", "input/0 is not defined"),
        ("now", "now/0 is not defined"),
        ("env", "env/0 is not defined"),
        ("\"a", "a text has no end"),
        ("\"\\q\"", "unknown escape '\\q'"),
        ("if . then 1", "expected end at the end"),
        ("import \"a\" as a; .", "unexpected import"),
        ("^", "unexpected '^'"),
    ] {
        assert_eq!(fault(program).as_deref(), Some(message), "{program}");
    }
    let long = "1+".repeat(1_000) + "1";
    assert_eq!(
        fault(&long).as_deref(),
        Some("expected at most 800 words and signs")
    );
    // Programs in texts are parts of the program, and names of members are read once.
    assert_eq!(
        fault(&format!("\"\\({})\"", "1,".repeat(50_000) + "1")).as_deref(),
        Some("expected at most 800 words and signs")
    );
    let (open, close) = ("{\"\\(".repeat(15), ")\"}".repeat(15));
    assert_eq!(fault(&format!("{open}1{close}")), None);
    let nested = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    assert_eq!(fault(&nested).as_deref(), Some("the program is nested too deep"));
}

#[test]
fn the_prelude_is_complete() {
    let prelude = definitions(include_str!("../prelude.jq")).expect("it can be read");
    for definition in &prelude {
        assert_eq!(
            check::check_definition(definition, &prelude),
            Ok(()),
            "{}",
            definition.name
        );
    }
}
