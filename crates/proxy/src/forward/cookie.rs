//! The cookie that keeps a client at its target: one that is hashed, or that names the target.

use weir_plugin::Headers;

/// A cookie that the gateway sets.
pub struct StickyCookie {
    /// The value of `Set-Cookie`.
    pub line: Vec<u8>,
    /// How much of it is the cookie's name and the `=` after it.
    pub name_len: usize,
}

impl StickyCookie {
    pub fn new(name: &[u8], value: &str, path: &str, attributes: &str) -> Self {
        let mut line = [name, b"="].concat();
        let name_len = line.len();
        line.extend_from_slice(format!("{value}; Path={path}; {attributes}").as_bytes());
        Self { line, name_len }
    }

    /// Removes the upstream's cookie of the same name: the client would keep whichever comes last.
    pub fn replace_in(&self, headers: &mut Headers) {
        let start = &self.line[..self.name_len];
        headers.retain(|header| {
            !(header.name.eq_ignore_ascii_case(b"set-cookie") && header.value.starts_with(start))
        });
    }
}
