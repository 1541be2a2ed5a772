//! Documents beside limits.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

fn fault_of(document: &str, config: &Value) -> &'static str {
    let config: Config = serde_json::from_value(config.clone()).expect("a configuration");
    scan(document.as_bytes(), &limits(&config))
        .err()
        .unwrap_or_default()
}

const BAD: &str = "the body is not valid XML";

#[test]
fn documents_are_well_formed() {
    for (document, fault) in [
        ("<a/>", ""),
        ("<a></a>", ""),
        (
            "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a>\u{e4} &lt; &#228; &#xE4;</a>\n",
            "",
        ),
        ("<a b='1' c=\"2\"><!-- d --><?e f?><![CDATA[<g>]]></a>", ""),
        ("<p:a xmlns:p='urn:x'><p:b p:c=''/></p:a>", ""),
        (
            "<?xml version='1.0' encoding='utf-16'?><a/>",
            "the body is not in UTF-8",
        ),
        (
            "<?xml version='1.0' encoding='iso-8859-1'?><a/>",
            "the body is not in UTF-8",
        ),
        (
            "<?xml version=\"encoding='utf-8'\" encoding='utf-7'?><a/>",
            "the body is not in UTF-8",
        ),
        (
            "<?xml version='1.0' encoding='utf-8x'?><a/>",
            "the body is not in UTF-8",
        ),
        ("<?xml encoding='utf-8' version='1.0'?><a/>", BAD),
        ("<?xml version='1.0' encoding='utf-8' encoding='utf-7'?><a/>", BAD),
        ("<?xml version='1.0' standalone='yes' ?><a/>", ""),
        ("", BAD),
        ("text", BAD),
        ("<a>", BAD),
        ("<a></b>", BAD),
        ("<a/><b/>", BAD),
        ("</a>", BAD),
        ("<a b=1/>", BAD),
        ("<a b='1'c='2'/>", BAD),
        ("<a b='1' b='2'/>", BAD),
        ("<a b='<'/>", BAD),
        ("<a>&</a>", BAD),
        ("<a>&#x;</a>", BAD),
        ("<a>]]></a>", BAD),
        ("<a><!-- -- --></a>", BAD),
        ("<a><?xml a?></a>", BAD),
        ("<1a/>", BAD),
        ("<a:b:c/>", BAD),
        ("<a>&b;</a>", "an entity is not declared"),
        ("<!DOCTYPE a><a/>", "a document type is not allowed"),
    ] {
        assert_eq!(fault_of(document, &json!({})), fault, "{document}");
    }
}

#[test]
fn limits_hold() {
    for (config, good, bad, fault) in [
        (
            json!({"max_depth": 2}),
            "<a><b/></a>",
            "<a><b><c/></b></a>",
            "it is nested too deep",
        ),
        (
            json!({"max_children": 1}),
            "<a><b><c/></b></a>",
            "<a><b/><c/></a>",
            "an element has too many children",
        ),
        (
            json!({"max_attributes": 1}),
            "<a b=''/>",
            "<a b='' c=''/>",
            "an element has too many attributes",
        ),
        (
            json!({"max_namespaces": 1}),
            "<a xmlns='x'/>",
            "<a xmlns='x' xmlns:b='y'/>",
            "an element has too many namespaces",
        ),
        (
            json!({"max_token": 5}),
            "<ab/>",
            "<abcdef/>",
            "a token is too long",
        ),
        (
            json!({"max_local_name": 2}),
            "<p:ab/>",
            "<abc/>",
            "a name is too long",
        ),
        (
            json!({"max_prefix": 1}),
            "<p:ab/>",
            "<pp:a/>",
            "a prefix is too long",
        ),
        (
            json!({"max_namespace_uri": 1}),
            "<a xmlns='x'/>",
            "<a xmlns='xy'/>",
            "a namespace is too long",
        ),
        (
            json!({"max_attribute": 2}),
            "<a b='12'/>",
            "<a b='123'/>",
            "an attribute is too long",
        ),
        (
            json!({"max_text": 3}),
            "<a>12<b/>12</a>",
            "<a>12<![CDATA[34]]></a>",
            "a text is too long",
        ),
        (
            json!({"max_comment": 2}),
            "<a><!--12--></a>",
            "<a><!--123--></a>",
            "a comment is too long",
        ),
        (
            json!({"max_instruction_target": 1}),
            "<a><?b?></a>",
            "<a><?bc?></a>",
            "a target of an instruction is too long",
        ),
        (
            json!({"max_instruction_data": 1}),
            "<a><?b c?></a>",
            "<a><?b cd?></a>",
            "an instruction is too long",
        ),
    ] {
        assert_eq!(fault_of(good, &config), "", "{config} {good}");
        assert_eq!(fault_of(bad, &config), fault, "{config} {bad}");
    }
}

#[test]
fn limits_of_entities_hold() {
    for (config, good, bad, fault) in [
        (
            json!({"allow_dtd": true, "max_entity": 2}),
            "<!DOCTYPE a [<!ENTITY b 'cd'>]><a>&b;</a>",
            "<!DOCTYPE a [<!ENTITY b 'cde'>]><a/>",
            "an entity is too long",
        ),
        (
            json!({"allow_dtd": true, "max_entity_name": 1}),
            "<!DOCTYPE a [<!ENTITY b ''>]><a/>",
            "<!DOCTYPE a [<!ENTITY bb ''>]><a/>",
            "a name of an entity is too long",
        ),
        (
            json!({"allow_dtd": true, "max_entity_property": 2}),
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'ab'>]><a/>",
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'abc'>]><a/>",
            "a property of an entity is too long",
        ),
    ] {
        assert_eq!(fault_of(good, &config), "", "{config} {good}");
        assert_eq!(fault_of(bad, &config), fault, "{config} {bad}");
    }
}

#[test]
fn entities_cannot_blow_up() {
    let dtd = json!({"allow_dtd": true, "amplification_from": 1000, "max_amplification": 10});
    let mut document = "<!DOCTYPE a [<!ENTITY e0 'ha'>".to_owned();
    for level in 1..30 {
        let reference = format!("&e{};", level - 1);
        document += &format!("<!ENTITY e{level} '{reference}{reference}{reference}'>");
    }
    document += "]><a>&e29;</a>";
    assert_eq!(fault_of(&document, &dtd), "entities expand to too much");
    for (document, fault) in [
        // None can refer to itself, as only those before it are known.
        (
            "<!DOCTYPE a [<!ENTITY b '&c;'><!ENTITY c '&b;'>]><a/>",
            "an entity is not declared",
        ),
        (
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
            "an entity is not declared",
        ),
        (
            "<!DOCTYPE a [<!ENTITY % b 'c'> %b;]><a/>",
            "a document type uses what is not allowed",
        ),
        // Declarations that stand elsewhere are not known here, but may be to the service.
        (
            "<!DOCTYPE a SYSTEM \"http://x/d.dtd\"><a/>",
            "a document type is in another document",
        ),
        (
            "<!DOCTYPE a PUBLIC 'p' 'd.dtd' [<!ENTITY b 'x'>]><a/>",
            "a document type is in another document",
        ),
        ("<!DOCTYPE a [<!ELEMENT a ANY><!NOTATION b SYSTEM '>'>]><a/>", ""),
        ("<!DOCTYPE a [<!ENTITY b 'x'>", BAD),
        ("<a/><!DOCTYPE a>", BAD),
    ] {
        assert_eq!(fault_of(document, &dtd), fault, "{document}");
    }
}

#[test]
fn any_bytes_end_without_a_panic() {
    let document = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a d='&b;'>&#65;<![CDATA[x]]><e/></a>";
    let config = json!({"allow_dtd": true});
    assert_eq!(fault_of(document, &config), "");
    let limits = limits(&serde_json::from_value(config).expect("a configuration"));
    let bytes = document.as_bytes();
    for end in 0..bytes.len() {
        assert!(scan(&bytes[..end], &limits).is_err(), "{end}");
        for byte in [0, b'<', b'>', b'&', b'"', b']', 0xff] {
            let mut changed = bytes.to_vec();
            changed[end] = byte;
            let _any = scan(&changed, &limits);
        }
    }
}

#[test]
fn types_decide_what_is_looked_at() {
    let config =
        json!({"checked_types": ["application/xml"], "allowed_types": ["text/*"], "max_body_bytes": 20});
    let filter = build(&XmlThreatProtection, &config).expect("valid");
    let mut exchange = exchange();
    for (types, body, wanted) in [
        (&["application/xml"][..], Some("<a/>"), "continue"),
        (
            &["application/xml; charset=utf-8"],
            Some("<a>"),
            "unacceptable 400",
        ),
        (&["text/plain"], Some("<a>"), "continue"),
        (
            &["text/plain", "application/xml"],
            Some("<a>"),
            "unacceptable 400",
        ),
        (&["application/json"], Some("<a/>"), "unacceptable 400"),
        (&[], Some("<a/>"), "unacceptable 400"),
        (
            &["application/xml"],
            Some("<a>123456789012345678</a>"),
            "unacceptable 400",
        ),
        (&["application/xml"], None, "body"),
    ] {
        let headers: Vec<_> = types.iter().map(|it| ("Content-Type", *it)).collect();
        prepare(&mut exchange, "POST /", &headers);
        exchange.request.has_body = true;
        exchange.request.body = body.map(|body| body.as_bytes().to_vec());
        assert_eq!(
            word(&filter.on_request(&mut exchange)),
            wanted,
            "{types:?} {body:?}"
        );
    }
    prepare(&mut exchange, "GET /", &[]);
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
}

#[test]
fn configurations_are_checked() {
    assert!(build(&XmlThreatProtection, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({}), vec![]),
        (
            json!({"status": 200, "max_amplification": 0}),
            vec!["status", "max_amplification"],
        ),
        (json!({"max_body_bytes": 67_108_865}), vec!["max_body_bytes"]),
        (json!({"checked_types": ["xml"]}), vec!["checked_types[0]"]),
    ] {
        assert_eq!(refused_at(&XmlThreatProtection, &config), places, "{config}");
    }
}

#[test]
fn entities_and_declarations_add_nothing_that_is_not_counted() {
    const NOT_ALLOWED: &str = "a document type uses what is not allowed";
    const NO_TEXT: &str = "an entity is more than text";
    let nested = format!("<!ENTITY b \"{}\">", "<c>".repeat(300));
    for (subset, content, fault) in [
        ("<!ENTITY b 'text'>", "&b;", ""),
        ("<!ENTITY b 'x'><!ENTITY c '&b;&b;'>", "&c;", ""),
        // Elements, and letters that begin elements or references at the place where the entity is used.
        (nested.as_str(), "&b;", NO_TEXT),
        (nested.as_str(), "", ""),
        ("<!ENTITY b '&#60;c/>'>", "&b;", NO_TEXT),
        ("<!ENTITY b '&#x26;c;'>", "&b;", NO_TEXT),
        ("<!ENTITY b '&#60;c/>'><!ENTITY d '&b;'>", "", NO_TEXT),
        ("<!ENTITY b '%c;'>", "&b;", NO_TEXT),
        // What every element would have.
        ("<!ATTLIST a b CDATA #IMPLIED><!ELEMENT a ANY>", "", ""),
        ("<!ATTLIST a b CDATA 'much'>", "", NOT_ALLOWED),
        ("<!ATTLIST a b CDATA #FIXED \"much\">", "", NOT_ALLOWED),
        ("<!NOTATION a SYSTEM 'b'>", "", ""),
        ("<![INCLUDE[<!ENTITY b 'c'>]]>", "", NOT_ALLOWED),
        ("<!OTHER>", "", NOT_ALLOWED),
    ] {
        let document = format!("<!DOCTYPE a [{subset}]><a>{content}</a>");
        assert_eq!(
            fault_of(&document, &json!({"allow_dtd": true})),
            fault,
            "{document}"
        );
    }
}

#[test]
fn a_charset_of_the_call_is_that_of_the_document() {
    let filter = build(&XmlThreatProtection, &json!({"checked_types": ["text/xml"]})).expect("valid");
    for (media, wanted) in [
        ("text/xml", "continue"),
        ("text/xml; charset=UTF-8", "continue"),
        ("text/xml; charset=\"us-ascii\"", "continue"),
        ("text/xml; charset=utf-7", "unacceptable 400"),
        ("text/xml; Charset=utf-16", "unacceptable 400"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "POST /", &[("Content-Type", media)]);
        exchange.request.has_body = true;
        exchange.request.body = Some(b"<a>+ADw-b/+AD4-</a>".to_vec());
        assert_eq!(word(&filter.on_request(&mut exchange)), wanted, "{media}");
    }
}
