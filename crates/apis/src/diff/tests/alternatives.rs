//! Lists of alternatives that grow or shrink.

use super::*;

/// Where one alternative is gone or new, the others are compared with those that they were.
#[test]
fn alternatives_find_their_partners_in_lists_of_other_lengths() {
    let pet = |kind: &str, more: Value| {
        let mut fields = json!({"kind": {"const": kind}, "name": {"type": "string"}});
        fields
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().expect("a map").clone());
        json!({"type": "object", "properties": fields})
    };
    let [cat, dog, bird] = ["cat", "dog", "bird"].map(|kind| pet(kind, json!({})));
    let old_dog = pet("dog", json!({"tail": {"type": "string"}}));
    let new_dog = pet("dog", json!({"tail": {"type": "integer"}}));
    for word in ["oneOf", "anyOf"] {
        let of = |list: &[&Value]| with_body(json!({ word: list }));
        for (old, new, expected) in [
            (
                of(&[&cat, &old_dog]),
                of(&[&new_dog]),
                vec![
                    (true, format!("body.{word}[1].tail: is integer, was string")),
                    (true, format!("body: '{word}' has 1 alternatives, had 2")),
                ],
            ),
            (
                of(&[&old_dog]),
                of(&[&cat, &bird, &new_dog]),
                vec![
                    (true, format!("body.{word}[0].tail: is integer, was string")),
                    (false, format!("body: '{word}' has 3 alternatives, had 1")),
                ],
            ),
            (
                of(&[&cat, &dog, &bird]),
                of(&[&bird, &dog]),
                vec![(true, format!("body: '{word}' has 2 alternatives, had 3"))],
            ),
        ] {
            assert_eq!(changes(old.clone(), new.clone()), expected, "{old} {new}");
        }
    }
}
