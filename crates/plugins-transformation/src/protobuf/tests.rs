//! Tests of definitions and of the JSON mapping.

use super::*;
use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_json::{Value as Json, json};

const TEXT: &str = r#"syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
enum Color { RED = 0; GREEN = 1; }
message Inner { string some_name = 1; int32 count = 2; }
message All {
  string some_text = 1;
  int64 long = 2;
  uint64 big = 3;
  bytes raw = 4;
  Color color = 5;
  repeated int32 list = 6;
  map<string, Inner> members = 7;
  Inner inner = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.Duration lasts = 10;
  google.protobuf.Int64Value maybe = 11;
  google.protobuf.Struct any = 12;
  oneof either { string one = 13; bool other = 14; }
  double ratio = 15;
  optional int32 perhaps = 16;
  bool flag = 17;
  repeated Color colors = 18;
}
service S { rpc Do(All) returns (All); }
"#;

fn definitions(text: &str) -> Definitions {
    Definitions {
        text: Some(text.to_owned()),
        ..Definitions::default()
    }
}

fn all() -> prost_reflect::MessageDescriptor {
    let compiled = definitions(TEXT).compile(&DocPath::root()).expect("good");
    compiled.pool.get_message_by_name("test.All").expect("there")
}

const LUA: JsonForm = JsonForm {
    mapping: Mapping::FieldsAndTimes,
    names: Names::Proto,
    integers: Integers::Number,
    enums: Enums::Name,
    defaults: false,
};

/// What a value is after it was a message in between.
fn there_and_back(json: &Json, form: &JsonForm) -> Result<Json, String> {
    let message = read_message(&all(), json, form)?;
    let bytes = message.encode_to_vec();
    let message = DynamicMessage::decode(all(), bytes.as_slice()).expect("own bytes");
    let mut out = Vec::new();
    write_message(&message, form, &mut out);
    Ok(serde_json::from_slice(&out).expect("JSON"))
}

#[test]
fn the_canonical_mapping_is_kept() {
    let form = JsonForm::default();
    for (given, expected) in [
        (json!({}), Some(json!({}))),
        (json!({"someText": "a"}), Some(json!({"someText": "a"}))),
        (json!({"some_text": "a"}), Some(json!({"someText": "a"}))),
        (
            json!({"long": 7, "big": "18446744073709551615"}),
            Some(json!({"long": "7", "big": "18446744073709551615"})),
        ),
        (json!({"raw": "AP8="}), Some(json!({"raw": "AP8="}))),
        (
            json!({"color": 1, "colors": ["RED", 1, 9]}),
            Some(json!({"color": "GREEN", "colors": ["RED", "GREEN", 9]})),
        ),
        (json!({"list": [1, 2]}), Some(json!({"list": [1, 2]}))),
        (
            json!({"members": {"b": {"count": 1}, "a": {}}}),
            Some(json!({"members": {"a": {}, "b": {"count": 1}}})),
        ),
        (
            json!({"at": "2026-11-20T15:31:00.5Z", "lasts": "1.5s", "maybe": "7"}),
            Some(json!({"at": "2026-11-20T15:31:00.500Z", "lasts": "1.500s", "maybe": "7"})),
        ),
        (
            json!({"any": {"x": [1.0, null, "y"]}}),
            Some(json!({"any": {"x": [1.0, null, "y"]}})),
        ),
        (json!({"other": true}), Some(json!({"other": true}))),
        (json!({"ratio": "NaN"}), Some(json!({"ratio": "NaN"}))),
        (json!({"perhaps": 0}), Some(json!({"perhaps": 0}))),
        (json!({"unknown": 1}), None),
        (json!({"someText": 1}), None),
        (json!({"list": [3000000000_u32]}), None),
        (json!({"at": "yesterday"}), None),
        (json!([]), None),
    ] {
        assert_eq!(there_and_back(&given, &form).ok(), expected, "{given}");
    }
}

#[test]
fn forms_of_json_are_as_configured() {
    let plain = JsonForm {
        mapping: Mapping::Fields,
        integers: Integers::MarkedHex,
        enums: Enums::Number,
        ..LUA
    };
    let marked = JsonForm {
        integers: Integers::MarkedText,
        ..plain
    };
    for (form, given, expected) in [
        (
            LUA,
            json!({"some_text": "a", "x": 1}),
            Some(json!({"some_text": "a"})),
        ),
        (LUA, json!({"some_text": 1}), None),
        (LUA, json!({"some_text": null}), None),
        (
            LUA,
            json!({"long": "7", "raw": "é", "color": "GREEN"}),
            Some(json!({"long": 7, "raw": "é", "color": "GREEN"})),
        ),
        (
            LUA,
            json!({"at": "2026-11-20T15:31:00"}),
            Some(json!({"at": "2026-11-20T15:31:00"})),
        ),
        (
            LUA,
            json!({"at": "2026-11-20T15:31:00+01:00"}),
            Some(json!({"at": "2026-11-20T14:31:00"})),
        ),
        (LUA, json!({"list": {}, "inner": []}), Some(json!({"inner": {}}))),
        (
            plain,
            json!({"at": {"seconds": 1, "nanos": 2}}),
            Some(json!({"at": {"seconds": 1, "nanos": 2}})),
        ),
        (plain, json!({"color": "GREEN"}), Some(json!({"color": 1}))),
        (
            plain,
            json!({"long": "#-0x1FFFFFFFF"}),
            Some(json!({"long": "#-0x1FFFFFFFF"})),
        ),
        (
            plain,
            json!({"long": 4294967295_u32}),
            Some(json!({"long": 4294967295_u32})),
        ),
        (
            marked,
            json!({"big": "4294967296"}),
            Some(json!({"big": "#4294967296"})),
        ),
        (
            marked,
            json!({"members": {"a": {"some_name": "b"}}}),
            Some(json!({"members": {"a": {"some_name": "b"}}})),
        ),
        (marked, json!({"members": {"a": 1}}), None),
        (marked, json!({"inner": "x"}), None),
    ] {
        assert_eq!(there_and_back(&given, &form).ok(), expected, "{given}");
    }
}

#[test]
fn what_is_packed_too_deep_is_not_written() {
    let text = "syntax = \"proto3\"; package test; import \"google/protobuf/any.proto\";
        message Box { google.protobuf.Any held = 1; }";
    let compiled = definitions(text).compile(&DocPath::root()).expect("good");
    let holder = compiled.pool.get_message_by_name("test.Box").expect("there");
    for (name, tag) in [("google.protobuf.Any", None), ("test.Box", Some(10_u8))] {
        for (depth, is_written) in [(1, true), (8, true), (20_000, false)] {
            let mut held: Vec<u8> = Vec::new();
            for place in 0..depth {
                // The innermost is one without anything in it.
                let url = format!("x/{}", if place == 0 { "test.Box" } else { name });
                let mut any = vec![10, url.len() as u8];
                any.extend_from_slice(url.as_bytes());
                any.push(18);
                prost::encoding::encode_varint(held.len() as u64, &mut any);
                any.append(&mut held);
                if let Some(tag) = tag {
                    held.push(tag);
                    prost::encoding::encode_varint(any.len() as u64, &mut held);
                }
                held.append(&mut any);
            }
            let mut bytes = Vec::new();
            if tag.is_none() {
                bytes.push(10);
                prost::encoding::encode_varint(held.len() as u64, &mut bytes);
            }
            bytes.append(&mut held);
            let message = DynamicMessage::decode(holder.clone(), bytes.as_slice()).expect("good");
            let mut out = Vec::new();
            write_message(&message, &JsonForm::default(), &mut out);
            let written: Json = serde_json::from_slice(&out).expect("JSON");
            assert_eq!(!written["held"].is_null(), is_written, "{name} {depth}");
        }
    }
}

#[test]
fn defaults_are_written_where_wanted() {
    let form = JsonForm {
        defaults: true,
        ..LUA
    };
    let message = DynamicMessage::new(all());
    let mut out = Vec::new();
    write_message(&message, &form, &mut out);
    let written: Json = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(
        written,
        json!({"some_text": "", "long": 0, "big": 0, "raw": "", "color": "RED", "list": [], "members": {},
               "ratio": 0.0, "flag": false, "colors": []})
    );
}

#[test]
fn texts_become_values_of_fields() {
    let form = JsonForm::default();
    for (path, text, expected) in [
        ("some_text", "a b", Some(json!({"someText": "a b"}))),
        ("someText", "a", Some(json!({"someText": "a"}))),
        ("inner.count", "7", Some(json!({"inner": {"count": 7}}))),
        ("inner.count", "x", None),
        ("list", "1", Some(json!({"list": [1]}))),
        ("color", "GREEN", Some(json!({"color": "GREEN"}))),
        ("color", "1", Some(json!({"color": "GREEN"}))),
        ("color", "BLUE", None),
        ("flag", "true", Some(json!({"flag": true}))),
        ("flag", "yes", None),
        ("raw", "AP8", Some(json!({"raw": "AP8="}))),
        (
            "at",
            "2026-11-20T15:31:00Z",
            Some(json!({"at": "2026-11-20T15:31:00Z"})),
        ),
        ("maybe", "7", Some(json!({"maybe": "7"}))),
        ("ratio", "1.5", Some(json!({"ratio": 1.5}))),
        ("inner", "x", None),
        ("members", "x", None),
        ("nothing", "x", None),
        ("list.x", "x", None),
    ] {
        let mut message = DynamicMessage::new(all());
        let field = FieldPath::find(&all(), path).filter(FieldPath::takes_text);
        let set = field.is_some_and(|field| field.set(&mut message, text, &form).is_ok());
        let written = set.then(|| {
            let mut out = Vec::new();
            write_message(&message, &form, &mut out);
            serde_json::from_slice::<Json>(&out).expect("JSON")
        });
        assert_eq!(written, expected, "{path}={text}");
    }
}

#[test]
fn wrong_definitions_are_refused_with_their_place() {
    let compiled = definitions(TEXT).compile(&DocPath::root()).expect("good");
    let set = STANDARD.encode(compiled.pool.encode_to_vec());
    let of = |text: &str| definitions(text);
    for (given, place, expected) in [
        (
            of("message M {"),
            "text",
            "definition.proto: expected a message field",
        ),
        (
            of("syntax = \"proto3\";\nmessage M { Nope n = 1; }"),
            "text",
            "definition.proto:2:13: ",
        ),
        (
            of("import \"no.proto\";"),
            "text",
            "definition.proto:1:1: import 'no.proto' not found",
        ),
        (of(&"/".repeat(5 << 20)), "text", "expected at most 4194304 bytes"),
        (
            Definitions {
                file: Some("/a/b.proto".into()),
                ..of("messag")
            },
            "file",
            "b.proto:1:1: ",
        ),
        (
            Definitions {
                file: Some("/a/b.proto".into()),
                ..Definitions::default()
            },
            "file",
            "the file was not read",
        ),
        (
            Definitions {
                descriptor_set: Some("!".into()),
                ..Definitions::default()
            },
            "descriptor_set",
            "expected a text in Base64",
        ),
        (
            Definitions {
                descriptor_set: Some("AAAA".into()),
                ..Definitions::default()
            },
            "descriptor_set",
            "",
        ),
        (Definitions::default(), "", "expected one of"),
        (
            Definitions {
                descriptor_set: Some(set.clone()),
                ..of(TEXT)
            },
            "",
            "expected one of",
        ),
    ] {
        let found = given.compile(&DocPath::root()).expect_err("wrong");
        assert_eq!(found.path.to_string(), place);
        assert!(found.message.starts_with(expected), "{}", found.message);
    }
    let set = Definitions {
        descriptor_set: Some(set),
        ..Definitions::default()
    };
    let compiled = set.compile(&DocPath::root()).expect("good");
    assert!(compiled.method("test.S/Do").is_some() && compiled.method("test.S/No").is_none());
}

#[test]
fn definitions_are_compiled_once() {
    let cache = Cache::default();
    let place = DocPath::root();
    let one = cache.compile(&definitions(TEXT), &place).expect("good");
    let other = cache.compile(&definitions(TEXT), &place).expect("good");
    assert!(Arc::ptr_eq(&one, &other));
    assert_eq!(imports("x.proto", TEXT).map(|it| it.len()), Ok(4));
    assert!(imports("/a/x.proto", "x").is_err_and(|it| it.starts_with("x.proto:1:1")));
    assert!(
        is_known("google/api/annotations.proto") && is_known("google/protobuf/any.proto") && !is_known("a")
    );
}
