//! `string.format`: values in a text at the places that begin with `%`. Texts, characters, whole numbers and decimals;
//! no exponents and no quoted texts.

use super::value::{EvaluationError, MAX_TEXT, Value};

/// The greatest width and precision, as in Lua.
const MAX_WIDTH: usize = 99;

/// What stands between `%` and the letter.
#[derive(Debug, Default)]
struct Form {
    is_left: bool,
    has_zeros: bool,
    has_sign: bool,
    has_space: bool,
    width: usize,
    precision: Option<usize>,
}

/// The text with the values in it.
///
/// # Errors
/// Where a value is missing or does not fit.
pub(super) fn formatted(text: &[u8], values: &[Value]) -> Result<Vec<u8>, EvaluationError> {
    let mut values = values.iter();
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(b"%") {
            out.push(b'%');
            rest = behind;
            continue;
        }
        let form = Form::take(&mut rest)?;
        let (character, behind) = rest
            .split_first()
            .ok_or(EvaluationError("a format ends in '%'"))?;
        let value = values
            .next()
            .ok_or(EvaluationError("a format has more places than values"))?;
        form.write(*character, value, &mut out)?;
        rest = behind;
        if out.len() > MAX_TEXT {
            return Err(EvaluationError("a text is too long"));
        }
    }
    out.extend_from_slice(rest);
    Ok(out)
}

impl Form {
    fn take(rest: &mut &[u8]) -> Result<Self, EvaluationError> {
        let mut form = Self::default();
        while let Some((first, behind)) = rest.split_first() {
            match first {
                b'-' => form.is_left = true,
                b'0' => form.has_zeros = true,
                b'+' => form.has_sign = true,
                b' ' => form.has_space = true,
                _ => break,
            }
            *rest = behind;
        }
        form.width = number(rest)?;
        if let Some(behind) = rest.strip_prefix(b".") {
            *rest = behind;
            form.precision = Some(number(rest)?);
        }
        Ok(form)
    }

    fn write(&self, character: u8, value: &Value, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
        let wanted = || value.number().ok_or(EvaluationError("a number is wanted"));
        let mut digits = match character {
            b's' => {
                let mut text = Vec::new();
                match value {
                    Value::Nil => text.extend_from_slice(b"nil"),
                    value => value.write(&mut text),
                }
                text.truncate(self.precision.unwrap_or(text.len()));
                self.pad(&text, b' ', out);
                return Ok(());
            }
            b'c' => {
                self.pad(&[wanted()? as u8], b' ', out);
                return Ok(());
            }
            b'd' | b'i' => whole(format!("{}", wanted()?.trunc().abs() as u64), self.precision),
            b'x' => whole(format!("{:x}", wanted()? as i64), self.precision),
            b'X' => whole(format!("{:X}", wanted()? as i64), self.precision),
            b'f' | b'F' => format!("{:.*}", self.precision.unwrap_or(6), wanted()?.abs()),
            _ => {
                return Err(EvaluationError(
                    "a format is not available in this version of Weir",
                ));
            }
        };
        let sign = match (wanted()? < 0.0, self) {
            _ if matches!(character, b'x' | b'X') => "",
            (true, _) => "-",
            (false, Self { has_sign: true, .. }) => "+",
            (false, Self { has_space: true, .. }) => " ",
            (false, _) => "",
        };
        let has_zeros = self.has_zeros && !self.is_left && (self.precision.is_none() || character == b'f');
        if has_zeros {
            let missing = self.width.saturating_sub(sign.len() + digits.len());
            digits.insert_str(0, &"0".repeat(missing));
        }
        self.pad(format!("{sign}{digits}").as_bytes(), b' ', out);
        Ok(())
    }

    fn pad(&self, text: &[u8], with: u8, out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(text.len());
        if self.is_left {
            out.extend_from_slice(text);
        }
        out.resize(out.len() + missing, with);
        if !self.is_left {
            out.extend_from_slice(text);
        }
    }
}

/// Digits with so many zeros before them that there are at least `precision`.
fn whole(digits: String, precision: Option<usize>) -> String {
    format!("{digits:0>width$}", width = precision.unwrap_or(1))
}

/// The number at the start, which is taken away; 0: there is none.
fn number(rest: &mut &[u8]) -> Result<usize, EvaluationError> {
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, behind) = rest.split_at(length);
    *rest = behind;
    let number = digits.iter().try_fold(0usize, |sum, digit| {
        sum.checked_mul(10)?.checked_add(usize::from(digit - b'0'))
    });
    number
        .filter(|number| *number <= MAX_WIDTH)
        .ok_or(EvaluationError("a format has a width above 99"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_at_their_places() {
        let (text, nil) = (|text: &str| Value::Text(text.into()), Value::Nil);
        for (form, values, wanted) in [
            ("%s-%s%%", vec![text("a"), Value::Number(2.0)], Some("a-2%")),
            ("%s %s", vec![nil, Value::Bool(true)], Some("nil true")),
            (
                "%d|%5d|%-5d|%05d|%+d",
                [7.9; 5].map(Value::Number).to_vec(),
                Some("7|    7|7    |00007|+7"),
            ),
            (
                "%d %03d %.2f",
                [-7.0, -7.0, -0.126].map(Value::Number).to_vec(),
                Some("-7 -07 -0.13"),
            ),
            (
                "%.2f|%f|%6.1f|%x|%X|%c",
                [1.005, 2.5, 2.25, 255.0, 255.0, 65.0].map(Value::Number).to_vec(),
                Some("1.00|2.500000|   2.2|ff|FF|A"),
            ),
            (
                "%.2s|%4s|%-4s|",
                vec![text("abc"), text("a"), text("b")],
                Some("ab|   a|b   |"),
            ),
            ("%d", vec![text("12")], Some("12")),
            ("%d", vec![text("x")], None),
            ("%s", vec![], None),
            ("%q", vec![text("x")], None),
            ("%100d", vec![Value::Number(1.0)], None),
            ("100%", vec![], None),
        ] {
            let found = formatted(form.as_bytes(), &values).ok();
            let found = found.map(|found| String::from_utf8_lossy(&found).into_owned());
            assert_eq!(found.as_deref(), wanted, "{form}");
        }
    }
}
