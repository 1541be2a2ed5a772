//! Draws charts as pictures for mails: lines, areas on top of each other, and bars. Pictures have no texts, as a mail's
//! HTML has them next to the picture: so no font is needed.

use super::png;

/// The size in pixels. Mails show it at half of this, so that it is sharp on fine screens.
pub const WIDTH: u32 = 1_120;
/// The height in pixels.
pub const HEIGHT: u32 = 320;
/// Series that have a colour of their own.
pub const MAX_SERIES: usize = COLOURS.len();

const WHITE: u8 = 0;
const GRID: u8 = 1;
const AXIS: u8 = 2;
/// Places of the palette from here on: colours of series, then the same, light.
const FIRST: u8 = 3;
/// Colours that everybody can distinguish, also those who do not see all colours (Okabe and Ito).
pub const COLOURS: [[u8; 3]; 8] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
    [0x8b, 0x8b, 0x00],
    [0x6b, 0x72, 0x80],
];
/// Half the width of a line, in pixels.
const PEN: i64 = 2;

/// How values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line for each series.
    Lines,
    /// An area for each, on top of each other.
    Areas,
    /// A bar for each value of the first series.
    Bars,
}

/// A picture and what its axis means.
pub struct ChartImage {
    /// The PNG.
    pub png: Vec<u8>,
    /// The value at its upper edge. The lower one is 0.
    pub top: f64,
}

/// Draws series of the same length; `None` is a value that there is not.
pub fn draw(form: Form, series: &[Vec<Option<f64>>]) -> ChartImage {
    let series = &series[..series.len().min(MAX_SERIES)];
    let stacked = match form {
        Form::Areas => stack(series),
        Form::Lines | Form::Bars => series.to_vec(),
    };
    let largest = stacked.iter().flatten().flatten().copied().fold(0.0, f64::max);
    let top = nice(largest);
    let mut canvas = Canvas::new();
    canvas.grid();
    match form {
        Form::Lines => {
            for (place, values) in stacked.iter().enumerate() {
                canvas.line(values, top, FIRST + place as u8);
            }
        }
        Form::Areas => {
            // From the highest to the lowest: each covers what is below it.
            for (place, values) in stacked.iter().enumerate().rev() {
                canvas.area(values, top, FIRST + (MAX_SERIES + place) as u8);
                canvas.line(values, top, FIRST + place as u8);
            }
        }
        Form::Bars => {
            if let Some(values) = stacked.first() {
                canvas.bars(values, top);
            }
        }
    }
    canvas.axis();
    ChartImage {
        png: png::write(WIDTH, &canvas.pixels, &palette()),
        top,
    }
}

/// Sums from the first series on. A value that there is not counts as 0.
fn stack(series: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let mut below: Vec<f64> = Vec::new();
    let mut stacked = Vec::new();
    for values in series {
        below.resize(below.len().max(values.len()), 0.0);
        let sums = values.iter().zip(&mut below).map(|(value, sum)| {
            *sum += value.unwrap_or(0.0);
            Some(*sum)
        });
        stacked.push(sums.collect());
    }
    stacked
}

/// The next number from here on that is short to write: 1, 2, 2.5 or 5 times a power of ten.
pub fn nice(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * power);
    // What is a hair above a step is that step: logarithms are not exact.
    let fits = |step: &f64| *step * (1.0 + 1e-9) >= value;
    steps.into_iter().find(fits).unwrap_or(10.0 * power)
}

fn palette() -> Vec<[u8; 3]> {
    let light = |colour: [u8; 3]| colour.map(|it| 255 - (255 - it) / 3);
    let mut palette = vec![[0xff; 3], [0xe5, 0xe7, 0xeb], [0x6b, 0x72, 0x80]];
    palette.extend(COLOURS);
    palette.extend(COLOURS.map(light));
    palette
}

struct Canvas {
    pixels: Vec<u8>,
}

impl Canvas {
    fn new() -> Self {
        Self {
            pixels: vec![WHITE; (WIDTH * HEIGHT) as usize],
        }
    }

    fn set(&mut self, x: i64, y: i64, colour: u8) {
        let (width, height) = (i64::from(WIDTH), i64::from(HEIGHT));
        if (0..width).contains(&x) && (0..height).contains(&y) {
            self.pixels[(y * width + x) as usize] = colour;
        }
    }

    fn fill(&mut self, (left, right): (i64, i64), (upper, lower): (i64, i64), colour: u8) {
        for y in upper..lower {
            for x in left..right {
                self.set(x, y, colour);
            }
        }
    }

    /// Four lines at equal distances.
    fn grid(&mut self) {
        for quarter in 0..4 {
            let y = quarter * i64::from(HEIGHT) / 4;
            self.fill((0, i64::from(WIDTH)), (y, y + 2), GRID);
        }
    }

    fn axis(&mut self) {
        let (width, height) = (i64::from(WIDTH), i64::from(HEIGHT));
        self.fill((0, width), (height - 2, height), AXIS);
        self.fill((0, 2), (0, height), AXIS);
    }

    /// The position of a value: in the middle of its share of the width, and as high as it is large.
    fn place(index: usize, count: usize, value: f64, top: f64) -> (i64, i64) {
        let x = (index as f64 + 0.5) * f64::from(WIDTH) / count.max(1) as f64;
        let y = f64::from(HEIGHT) - 1.0 - (value / top).clamp(0.0, 1.0) * f64::from(HEIGHT - 4);
        (x as i64, y as i64)
    }

    fn line(&mut self, values: &[Option<f64>], top: f64, colour: u8) {
        let mut before: Option<(i64, i64)> = None;
        for (index, value) in values.iter().enumerate() {
            let Some(value) = value else {
                before = None;
                continue;
            };
            let (x, y) = Self::place(index, values.len(), *value, top);
            let (from_x, from_y) = before.unwrap_or((x, y));
            let steps = (x - from_x).abs().max((y - from_y).abs()).max(1);
            for step in 0..=steps {
                let (at_x, at_y) = (
                    from_x + (x - from_x) * step / steps,
                    from_y + (y - from_y) * step / steps,
                );
                self.fill((at_x - PEN, at_x + PEN), (at_y - PEN, at_y + PEN), colour);
            }
            before = Some((x, y));
        }
    }

    fn area(&mut self, values: &[Option<f64>], top: f64, colour: u8) {
        let places: Vec<(i64, i64)> = values
            .iter()
            .enumerate()
            .map(|(index, value)| Self::place(index, values.len(), value.unwrap_or(0.0), top))
            .collect();
        for pair in places.windows(2) {
            let ((from_x, from_y), (to_x, to_y)) = (pair[0], pair[1]);
            for x in from_x..to_x {
                let y = from_y + (to_y - from_y) * (x - from_x) / (to_x - from_x).max(1);
                self.fill((x, x + 1), (y, i64::from(HEIGHT)), colour);
            }
        }
    }

    fn bars(&mut self, values: &[Option<f64>], top: f64) {
        let share = i64::from(WIDTH) / values.len().max(1) as i64;
        for (index, value) in values.iter().enumerate() {
            let (x, y) = Self::place(index, values.len(), value.unwrap_or(0.0), top);
            let half = (share * 3 / 8).max(1);
            let colour = FIRST + (index % MAX_SERIES) as u8;
            self.fill((x - half, x + half), (y, i64::from(HEIGHT)), colour);
        }
    }
}
