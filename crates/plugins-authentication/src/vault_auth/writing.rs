//! The places of pairs of tokens in a vault, for code that writes them. **What it is not**: it makes no calls to a
//! vault, and knows nothing about calls.

use super::{EngineVersion, MAX_TOKEN, VaultServer, encoded, is_segment};
use serde_json::{Value, json};

/// The headers that a vault expects: its token, and one that agents in front of it require.
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

    /// A secret in the form that the engine expects. The second version accepts it only if `last_version` is still the
    /// last one (0: there was none); the first version has no such check.
    pub fn document(&self, secret: Value, last_version: u64) -> Value {
        match self.version {
            EngineVersion::V1 => secret,
            EngineVersion::V2 => json!({ "options": { "cas": last_version }, "data": secret }),
        }
    }
}

/// The last version of a secret that the engine does not hold, by its answer (404). A deleted secret keeps its versions, and
/// the next one is written over the last of them; 0: there was never one.
pub fn last_version(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    answer["data"]["metadata"]["version"].as_u64().unwrap_or(0)
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
        for last in [0, 3] {
            assert_eq!(server(EngineVersion::V1).document(json!(1), last), json!(1));
            let written = json!({"options": {"cas": last}, "data": 1});
            assert_eq!(server(EngineVersion::V2).document(json!(1), last), written);
        }
    }

    #[test]
    fn answers_name_the_last_version() {
        for (answer, expected) in [
            (r#"{"errors":[]}"#, 0),
            (
                r#"{"data":{"data":null,"metadata":{"version":3,"deletion_time":"2026-01-01T00:00:00Z","destroyed":false}}}"#,
                3,
            ),
            (r#"{"data":{"metadata":{"version":-1}}}"#, 0),
            ("[]", 0),
            ("", 0),
        ] {
            assert_eq!(last_version(answer.as_bytes()), expected, "{answer}");
        }
    }
}
