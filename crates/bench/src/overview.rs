//! One picture of a whole run: for each experiment, the CPU time of a call through each gateway as a part of NGINX's.

use std::fmt::Write;

use crate::chart::{colours, grid, open, text};
use crate::gateway::BAR;
use crate::section::Section;

/// The name of the picture.
pub const FILE: &str = "overview.png";
const TITLE: &str = "CPU per call, NGINX's (plain) = 1; shorter is better";
const LEFT: f64 = 250.0;
const RIGHT: f64 = 800.0;
const TOP: f64 = 62.0;
const ROW: f64 = 16.0;
const GAP: f64 = 20.0;
/// The scale ends here, at the latest: one slow gateway must not flatten all others.
const MOST: f64 = 8.0;

/// The ratios of one experiment: its name, and each gateway's.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The experiment.
    pub name: String,
    /// Gateway and ratio.
    pub ratios: Vec<(String, f64)>,
}

/// The ratios of a run, by experiment. Experiments without any are left out.
pub fn groups(sections: &[Section<'_>]) -> Vec<Group> {
    let group = |section: &Section<'_>| {
        let measured = section.summaries.iter().filter(|it| it.absent.is_none());
        let others = measured.filter(|it| it.gateway != BAR);
        let ratios = others.filter_map(|it| {
            let name = match it.rate {
                Some(rate) => format!("{} at {rate}/s", it.gateway),
                None => it.gateway.clone(),
            };
            Some((name, it.ratio?.median))
        });
        Group {
            name: format!("{} · {}", section.experiment, section.experiment.title),
            ratios: ratios.collect(),
        }
    };
    let groups = sections.iter().map(group);
    groups.filter(|group| !group.ratios.is_empty()).collect()
}

/// The picture; empty if there is nothing to show.
pub fn draw(groups: &[Group]) -> String {
    let rows: usize = groups.iter().map(|group| group.ratios.len() + 1).sum();
    if rows == 0 {
        return String::new();
    }
    let bottom = TOP + ROW * rows as f64 + GAP * groups.len() as f64;
    let ratios = groups.iter().flat_map(|group| &group.ratios);
    let largest = ratios.clone().map(|(_, ratio)| *ratio).fold(1.0, f64::max);
    let end = largest.min(MOST) * 1.05;
    let x = |ratio: f64| LEFT + (RIGHT - LEFT) * ratio.min(end) / end;
    let mut svg = open(bottom + 10.0);
    text(&mut svg, (16.0, 26.0), "start", 16, TITLE);
    for mark in (0..=end as u32).map(f64::from) {
        grid(&mut svg, (x(mark), TOP - 6.0), (x(mark), bottom));
        text(&mut svg, (x(mark), TOP - 12.0), "middle", 12, &format!("{mark}"));
    }
    // A gateway has one colour in all experiments.
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in ratios {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let palette = colours(names.iter().copied());
    let mut y = TOP;
    for group in groups {
        y += GAP;
        text(&mut svg, (16.0, y + 12.0), "start", 13, &group.name);
        y += ROW;
        for (name, ratio) in &group.ratios {
            let colour = names
                .iter()
                .position(|known| known == name)
                .map_or("black", |at| palette[at]);
            text(&mut svg, (LEFT - 10.0, y + 12.0), "end", 12, name);
            let _ = write!(
                svg,
                r#"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{colour}"/>"#,
                y + 2.0,
                x(*ratio) - LEFT,
                ROW - 4.0,
            );
            text(
                &mut svg,
                (x(*ratio) + 6.0, y + 12.0),
                "start",
                12,
                &format!("{ratio:.2}"),
            );
            y += ROW;
        }
    }
    let _ = write!(
        svg,
        r#"<line x1="{0:.1}" x2="{0:.1}" y1="{1:.1}" y2="{bottom:.1}" stroke="black" stroke-dasharray="4 3"/>"#,
        x(1.0),
        TOP - 6.0,
    );
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_gateways_of_all_experiments_are_in_one_picture() {
        let group = |name: &str, ratios: &[(&str, f64)]| Group {
            name: name.to_owned(),
            ratios: ratios
                .iter()
                .map(|(name, ratio)| ((*name).to_owned(), *ratio))
                .collect(),
        };
        let svg = draw(&[
            group("A1 · one route", &[("weir-kong", 0.87), ("kong", 2.1)]),
            group("A2 · a rate limit", &[("weir-kong", 0.89), ("kong", 60.0)]),
        ]);
        for part in [
            "A1 · one route",
            "A2 · a rate limit",
            "0.87",
            "2.10",
            "60.00",
            "NGINX",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        // The background and a bar each; a gateway has the same colour twice.
        assert_eq!(svg.matches("<rect").count(), 1 + 4);
        assert_eq!(svg.matches("#1668b8").count(), 2);
        assert!(draw(&[]).is_empty());
    }
}
