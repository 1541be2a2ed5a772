//! Fields that the gateway owns: what they say of a caller, upstreams believe. Many servers hand fields on under the names
//! of CGI (RFC 3875, 4.1.18), where `-` and `_` are one: a client's `X_Consumer_ID` would stand for `X-Consumer-ID`.

use super::{Headers, Tag};

impl Headers {
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

    /// Replaces every header that may be taken for this one.
    pub fn set_owned(&mut self, name: &[u8], value: &[u8]) {
        self.remove_owned(name);
        self.append(name, value);
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
            headers.set_owned(name.as_bytes(), b"own");
            let names: Vec<_> = headers
                .iter()
                .map(|it| String::from_utf8_lossy(it.name))
                .collect();
            assert_eq!(names[..names.len() - 1], *left, "{name}");
            assert_eq!(headers.get(name.as_bytes()), Some(&b"own"[..]), "{name}");
        }
    }
}
