//! Times on the command line, in seconds with a fraction. No other units, so that none is confused.

use std::time::Duration;

/// A time in seconds, with a fraction where wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub Duration);

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds: f64 = text
            .parse()
            .map_err(|_| "expected a number of seconds".to_owned())?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if !duration.is_zero() => Ok(Self(duration)),
            _ => Err("expected more than 0 seconds".to_owned()),
        }
    }
}

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_read_and_print() {
        for (text, milliseconds) in [
            ("30", Some(30_000)),
            ("0.5", Some(500)),
            ("0", None),
            ("-1", None),
            ("x", None),
        ] {
            let read: Option<Seconds> = text.parse().ok();
            assert_eq!(read.map(|it| it.0.as_millis()), milliseconds, "{text}");
            if let Some(read) = read {
                assert_eq!(read.to_string(), text);
            }
        }
    }
}
