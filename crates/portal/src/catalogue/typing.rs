//! How many typing errors lie between two words: a letter too many, one too few, another one, or two neighbours that
//! changed places.

/// The number of errors, if there are at most `most`; `row` buffers are reused by the caller.
pub fn errors(one: &[char], other: &[char], most: usize) -> Option<usize> {
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    if long.len() - short.len() > most {
        return None;
    }
    // Rows of the table: two before, the last one, and the one that is made.
    let mut before: Vec<usize> = vec![0; short.len() + 1];
    let mut last: Vec<usize> = (0..=short.len()).collect();
    let mut row: Vec<usize> = vec![0; short.len() + 1];
    for (down, character) in long.iter().enumerate() {
        row[0] = down + 1;
        let mut least = row[0];
        for (across, known) in short.iter().enumerate() {
            let cost = usize::from(character != known);
            let mut value = (last[across + 1] + 1)
                .min(row[across] + 1)
                .min(last[across] + cost);
            if down > 0 && across > 0 && long[down - 1] == *known && *character == short[across - 1] {
                value = value.min(before[across - 1] + 1);
            }
            row[across + 1] = value;
            least = least.min(value);
        }
        if least > most + 1 {
            return None;
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    Some(last[short.len()]).filter(|found| *found <= most)
}

/// How many errors are forgiven in a word of this length.
pub fn forgiven(length: usize) -> usize {
    match length {
        0..4 => 0,
        4..8 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted() {
        for (one, other, most, expected) in [
            ("refund", "refund", 1, Some(0)),
            ("refnud", "refund", 1, Some(1)),
            ("refud", "refund", 1, Some(1)),
            ("refundd", "refund", 1, Some(1)),
            ("rafund", "refund", 1, Some(1)),
            ("rafnud", "refund", 1, None),
            ("rafnud", "refund", 2, Some(2)),
            ("", "ab", 1, None),
            ("", "", 0, Some(0)),
            ("süß", "suß", 1, Some(1)),
        ] {
            let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
            assert_eq!(errors(&one, &other, most), expected, "{one:?} {other:?}");
            assert_eq!(errors(&other, &one, most), expected, "{other:?} {one:?}");
        }
        assert_eq!([3, 4, 8].map(forgiven), [0, 1, 2]);
    }
}
