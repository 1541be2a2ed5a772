//! The text of the `Date` field (RFC 9110, 6.6.1), made again once a second. Each worker has its own. Not a clock: the
//! time is an argument.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
type Text = [u8; 29];

/// The text of the second that was asked for last.
#[derive(Debug, Default)]
pub struct Date(Cell<Option<(u64, Text)>>);

impl Date {
    /// The text for `now`. Times before 1970 are taken for its beginning.
    pub fn at(&self, now: SystemTime) -> Text {
        let second = weir_model::unix_time::seconds(now);
        if let Some((_, text)) = self.0.get().filter(|(of, _)| *of == second) {
            return text;
        }
        let mut text = Text::default();
        // All years up to 9999 have four digits, and that is as far as the crate goes.
        text.copy_from_slice(httpdate::fmt_http_date(now.max(UNIX_EPOCH)).as_bytes());
        self.0.set(Some((second, text)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_second_has_one_text() {
        let date = Date::default();
        for (milliseconds, text) in [
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778_000, "Sun, 06 Nov 1994 08:49:38 GMT"),
            (784_111_777_500, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            let now = UNIX_EPOCH + Duration::from_millis(milliseconds);
            assert_eq!(date.at(now), text.as_bytes(), "{milliseconds}");
        }
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(&date.at(before), b"Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
