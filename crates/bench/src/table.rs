//! Tables for people on the terminal, and medians with their spread.

/// A table: the first column names the row, the others are numbers; a row may be a reason instead of numbers.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The heads of its columns.
    pub columns: Vec<&'static str>,
    /// Its rows: the name, and its cells or why there are none.
    pub rows: Vec<(String, Result<Vec<String>, String>)>,
    /// What stands below it.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new(title: String, columns: &[&'static str]) -> Self {
        Self {
            title,
            columns: columns.to_vec(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row: its cells, or why there are none.
    pub fn row(&mut self, name: &str, cells: Result<Vec<String>, String>) {
        self.rows.push((name.to_owned(), cells));
    }

    /// Adds a line below the table.
    pub fn footnote(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Every row has numbers.
    pub fn is_complete(&self) -> bool {
        self.rows.iter().all(|(_, cells)| cells.is_ok())
    }

    /// The table as lines of text.
    pub fn to_text(&self) -> String {
        let width = |text: &str| text.chars().count();
        let mut widths: Vec<usize> = self.columns.iter().map(|column| width(column)).collect();
        for (name, cells) in &self.rows {
            widths[0] = widths[0].max(width(name));
            for (index, cell) in cells.iter().flatten().enumerate() {
                widths[index + 1] = widths[index + 1].max(width(cell));
            }
        }
        let line = |cells: &[&str]| {
            let mut text = String::new();
            for (index, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                text.push_str(&if index == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                });
            }
            text.trim_end().to_owned()
        };
        let mut lines = vec![String::new(), self.title.clone(), line(&self.columns)];
        for (name, cells) in &self.rows {
            match cells {
                Ok(cells) => {
                    let cells: Vec<&str> = std::iter::once(name).chain(cells).map(String::as_str).collect();
                    lines.push(line(&cells));
                }
                Err(reason) => {
                    let reason = reason.replace('\n', "\n    ");
                    lines.push(format!("{name:<width$}  {reason}", width = widths[0]));
                }
            }
        }
        lines.extend(self.notes.iter().cloned());
        lines.join("\n")
    }
}

/// Median, smallest and largest of some figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median; of an even number of figures the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// `None` without figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }

    /// As in `11.30 (11.10–11.52)`.
    pub fn text(&self, decimals: usize) -> String {
        format!(
            "{:.decimals$} ({:.decimals$}–{:.decimals$})",
            self.median, self.min, self.max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        let cases = [
            (vec![3.0, 1.0, 2.0], Some((2.0, 1.0, 3.0))),
            (vec![4.0, 1.0, 2.0, 3.0], Some((2.5, 1.0, 4.0))),
            (vec![7.0], Some((7.0, 7.0, 7.0))),
            (vec![], None),
        ];
        for (figures, expected) in cases {
            let spread = Spread::of(figures.clone()).map(|s| (s.median, s.min, s.max));
            assert_eq!(spread, expected, "{figures:?}");
        }
    }

    #[test]
    fn tables() {
        let mut table = Table::new("A1".to_owned(), &["gateway", "calls/s"]);
        table.row("nginx", Ok(vec!["50,000".to_owned()]));
        assert!(table.is_complete());
        table.row("weir-kong", Err("12 errors\nlast line".to_owned()));
        assert!(!table.is_complete());
        let expected = "\nA1\ngateway    calls/s\nnginx       50,000\nweir-kong  12 errors\n    last line";
        assert_eq!(table.to_text(), expected);
    }
}
