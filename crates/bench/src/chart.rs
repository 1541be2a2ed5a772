//! Charts as SVG, in the shapes of the published comparisons: bars, and lines over percentiles or rates.

use std::fmt::Write;

/// The font of every chart: the one that `picture.rs` brings along.
pub const FONT: &str = "DejaVu Sans";
const WIDTH: f64 = 860.0;
/// Weir's own bars and lines are blue, whatever other ones the chart has.
const BLUES: [&str; 3] = ["#1668b8", "#3a9bdc", "#0b3c6f"];
const OTHERS: [&str; 8] = [
    "#7a7a7a", "#c8551b", "#2f8f4e", "#8a4fb0", "#b8860b", "#b02a4c", "#3f7f7f", "#444444",
];

/// One bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Whose it is.
    pub name: String,
    /// Median, smallest and largest; none if there is no figure.
    pub value: Option<(f64, f64, f64)>,
    /// The text next to it: the figure, or the reason why there is none.
    pub note: String,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Series {
    /// Whose it is.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// The frame of a chart of lines.
#[derive(Debug, Clone)]
pub struct Axes {
    /// Above the chart.
    pub title: String,
    /// Below it.
    pub x: String,
    /// Beside it.
    pub y: String,
    /// The labels of the horizontal axis.
    pub ticks: Vec<(f64, String)>,
    /// The vertical axis is logarithmic.
    pub logarithmic: bool,
}

/// Horizontal bars, from zero, with a line from the smallest to the largest round.
pub fn bars(title: &str, bars: &[Bar]) -> String {
    const LEFT: f64 = 170.0;
    const ROW: f64 = 30.0;
    const TOP: f64 = 46.0;
    let room = WIDTH - LEFT - 240.0;
    let largest = bars
        .iter()
        .filter_map(|bar| bar.value)
        .map(|(_, _, max)| max)
        .fold(0.0, f64::max);
    let height = TOP + ROW * bars.len() as f64 + 14.0;
    let mut svg = open(height);
    text(&mut svg, (16.0, 26.0), "start", 16, title);
    let colours = colours(bars.iter().map(|bar| bar.name.as_str()));
    for (at, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        let middle = y + ROW / 2.0 + 4.0;
        text(&mut svg, (LEFT - 10.0, middle), "end", 13, &bar.name);
        let mut end = LEFT;
        if let Some((median, min, max)) = bar.value.filter(|_| largest > 0.0) {
            let x = |value: f64| LEFT + room * value / largest;
            let _ = write!(
                svg,
                r#"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{}"/><line x1="{:.1}" x2="{:.1}" y1="{:.1}" y2="{:.1}" stroke="black"/>"#,
                y + 4.0,
                x(median) - LEFT,
                ROW - 8.0,
                colours[at],
                x(min),
                x(max),
                y + ROW / 2.0,
                y + ROW / 2.0
            );
            end = x(max);
        }
        text(&mut svg, (end + 8.0, middle), "start", 12, &bar.note);
    }
    svg.push_str("</svg>");
    svg
}

/// Lines over a horizontal axis.
pub fn lines(axes: &Axes, series: &[Series]) -> String {
    const LEFT: f64 = 80.0;
    const TOP: f64 = 68.0;
    const DEEP: f64 = 320.0;
    let right = WIDTH - 180.0;
    let points = || series.iter().flat_map(|series| &series.points);
    let xs = axes
        .ticks
        .iter()
        .map(|(x, _)| *x)
        .chain(points().map(|(x, _)| *x));
    let (x_min, x_max) = range(xs);
    let (low, high) = range(points().map(|(_, y)| *y));
    let marks = if axes.logarithmic {
        decades(low, high)
    } else {
        steps(high)
    };
    let (Some(&bottom), Some(&top)) = (marks.first(), marks.last()) else {
        return String::new();
    };
    let scale = |value: f64| {
        if axes.logarithmic {
            value.max(bottom).log10()
        } else {
            value
        }
    };
    let x = |value: f64| LEFT + (right - LEFT) * (value - x_min) / (x_max - x_min).max(f64::EPSILON);
    let y = |value: f64| {
        TOP + DEEP * (1.0 - (scale(value) - scale(bottom)) / (scale(top) - scale(bottom)).max(f64::EPSILON))
    };
    let mut svg = open(TOP + DEEP + 60.0);
    text(&mut svg, (16.0, 26.0), "start", 16, &axes.title);
    for mark in &marks {
        grid(&mut svg, (LEFT, y(*mark)), (right, y(*mark)));
        text(&mut svg, (LEFT - 8.0, y(*mark) + 4.0), "end", 12, &number(*mark));
    }
    for (at, label) in &axes.ticks {
        grid(&mut svg, (x(*at), TOP), (x(*at), TOP + DEEP));
        text(&mut svg, (x(*at), TOP + DEEP + 18.0), "middle", 12, label);
    }
    text(
        &mut svg,
        (f64::midpoint(LEFT, right), TOP + DEEP + 44.0),
        "middle",
        12,
        &axes.x,
    );
    text(&mut svg, (16.0, TOP - 20.0), "start", 12, &axes.y);
    let colours = colours(series.iter().map(|series| series.name.as_str()));
    for (at, series) in series.iter().enumerate() {
        let path: Vec<String> = series
            .points
            .iter()
            .map(|(px, py)| format!("{:.1},{:.1}", x(*px), y(*py)))
            .collect();
        let _ = write!(
            svg,
            r#"<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>"#,
            path.join(" "),
            colours[at]
        );
        let row = TOP + 8.0 + 20.0 * at as f64;
        let _ = write!(
            svg,
            r#"<rect x="{}" y="{}" width="14" height="4" fill="{}"/>"#,
            right + 14.0,
            row,
            colours[at]
        );
        text(&mut svg, (right + 34.0, row + 6.0), "start", 12, &series.name);
    }
    svg.push_str("</svg>");
    svg
}

/// The beginning of a chart of this height.
pub fn open(height: f64) -> String {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="{FONT}, sans-serif"><rect width="100%" height="100%" fill="white"/>"#
    )
}

/// Words at a place.
pub fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, words: &str) {
    let words = escape(words);
    let _ = write!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}">{words}</text>"#
    );
}

/// A thin line.
pub fn grid(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = write!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#dddddd\"/>"
    );
}

/// A colour for each name.
pub fn colours<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'static str> {
    let (mut blues, mut others) = (BLUES.iter().cycle(), OTHERS.iter().cycle());
    let colour = |name: &str| {
        let mine = if name.starts_with("weir") {
            blues.next()
        } else {
            others.next()
        };
        mine.copied().unwrap_or("black")
    };
    names.map(colour).collect()
}

/// Text as it stands in SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
        (min.min(value), max.max(value))
    })
}

/// The powers of ten around the values.
fn decades(low: f64, high: f64) -> Vec<f64> {
    if !(low.is_finite() && high.is_finite() && high > 0.0) {
        return Vec::new();
    }
    let first = low.max(1e-3).log10().floor() as i32;
    let last = (high.log10().ceil() as i32).max(first + 1);
    (first..=last).map(|power| 10f64.powi(power)).collect()
}

/// About five round numbers from zero to above the highest value.
fn steps(high: f64) -> Vec<f64> {
    if !(high.is_finite() && high > 0.0) {
        return Vec::new();
    }
    let rough = high / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= rough)
        .unwrap_or(10.0);
    let step = factor * power;
    let count = (high / step).ceil() as u32;
    (0..=count).map(|number| f64::from(number) * step).collect()
}

/// A number of an axis, without the zeros that say nothing.
pub fn number(value: f64) -> String {
    if value >= 1_000_000.0 {
        format!("{}M", value / 1e6)
    } else if value >= 1_000.0 {
        format!("{}k", value / 1e3)
    } else {
        format!("{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_the_axes() {
        assert_eq!(decades(120.0, 9_000.0), [100.0, 1_000.0, 10_000.0]);
        assert_eq!(decades(5.0, 5.0), [1.0, 10.0]);
        assert!(decades(f64::INFINITY, f64::NEG_INFINITY).is_empty());
        assert_eq!(steps(93.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert!(steps(0.0).is_empty());
    }

    #[test]
    fn charts_hold_what_they_are_given() {
        let bar = |name: &str, value| Bar {
            name: name.to_owned(),
            value,
            note: "a < b".to_owned(),
        };
        let svg = bars(
            "CPU & more",
            &[bar("weir", Some((8.0, 7.5, 9.0))), bar("kong", None)],
        );
        for part in ["CPU &amp; more", "weir", "kong", "a &lt; b", "</svg>"] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        assert_eq!(svg.matches("<rect").count(), 2);
        let axes = Axes {
            title: "latency".to_owned(),
            x: "percentile".to_owned(),
            y: "µs".to_owned(),
            ticks: vec![(0.0, "p50".to_owned()), (1.0, "p90".to_owned())],
            logarithmic: true,
        };
        let series = Series {
            name: "weir".to_owned(),
            points: vec![(0.0, 100.0), (1.0, 1_000.0)],
        };
        assert!(lines(&axes, &[series]).contains("<polyline points=\"80.0,388.0 680.0,68.0\""));
        assert!(lines(&axes, &[]).is_empty());
    }
}
