//! Line charts as SVG, and their comparison with what the repository holds.

use std::fmt::Write;
use std::path::PathBuf;

const WIDTH: f64 = 720.0;
const PANEL: f64 = 180.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const COLORS: [&str; 4] = ["#2563eb", "#d97706", "#059669", "#7c3aed"];

/// One line: what it shows, and its points.
pub struct Line {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common range.
pub struct Panel {
    pub title: &'static str,
    pub lines: Vec<Line>,
}

/// Panels above each other, with the same horizontal axis.
pub struct Chart {
    pub title: &'static str,
    pub axis: &'static str,
    pub panels: Vec<Panel>,
}

impl Chart {
    /// Compares the chart with the picture of this name in `docs/images`, or writes it.
    pub fn check(&self, name: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/images")
            .join(name)
            .with_extension("svg");
        let drawn = self.draw();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &drawn).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == drawn,
            "docs/images/{name}.svg is out of date: run `UPDATE_GOLDEN=1 cargo test -p weir-flow --test simulations`"
        );
    }

    fn draw(&self) -> String {
        let height = 44.0 + self.panels.len() as f64 * (PANEL + 46.0) + 14.0;
        let points = || {
            self.panels
                .iter()
                .flat_map(|it| &it.lines)
                .flat_map(|it| &it.points)
        };
        let end = points().fold(0.0_f64, |end, point| end.max(point.0));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" fill=\"#111827\">{}</text>\n",
            self.title
        );
        for (place, panel) in self.panels.iter().enumerate() {
            let top = 54.0 + place as f64 * (PANEL + 46.0);
            panel.draw(top, end, &mut svg);
        }
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" fill=\"#6b7280\" text-anchor=\"end\">{}</text>\n</svg>",
            WIDTH - RIGHT,
            height - 6.0,
            self.axis
        )
        .unwrap();
        svg
    }
}

impl Panel {
    fn draw(&self, top: f64, end: f64, svg: &mut String) {
        let highest = self.lines.iter().flat_map(|it| &it.points);
        let highest = nice(highest.fold(0.0_f64, |most, point| most.max(point.1)));
        let bottom = top + PANEL;
        let x = |value: f64| LEFT + value / end * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| bottom - value / highest * PANEL;
        for tick in 0..=4 {
            let value = highest * f64::from(tick) / 4.0;
            writeln!(
                svg,
                "<path d=\"M{LEFT} {:.1}H{:.1}\" stroke=\"#e5e7eb\"/>\
                 <text x=\"{}\" y=\"{:.1}\" fill=\"#6b7280\" text-anchor=\"end\">{}</text>",
                y(value),
                WIDTH - RIGHT,
                LEFT - 6.0,
                y(value) + 4.0,
                short(value)
            )
            .unwrap();
            let value = end * f64::from(tick) / 4.0;
            writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#6b7280\" text-anchor=\"middle\">{}</text>",
                x(value),
                bottom + 16.0,
                short(value)
            )
            .unwrap();
        }
        let mut legend = LEFT;
        writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\" fill=\"#111827\">{}</text>",
            top - 8.0,
            self.title
        )
        .unwrap();
        legend += 7.0 * self.title.len() as f64 + 12.0;
        for (line, color) in self.lines.iter().zip(COLORS.iter().cycle()) {
            let mut path = String::new();
            for (place, (time, value)) in line.points.iter().enumerate() {
                let word = if place == 0 { 'M' } else { 'L' };
                write!(path, "{word}{:.1} {:.1}", x(*time), y(*value)).unwrap();
            }
            writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>\
                 <text x=\"{legend:.1}\" y=\"{:.1}\" fill=\"{color}\">{}</text>",
                top - 8.0,
                line.name
            )
            .unwrap();
            legend += 7.0 * line.name.len() as f64 + 16.0;
        }
    }
}

/// The next of 1, 2, 4, 5 and their tenfold.
fn nice(value: f64) -> f64 {
    let mut unit = 0.001;
    loop {
        for step in [1.0, 2.0, 4.0, 5.0] {
            if step * unit >= value {
                return step * unit;
            }
        }
        unit *= 10.0;
    }
}

fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
