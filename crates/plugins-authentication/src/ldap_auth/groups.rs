//! The groups of users: their names, by the names of their entries, and whether they are enough. It asks no directory.

use super::config::{Config, Groups};

/// The names of those groups that count, by the names of their entries.
pub(super) fn names(config: &Config, groups: &Groups, entries: &[String]) -> Vec<String> {
    let base = parts(groups.base_dn.as_deref().unwrap_or(&config.base_dn));
    let attribute = groups.name_attribute.as_deref().unwrap_or(&config.attribute);
    let named = entries.iter().filter_map(|entry| name(entry, &base, attribute));
    named.collect()
}

/// Whether a user in these groups is let in.
pub(super) fn are_enough(groups: &Groups, names: &[String]) -> bool {
    let has = |name: &str| names.iter().any(|known| known == name);
    let required = &groups.required;
    required.is_empty() || required.iter().any(|entry| has_all(entry, has))
}

fn has_all(entry: &str, has: impl Fn(&str) -> bool) -> bool {
    let mut names = entry.split_ascii_whitespace().peekable();
    names.peek().is_some() && names.all(has)
}

/// The parts of the name of an entry.
fn parts(entry: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (place, byte) in entry.bytes().enumerate() {
        if byte == b',' && !is_escaped {
            parts.push(entry[start..place].trim());
            start = place + 1;
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    parts.push(entry[start..].trim());
    parts
}

/// The attribute and the value of a part; `None`: there are several, or none.
fn pair(part: &str) -> Option<(&str, String)> {
    let (attribute, value) = part.split_once('=')?;
    let (mut bytes, mut rest) = (Vec::new(), value.trim().as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'+' => return None,
            b'\\' => {
                let hex = behind
                    .get(..2)
                    .and_then(|digits| std::str::from_utf8(digits).ok());
                match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => {
                        bytes.push(byte);
                        rest = &behind[2..];
                    }
                    None => {
                        let (character, behind) = behind.split_first()?;
                        bytes.push(*character);
                        rest = behind;
                    }
                }
            }
            byte => bytes.push(*byte),
        }
    }
    Some((attribute.trim(), String::from_utf8(bytes).ok()?))
}

/// The name of a group, if its entry is below `base` and begins with this attribute.
fn name(entry: &str, base: &[&str], attribute: &str) -> Option<String> {
    let own = parts(entry);
    let (first, above) = own.split_first()?;
    let end = above.len().checked_sub(base.len())?;
    let is_same = |one: &str, other: &str| match (pair(one), pair(other)) {
        (Some(one), Some(other)) => {
            one.0.eq_ignore_ascii_case(other.0) && one.1.to_lowercase() == other.1.to_lowercase()
        }
        _ => one.eq_ignore_ascii_case(other),
    };
    let is_below = above[end..]
        .iter()
        .zip(base)
        .all(|(one, other)| is_same(one, other));
    let (kind, name) = pair(first)?;
    (is_below && kind.eq_ignore_ascii_case(attribute) && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(required: &[&str]) -> Groups {
        Groups {
            attribute: "memberOf".into(),
            base_dn: Some("ou=Groups,dc=x".into()),
            name_attribute: Some("cn".into()),
            required: required.iter().map(|it| (*it).to_owned()).collect(),
            header: None,
        }
    }

    #[test]
    fn groups_are_named_by_their_entries() {
        let config = Config::new("h".into(), "ou=people,dc=x".into(), "uid".into());
        for (entry, wanted) in [
            ("cn=admins,ou=Groups,dc=x", Some("admins")),
            ("CN=Admins, OU=groups, DC=X", Some("Admins")),
            ("cn=admins,ou=team,ou=groups,dc=x", Some("admins")),
            ("cn=a\\,b\\2Bc,ou=groups,dc=x", Some("a,b+c")),
            // Elsewhere, of another kind, or made to look so.
            ("cn=admins,ou=people,dc=x", None),
            ("uid=admins,ou=groups,dc=x", None),
            ("cn=admins\\,ou=groups,dc=x", None),
            ("cn=admins+uid=a,ou=groups,dc=x", None),
            ("cn=admins,ou=Groups\\,dc=x", None),
            ("cn=,ou=groups,dc=x", None),
            ("ou=groups,dc=x", None),
            ("admins", None),
            ("cn=a\\", None),
            ("", None),
        ] {
            let found = names(&config, &groups(&[]), &[entry.to_owned()]);
            assert_eq!(found.first().map(String::as_str), wanted, "{entry}");
        }
        // By default, groups are found and named as users are.
        let standard = Groups {
            base_dn: None,
            name_attribute: None,
            ..groups(&[])
        };
        let found = names(&config, &standard, &["uid=a,ou=people,dc=x".to_owned()]);
        assert_eq!(found, ["a"]);
    }

    #[test]
    fn one_entry_of_groups_is_enough() {
        for (required, has, enough) in [
            (&[][..], &[][..], true),
            (&["a"], &["a"], true),
            (&["a"], &["A"], false),
            (&["a b"], &["a"], false),
            (&["a b"], &["b", "a"], true),
            (&["a b", "c"], &["c"], true),
            (&[""], &["a"], false),
            (&["  "], &[], false),
        ] {
            let has: Vec<String> = has.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(
                are_enough(&groups(required), &has),
                enough,
                "{required:?} {has:?}"
            );
        }
    }
}
