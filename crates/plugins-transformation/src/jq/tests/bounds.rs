//! Programs that would not end, or would take much memory.

use super::*;

#[test]
fn programs_that_would_not_end_do() {
    let large = format!("[{}1]", "1,".repeat(2000));
    for (program, input) in [
        ("def f: f; f", "null"),
        ("def f: f | f; f", "null"),
        ("def f: 1 + f; f", "null"),
        ("[repeat(1)]", "null"),
        ("last(range(1e12))", "null"),
        ("until(false; .)", "null"),
        ("[recurse]| length, [recurse(.)]", "null"),
        ("\"x\" * 1e12", "null"),
        ("reduce range(60) as $i (\"x\"; . + .)", "null"),
        ("reduce range(60) as $i ([1]; . + .)", "null"),
        ("reduce range(100000) as $i (null; [.])", "null"),
        // Shared parts are small in memory, and without an end when they are written out or compared.
        ("reduce range(200) as $i (1; [., .])", "null"),
        ("reduce range(60) as $i (1; [., .]) | tojson | length", "null"),
        ("reduce range(22) as $i (1; [., .]) | tojson | length", "null"),
        ("def f(g): f(g); f(.)", "null"),
        ("def f(g): f(g | g); f(.)", "null"),
        ("[path(repeat(.a))]", "null"),
        ("def f: try error(1) catch f; f", "null"),
        (".[1e9] = 1", "null"),
        ("[.[] as $a | .[] as $b | .[] as $c | 1] | length", &large),
        ("[.[] | [limit(1e9; range(1e9))]]", &large),
    ] {
        assert_eq!(fault(program), None, "{program}");
        assert_eq!(run_program(program, input), Err(Failure::TooMuch), "{program}");
    }
    // Searches in texts and lists that match nearly everywhere, and values whose parts are large.
    let numbers = format!("{{\"a\":[{0}1],\"b\":[{0}2]}}", "1,".repeat(20_000));
    let letters = format!("\"{}\"", "a".repeat(300_000));
    let parts = format!(
        "{{\"a\":\"{}\",\"b\":\"{}\"}}",
        "a".repeat(60_000),
        "a".repeat(30_000)
    );
    for (program, input) in [
        (".a[.b[10000:]]", &numbers),
        (". as {$a, $b} | $a | indices($b[10000:])", &numbers),
        ("gsub(\"a*b|a\"; \"x\")", &letters),
        ("[match(\"a*b|a\"; \"g\")] | length", &letters),
        ("[range(100000) as $i | .[$i:$i + 1]] | length", &letters),
        ("[range(400) as $i | . + \"\\($i)\"] | length", &letters),
        (".[5e8] = 1", &"null".to_owned()),
        // A search that looks to the end of the text for each match.
        (
            "[match(\"a[^b]*b|a\"; \"g\")] | length",
            &format!("\"{}\"", "a".repeat(10_000)),
        ),
        // Each match of a long part is compared with all of it.
        (". as {$a, $b} | $a | indices($b)", &parts),
        (". as {$a, $b} | $a | index($b)", &parts),
        (". as {$a, $b} | $a | rindex($b)", &parts),
    ] {
        assert_eq!(run_program(program, input), Err(Failure::TooMuch), "{program}");
    }
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    assert!(run_program(".", &deep).is_err());
    // A text that is compared and split many times still is one that ends.
    let text = format!("\"{}\"", "ab".repeat(10_000));
    assert!(run_program("[range(10000) as $i | split(\"a\")] | length", &text).is_err());
}

#[test]
fn simple_programs_take_large_bodies() {
    let object = |number: u32| format!("\"k{number}\":{{\"id\":{number},\"name\":\"n\"}}");
    let members: Vec<String> = (0..5_000).map(object).collect();
    let body = format!("{{{}}}", members.join(","));
    for program in [
        "map_values(.id += 1)",
        ".[].name |= ascii_upcase",
        "[.[].id] | map(. * 2) | add",
        "del(.[] | select(.id % 2 == 0))",
        "with_entries(.value |= .id)",
        "[.[] | {(.name + (.id | tostring)): .id}] | add | length",
        "[.[] | [.id]] | add | length",
        "[.[] | select(.name | test(\"^N$\"; \"i\"))] | length",
        "[.[].name] | join(\",\") | gsub(\"n,\"; \"m\") | length",
        "del(.[].name) | (.[] | select(.id > 5)) |= empty",
        "[.[]] | .[1000:] |= map(.id) | del(.[1:]) | length",
        "walk(if type == \"number\" then . + 1 else . end) | length",
    ] {
        assert_ne!(
            run_program(program, &body).as_deref().map(str::is_empty),
            Ok(true),
            "{program}"
        );
        assert!(
            run_program(program, &body).is_ok(),
            "{program}: {:?}",
            run_program(program, &body)
        );
    }
}

#[test]
fn plain_text_is_replaced_in_large_texts() {
    let text = format!("\"{}\"", "a text of words,".repeat(5_000));
    let length = (80_000 - 5_000).to_string();
    assert_eq!(run_program("gsub(\",\"; \"\") | length", &text), Ok(length));
}

#[test]
fn memory_is_bounded() {
    let budget = Budget::new(10, 100);
    assert!(budget.hold(60).is_ok() && budget.hold(41).is_err() && budget.hold(1).is_err());
}

/// The defect: a text was held only after it was made, so that for a moment it could take many times the memory. What
/// these programs make is dropped before it would be held.
#[test]
fn memory_is_held_before_texts_are_made() {
    let names = format!("\"{}\",", "a".repeat(1_000)).repeat(500);
    let body = format!(
        "{{\"a\":[{0}1],\"b\":[{0}2],\"s\":\"{1}\",\"n\":100,\"nulls\":[{2}{{}}]}}",
        names,
        "a".repeat(1_000_000),
        "null,".repeat(100),
    );
    for program in [
        "first(\"\\(.a[:200][])\\(.b[:200][])\") | length",
        ".s as $s | try (.nulls | join($s)) catch 1",
        ".n as $n | .a[:-1] | .[] *= $n | length",
        ".s as $s | .a[:100] | .[] += $s | length",
    ] {
        assert_eq!(fault(program), None, "{program}");
        assert_eq!(run_program(program, &body), Err(Failure::TooMuch), "{program}");
    }
    let small = "{\"a\":[\"x\"],\"b\":[1,2],\"s\":\", \",\"n\":2}";
    let program = "[\"\\(.a[])-\\(.b[])\", .s * .n, (.s as $s | .b | join($s))]";
    assert_eq!(
        run_program(program, small).as_deref(),
        Ok("[\"x-1\",\"x-2\",\", , \",\"1, 2\"]")
    );
    let (text, count) = (Value::text("a".repeat(100)), Value::count(100));
    let budget = Budget::new(1_000_000, 5_000);
    assert!(matches!(
        arithmetic(&budget, '*', &text, &count),
        Err(Interrupt::Exhausted)
    ));
}

#[test]
fn long_programs_do_not_fill_the_stack() {
    for (part, end) in [("1+", "1"), ("1,", "1"), ("1 - ", "1")] {
        let program = part.repeat(395) + end;
        assert_eq!(fault(&program), None, "{part}");
        assert_ne!(run_program(&program, "null"), Err(Failure::NotJson), "{part}");
    }
    for program in [
        ".a".repeat(790),
        ".".to_owned() + &"[0]".repeat(260),
        "1".to_owned() + &"?".repeat(790),
    ] {
        assert_eq!(fault(&program), None, "{program}");
        assert_ne!(run_program(&program, "null"), Err(Failure::NotJson));
    }
    for part in [
        "-",
        "try ",
        "if 1 then ",
        "1 as $x | ",
        "def f: ",
        "label $x | ",
        "1 // ",
        "{a: ",
        "\"\\(",
    ] {
        assert!(fault(&part.repeat(390)).is_some(), "{part}");
    }
}
