//! The location of an etcd: `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX`, or `etcds://…?ca=FILE` with TLS.

use crate::store::StoreError;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// The port of a member that is written without one.
const PORT: u16 = 2379;
/// The prefix of keys if the location names none.
const PREFIX: &str = "/weir";

/// A location, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    /// `HOST:PORT` of each member.
    pub members: Vec<String>,
    /// Name and password.
    pub user: Option<(String, String)>,
    /// The prefix of the store's keys, such as `/weir`.
    pub prefix: String,
    /// `None`: without TLS.
    pub tls: Option<Tls>,
}

/// The files that TLS needs, in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Whose signature makes a member trusted (`ca=`).
    pub authority: PathBuf,
    /// Certificate and key of the store as a client (`cert=`, `key=`).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the members' certificates are for (`name=`), if it is not the host of their address.
    pub name: Option<String>,
}

/// Does not show the password.
impl fmt::Debug for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Location")
            .field("members", &self.members)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("prefix", &self.prefix)
            .field("tls", &self.tls)
            .finish()
    }
}

fn wrong(what: &str) -> StoreError {
    StoreError::Failed(format!(
        "{what} (etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX, or etcds://…?ca=FILE)"
    ))
}

impl Location {
    /// Reads a location.
    ///
    /// # Errors
    /// If it is invalid. The error does not repeat it.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let (is_tls, rest) = match text.split_once("://") {
            Some(("etcd", rest)) => (false, rest),
            Some(("etcds", rest)) => (true, rest),
            _ => return Err(wrong("no location of an etcd")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, members) = match authority.rsplit_once('@') {
            Some((user, members)) => (Some(parse_user(user)?), members),
            None => (None, authority),
        };
        let members: Option<Vec<String>> = members.split(',').map(member).collect();
        let prefix = match path.trim_end_matches('/') {
            "" => PREFIX.to_owned(),
            path => format!("/{}", decoded(path)?),
        };
        Ok(Self {
            members: members.ok_or_else(|| wrong("a member is not HOST:PORT"))?,
            user,
            prefix,
            tls: parse_tls(is_tls, query)?,
        })
    }
}

fn parse_user(text: &str) -> Result<(String, String), StoreError> {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((decoded(name)?, decoded(password)?))
}

fn member(text: &str) -> Option<String> {
    let is_host = |host: &str| !host.is_empty() && !host.contains(|it: char| it.is_control() || it == ' ');
    let (host, port) = match text.rsplit_once(':') {
        // The colons of an IPv6 address stand inside brackets.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, PORT),
    };
    is_host(host).then(|| format!("{host}:{port}"))
}

fn parse_tls(is_tls: bool, query: &str) -> Result<Option<Tls>, StoreError> {
    let mut tls = Tls::default();
    let (mut certificate, mut key) = (None, None);
    for (name, value) in query
        .split('&')
        .filter(|it| !it.is_empty())
        .map(|it| it.split_once('=').unwrap_or((it, "")))
    {
        let value = decoded(value)?;
        match name {
            "ca" => tls.authority = value.into(),
            "cert" => certificate = Some(value.into()),
            "key" => key = Some(value.into()),
            "name" => tls.name = Some(value),
            _ => return Err(wrong("options are ca, cert, key and name")),
        }
    }
    tls.identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(wrong("cert and key must be given together")),
    };
    match (is_tls, tls == Tls::default()) {
        (false, true) => Ok(None),
        (false, false) => Err(wrong("only etcds:// has options")),
        (true, _) if tls.authority.as_os_str().is_empty() => Err(wrong(
            "etcds:// needs ca=FILE, the authority of its members' certificates",
        )),
        (true, _) => Ok(Some(tls)),
    }
}

/// Takes `%40` and the like back.
fn decoded(text: &str) -> Result<String, StoreError> {
    let is_code = |rest: &str| {
        let code = rest.as_bytes().get(..2);
        code.is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_code) {
        return Err(wrong("a % without two hexadecimal digits"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| wrong("not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_locations_apart() {
        let plain = Location {
            members: vec!["db:2379".into()],
            user: None,
            prefix: "/weir".into(),
            tls: None,
        };
        let tls = Tls {
            authority: "/ca.pem".into(),
            ..Tls::default()
        };
        let cases = [
            ("etcd://db", plain.clone()),
            ("etcd://db:2379/", plain.clone()),
            (
                "etcd://a:1,[::1]:2,[::2]/x/y/",
                Location {
                    members: vec!["a:1".into(), "[::1]:2".into(), "[::2]:2379".into()],
                    prefix: "/x/y".into(),
                    ..plain.clone()
                },
            ),
            (
                "etcd://root:p%40ss:w@db",
                Location {
                    user: Some(("root".into(), "p@ss:w".into())),
                    ..plain.clone()
                },
            ),
            (
                "etcds://db?ca=/ca.pem",
                Location {
                    tls: Some(tls.clone()),
                    ..plain.clone()
                },
            ),
            (
                "etcds://db?ca=/ca.pem&cert=c&key=k&name=etcd.local",
                Location {
                    tls: Some(Tls {
                        identity: Some(("c".into(), "k".into())),
                        name: Some("etcd.local".into()),
                        ..tls
                    }),
                    ..plain
                },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(Location::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn refuses_others() {
        let cases = [
            "http://db",
            "etcd://",
            "etcd://a,,b",
            "etcd://a:port",
            "etcd://u:%zz@a",
            "etcd://u:%4@a",
            "etcds://a",
            "etcds://a?ca=x&cert=y",
            "etcd://a?ca=x",
            "etcds://a?ca=x&secret=y",
        ];
        for text in cases {
            let error = Location::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn keeps_the_password() {
        let location = Location::parse("etcd://root:hidden@db").unwrap();
        assert!(!format!("{location:?}").contains("hidden"));
    }
}
