//! Addresses followed by a word for the protocol, such as `127.0.0.1:8001,tls`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A listener of an Admin API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminListen {
    /// The address.
    pub address: SocketAddr,
    /// Whether its clients speak TLS.
    pub is_tls: bool,
}

impl AdminListen {
    /// Reads it: an address, perhaps with `,tls`.
    ///
    /// # Errors
    /// If it is malformed: what was expected.
    pub fn read(text: &str) -> Result<Self, String> {
        let (address, is_tls) = read(text, false, &[("tls", true)])?;
        Ok(Self { address, is_tls })
    }

    /// A port for programs on this machine.
    pub const fn local(port: u16) -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
            is_tls: false,
        }
    }
}

/// Reads an address, and the meaning of the word after its comma: one of `words`, or nothing.
///
/// # Errors
/// If it is malformed: what was expected.
pub fn read<T: Copy>(text: &str, plain: T, words: &[(&str, T)]) -> Result<(SocketAddr, T), String> {
    let (address, word) = match text.split_once(',') {
        None => (text, None),
        Some((address, word)) => (address, Some(word)),
    };
    let spoken = match word {
        None => plain,
        Some(word) => {
            let known = words.iter().find(|(known, _)| *known == word);
            let (_, spoken) = known.ok_or_else(|| {
                let words = words.iter().map(|(word, _)| format!("'{word}'"));
                format!("expected {} after the address, found '{word}'", or(words))
            })?;
            *spoken
        }
    };
    let address = address.parse::<SocketAddr>().map_err(|_| {
        let words = words.iter().map(|(word, _)| format!("ADDRESS:PORT,{word}"));
        format!(
            "expected {}",
            or(std::iter::once("ADDRESS:PORT".to_owned()).chain(words))
        )
    })?;
    Ok((address, spoken))
}

/// `a`, `a or b`, `a, b or c`.
fn or(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    let last = words.pop().unwrap_or_default();
    match words.is_empty() {
        true => last,
        false => format!("{} or {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, wanted) in [
            ("0.0.0.0:9000", Ok(("0.0.0.0:9000", 0))),
            ("[::]:9443,tls", Ok(("[::]:9443", 1))),
            ("127.0.0.1:53,udp", Ok(("127.0.0.1:53", 2))),
            (
                "127.0.0.1:53,tcp",
                Err("expected 'tls' or 'udp' after the address, found 'tcp'"),
            ),
            (
                "127.0.0.1:53,",
                Err("expected 'tls' or 'udp' after the address, found ''"),
            ),
            (
                "9000",
                Err("expected ADDRESS:PORT, ADDRESS:PORT,tls or ADDRESS:PORT,udp"),
            ),
            (
                "localhost:9000,tls",
                Err("expected ADDRESS:PORT, ADDRESS:PORT,tls or ADDRESS:PORT,udp"),
            ),
        ] {
            let wanted = wanted
                .map(|(address, word)| (address.parse().expect("an address"), word))
                .map_err(str::to_owned);
            assert_eq!(read(text, 0, &[("tls", 1), ("udp", 2)]), wanted, "{text}");
        }
        let options = read("x", false, &[("tls", true)]);
        assert_eq!(
            options,
            Err("expected ADDRESS:PORT or ADDRESS:PORT,tls".to_owned())
        );
    }
}
