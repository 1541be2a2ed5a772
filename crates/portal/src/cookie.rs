//! The cookie of a portal's session. Its name is another one than the console's, and neither knows the other's values.

use crate::people::SESSION;
use axum::http::{HeaderMap, header};
use weir_control::access::openid::engine::LONGEST_LOGIN;

/// Over TLS browsers keep a cookie with this prefix for one host and refuse it in the clear.
const SECURE: &str = "__Host-weir-portal";
const CLEAR: &str = "weir-portal";

fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE } else { CLEAR }
}

fn attributes(is_secure: bool) -> &'static str {
    match is_secure {
        true => "; Path=/; HttpOnly; SameSite=Lax; Secure",
        false => "; Path=/; HttpOnly; SameSite=Lax",
    }
}

/// The header that sets it.
pub fn set(value: &str, is_secure: bool) -> String {
    let age = SESSION.as_secs();
    format!(
        "{}={value}{}; Max-Age={age}",
        name(is_secure),
        attributes(is_secure)
    )
}

/// A login with an identity provider that has begun.
const LOGIN: [&str; 2] = ["weir-portal-login", "__Host-weir-portal-login"];

/// The header that keeps a login that has begun. It is sent with the way back from the provider.
pub fn set_login(value: &str, is_secure: bool) -> String {
    let (name, age) = (LOGIN[usize::from(is_secure)], LONGEST_LOGIN.as_secs());
    format!("{name}={value}{}; Max-Age={age}", attributes(is_secure))
}

/// The header that removes it.
pub fn clear_login(is_secure: bool) -> String {
    let name = LOGIN[usize::from(is_secure)];
    format!("{name}={}; Max-Age=0", attributes(is_secure))
}

/// The login that has begun.
pub fn get_login(headers: &HeaderMap, is_secure: bool) -> Option<String> {
    named(headers, LOGIN[usize::from(is_secure)])
}

/// The header that removes it.
pub fn clear(is_secure: bool) -> String {
    format!("{}={}; Max-Age=0", name(is_secure), attributes(is_secure))
}

/// Its value; `None`: there is no such cookie, or several.
pub fn get(headers: &HeaderMap, is_secure: bool) -> Option<String> {
    named(headers, name(is_secure))
}

fn named(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter();
    let pairs = all.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(';'));
    let mut values = pairs.filter_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then(|| value.to_owned())
    });
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_cookie_of_this_name_counts() {
        for (cookies, is_secure, expected) in [
            (&["a=b; weir-portal=x"][..], false, Some("x")),
            (&["weir-portal=x"], true, None),
            (&["__Host-weir-portal=x"], true, Some("x")),
            (&["weir-portal=x; weir-portal=y"], false, None),
            (&["weir-portal=x", "weir-portal=x"], false, None),
            (&["weir=x"], false, None),
            (&[], false, None),
        ] {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(header::COOKIE, cookie.parse().expect("a value"));
            }
            assert_eq!(get(&headers, is_secure).as_deref(), expected, "{cookies:?}");
        }
        assert!(set("v", true).starts_with("__Host-weir-portal=v; Path=/; HttpOnly; SameSite=Lax; Secure;"));
        assert!(clear(false).contains("Max-Age=0"));
    }
}
