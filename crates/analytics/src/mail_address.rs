//! Mail addresses that alert rules and reports send to: whether a text is one.
//!
//! **What it is not**: it does not know whether there is a mailbox of this address.

use crate::query::QueryError;

/// The longest address (RFC 5321, section 4.5.3.1.3).
const MAX_BYTES: usize = 254;

/// Checks a plain address, without a name.
///
/// # Errors
/// If it is invalid; the error names the field.
pub fn check(field: &str, address: &str) -> Result<(), QueryError> {
    if is_address(address) {
        return Ok(());
    }
    let message = format!("'{address}' is not a valid mail address: expected one such as ops@example.com");
    Err(QueryError::new(field, message))
}

fn is_address(address: &str) -> bool {
    let Some((name, domain)) = address.split_once('@') else {
        return false;
    };
    // Quoted names are allowed by the RFC, and no one has one.
    let is_atom = |it: &str| {
        let is_plain = |it: char| !it.is_whitespace() && !it.is_control() && !"()<>[]:;@\\,\"".contains(it);
        !it.is_empty() && it.chars().all(is_plain)
    };
    let is_label = |it: &str| {
        let is_inside = |it: char| it.is_alphanumeric() || it == '-';
        !it.is_empty() && it.chars().all(is_inside) && !it.starts_with('-') && !it.ends_with('-')
    };
    address.len() <= MAX_BYTES && name.split('.').all(is_atom) && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_distinguished_from_other_texts() {
        let long = format!("{}@example.com", "a".repeat(250));
        for (address, expected) in [
            ("ann@example.com", true),
            ("ann.b+weir@mail.example.com", true),
            ("root@localhost", true),
            ("jürgen@köln.example", true),
            ("ann", false),
            ("", false),
            ("@example.com", false),
            ("ann@", false),
            ("ann@@example.com", false),
            ("ann@b@example.com", false),
            ("ann b@example.com", false),
            ("ann@example.com, bob@example.com", false),
            ("Ann <ann@example.com>", false),
            ("ann@example.com\r\nBcc: all@example.com", false),
            ("ann..b@example.com", false),
            ("ann@example..com", false),
            ("ann@-example.com", false),
            (&long, false),
        ] {
            assert_eq!(check("to", address).is_ok(), expected, "{address}");
        }
        let message = check("to", "ann").expect_err("no address").to_string();
        assert_eq!(
            message,
            "to: 'ann' is not a valid mail address: expected one such as ops@example.com"
        );
    }
}
