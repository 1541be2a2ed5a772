//! Fields that the gateway owns: upstreams trust what they say about a caller. Many servers rename fields as CGI does
//! (RFC 3875, 4.1.18), where `-` and `_` are the same: a client's `X_Consumer_ID` would count as `X-Consumer-ID`.

use super::{Headers, Tag};

/// Names of fields that the gateway owns, to be looked for at once.
#[derive(Debug, Clone, Default)]
pub struct OwnedNames {
    names: Box<[Box<[u8]>]>,
    /// A bit for each length.
    lengths: u64,
}

impl OwnedNames {
    /// These names.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(|name| name.as_bytes().into());
        let names: Box<[Box<[u8]>]> = names.collect();
        let bits = names.iter().map(|name| Tag::of(name).length_bit());
        Self {
            lengths: bits.fold(0, |all, bit| all | bit),
            names,
        }
    }

    /// Whether a header of this name may be taken for one of them.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.names
            .iter()
            .any(|own| own.len() == name.len() && is_alike(own, name))
    }
}

impl Headers {
    /// Removes every header that may be taken for one of these, in one pass; see [`Headers::remove_owned`].
    pub fn remove_all_owned(&mut self, names: &OwnedNames) {
        let Self { arena, entries, .. } = self;
        for entry in entries {
            let may_be = entry.tag.length_bit() & names.lengths != 0 && !entry.is_removed();
            if may_be && names.contains(Self::header(arena, entry).name) {
                entry.tag = Tag::REMOVED;
            }
        }
    }

    /// Removes every header that may be taken for this one: in any case, and with `_` for `-` or the other way round.
    pub fn remove_owned(&mut self, name: &[u8]) {
        let Self { arena, entries, .. } = self;
        for entry in entries {
            let is_as_long = !entry.is_removed() && entry.tag.name_len() == name.len();
            if is_as_long && is_alike(Self::header(arena, entry).name, name) {
                entry.tag = Tag::REMOVED;
            }
        }
    }

    /// Replaces every header that may be taken for this one. One that has the value already stays where it is: tokens are
    /// long, and most go on as they came.
    pub fn set_owned(&mut self, name: &[u8], value: &[u8]) {
        self.set_owned_with_scheme(name, b"", value);
    }

    /// The same, with a value of two parts, such as `Bearer ` and a token.
    pub fn set_owned_with_scheme(&mut self, name: &[u8], scheme: &[u8], value: &[u8]) {
        let is_same = |own: &[u8]| own.strip_prefix(scheme) == Some(value);
        let Self { arena, entries, .. } = self;
        let mut is_there = false;
        for entry in entries {
            if entry.is_removed() || entry.tag.name_len() != name.len() {
                continue;
            }
            let header = Self::header(arena, entry);
            if !is_there && header.name.eq_ignore_ascii_case(name) && is_same(header.value) {
                is_there = true;
            } else if is_alike(header.name, name) {
                entry.tag = Tag::REMOVED;
            }
        }
        if !is_there {
            match scheme {
                b"" => self.append(name, value),
                scheme => self.append(name, &[scheme, value].concat()),
            }
        }
    }
}

/// Compares two names of one length.
fn is_alike(own: &[u8], name: &[u8]) -> bool {
    let fold = |byte: u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    own.iter().zip(name).all(|(own, name)| fold(*own) == fold(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENTS: [&str; 6] = [
        "X-Team-Id",
        "X_TEAM_ID",
        "x-team_id",
        "x-team",
        "X-Team-Idx",
        "XTeam-Id",
    ];

    #[test]
    fn twins_go_with_the_field() {
        for (name, left) in [
            ("X-Team-Id", &["x-team", "X-Team-Idx", "XTeam-Id"][..]),
            ("x_team_id", &["x-team", "X-Team-Idx", "XTeam-Id"]),
            (
                "x-team",
                &["X-Team-Id", "X_TEAM_ID", "x-team_id", "X-Team-Idx", "XTeam-Id"],
            ),
            ("other", &CLIENTS),
        ] {
            let mut headers = Headers::default();
            for name in CLIENTS {
                headers.append(name.as_bytes(), b"client");
            }
            let mut others = headers.clone();
            others.remove_all_owned(&OwnedNames::new(["no-such-name", name]));
            headers.set_owned(name.as_bytes(), b"own");
            let names: Vec<_> = headers
                .iter()
                .map(|it| String::from_utf8_lossy(it.name))
                .collect();
            assert_eq!(names[..names.len() - 1], *left, "{name}");
            assert_eq!(headers.get(name.as_bytes()), Some(&b"own"[..]), "{name}");
            let names: Vec<_> = others.iter().map(|it| String::from_utf8_lossy(it.name)).collect();
            assert_eq!(names, *left, "{name}, several at once");
        }
    }

    #[test]
    fn a_field_that_has_the_value_already_stays_alone_where_it_is() {
        for (sent, left) in [
            (
                &[("a", "1"), ("X-Id", "own"), ("b", "2")][..],
                &["a: 1", "X-Id: own", "b: 2"][..],
            ),
            (
                &[("x-id", "own"), ("X-ID", "own"), ("X_Id", "own"), ("b", "2")],
                &["x-id: own", "b: 2"],
            ),
            (&[("x_id", "own"), ("x-id", "forged")], &["X-Id: own"]),
            (&[], &["X-Id: own"]),
        ] {
            let mut headers = Headers::default();
            for (name, value) in sent {
                headers.append(name.as_bytes(), value.as_bytes());
            }
            headers.set_owned(b"X-Id", b"own");
            let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
            let found: Vec<_> = headers
                .iter()
                .map(|it| format!("{}: {}", text(it.name), text(it.value)))
                .collect();
            assert_eq!(found, left, "{sent:?}");
        }
    }
}
