//! Where a vault keeps pairs of tokens, for those who write them. **What it is not**: it asks no vault, and knows nothing about
//! calls.

use super::{EngineVersion, MAX_TOKEN, VaultServer, encoded, is_segment};
use serde_json::{Value, json};

/// The headers that a vault wants: its token, and one that agents before it ask for.
pub const HEADERS: (&str, &str) = ("X-Vault-Token", "X-Vault-Request");

impl VaultServer {
    /// Where the secret of an access token is; `is_whole`: with all of its versions. `None`: the vault could not know such a
    /// token, or its engine has no path.
    pub fn address_of(&self, access: &str, is_whole: bool) -> Option<String> {
        let mount = self.mount.trim_matches('/');
        let is_fine = access.len() <= MAX_TOKEN && is_segment(access) && mount.split('/').all(is_segment);
        let folder = match self.version {
            EngineVersion::V1 => "",
            EngineVersion::V2 if is_whole => "metadata/",
            EngineVersion::V2 => "data/",
        };
        let address = self.address.trim_end_matches('/');
        is_fine.then(|| format!("{address}/v1/{mount}/{folder}{}", encoded(access)))
    }

    /// A secret as the engine takes it. The second version takes it only if it has no such secret yet; the first one cannot be
    /// told to.
    pub fn document(&self, secret: Value) -> Value {
        match self.version {
            EngineVersion::V1 => secret,
            EngineVersion::V2 => json!({ "options": { "cas": 0 }, "data": secret }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_where_the_engine_has_them() {
        let server = |version| VaultServer {
            address: "http://v:8200".to_owned(),
            mount: "/a/b/".to_owned(),
            version,
            token: "t".to_owned(),
        };
        for (version, access, is_whole, expected) in [
            (
                EngineVersion::V1,
                "x=1",
                false,
                Some("http://v:8200/v1/a/b/x%3D1"),
            ),
            (EngineVersion::V1, "x", true, Some("http://v:8200/v1/a/b/x")),
            (EngineVersion::V2, "x", false, Some("http://v:8200/v1/a/b/data/x")),
            (
                EngineVersion::V2,
                "x",
                true,
                Some("http://v:8200/v1/a/b/metadata/x"),
            ),
            (EngineVersion::V2, "../x", true, None),
            (EngineVersion::V2, "..", false, None),
            (EngineVersion::V2, "a%2fb", false, None),
            (EngineVersion::V2, "", false, None),
        ] {
            let address = server(version).address_of(access, is_whole);
            assert_eq!(address.as_deref(), expected, "{access}");
        }
        assert_eq!(server(EngineVersion::V1).document(json!(1)), json!(1));
        let first_only = json!({"options": {"cas": 0}, "data": 1});
        assert_eq!(server(EngineVersion::V2).document(json!(1)), first_only);
    }
}
