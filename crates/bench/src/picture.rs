//! Charts as PNG, with the font that the program brings along, so that they look the same everywhere.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::chart::FONT;

/// DejaVu Sans, Latin letters only.
const FONT_DATA: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");
/// Pixels for one unit of a chart.
const SCALE: f32 = 2.0;

/// Writes a chart as a PNG file.
///
/// # Errors
/// The chart is not SVG, or the file cannot be written.
pub fn write(svg: &str, file: &Path) -> Result<()> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT_DATA.to_vec());
    fonts.set_sans_serif_family(FONT);
    let options = Options {
        font_family: FONT.to_owned(),
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).context("reading a chart")?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE) as u32, (size.height() * SCALE) as u32);
    let mut pixels = Pixmap::new(width, height).context("a chart without size")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    let png = pixels.encode_png().context("writing a picture")?;
    fs::write(file, png).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Bar, bars};

    #[test]
    fn a_chart_becomes_a_picture_with_letters() {
        let directory = tempfile::tempdir().unwrap();
        let draw = |name: &str| {
            let bar = Bar {
                name: name.to_owned(),
                value: Some((8.0, 7.5, 9.0)),
                note: "8.0 µs".to_owned(),
            };
            let file = directory.path().join("chart.png");
            write(&bars("CPU", &[bar]), &file).unwrap();
            fs::read(file).unwrap()
        };
        let (weir, other) = (draw("weir"), draw("other"));
        assert!(weir.starts_with(b"\x89PNG"));
        assert_ne!(weir, other, "the names are drawn");
    }
}
