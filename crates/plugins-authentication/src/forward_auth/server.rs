//! The address of the server that is asked.

use weir_plugin::headers::is_value;

/// The server that is asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) is_https: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// As `Host` has it.
    pub(super) authority: String,
    pub(super) target: String,
}

impl Server {
    pub(super) fn parse(url: &str) -> Option<Self> {
        let (is_https, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']')?;
                (host, port.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
            None => {
                if is_https {
                    443
                } else {
                    80
                }
            }
        };
        let is_clean = is_value(url.as_bytes()) && !url.contains([' ', '\t', '@', '#']);
        (is_clean && !host.is_empty()).then(|| Self {
            is_https,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            target: match target.starts_with('/') {
                true => target.to_owned(),
                false => format!("/{target}"),
            },
        })
    }
}
