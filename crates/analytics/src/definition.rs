//! The definition: which metrics and dimensions there are, and which combinations are kept. For clients that offer
//! choices.

use crate::cube::{Cube, Dimension};
use crate::query::plan::{is_kept, is_kept_by_minute};
use crate::query::{MAX_LIMIT, MAX_POINTS, Metric};
use crate::retention::Retention;
use serde_json::{Value, json};

/// Steps that are offered, by the range in seconds: the boards' ranges.
const RANGES: [(&str, u64); 8] = [
    ("15m", 900),
    ("1h", 3_600),
    ("6h", 21_600),
    ("24h", 86_400),
    ("7d", 604_800),
    ("30d", 2_592_000),
    ("90d", 7_776_000),
    ("12mo", 31_536_000),
];

/// The definition.
pub fn definition(retention: &Retention) -> Value {
    let metrics = Metric::ALL.iter().map(|metric| {
        json!({
            "name": metric.as_str(),
            "unit": metric.unit(),
            "description": metric.help(),
            "cubes": cubes_of(*metric),
        })
    });
    let dimensions = Dimension::ALL.iter().map(|dimension| {
        let cubes = Cube::ALL
            .iter()
            .filter(|cube| cube.position(*dimension).is_some());
        json!({
            "name": dimension.as_str(),
            "description": dimension.help(),
            "cubes": cubes.map(|cube| cube.as_str()).collect::<Vec<_>>(),
        })
    });
    json!({
        "metrics": metrics.collect::<Vec<_>>(),
        "dimensions": dimensions.collect::<Vec<_>>(),
        "cubes": Cube::ALL.iter().map(|cube| cube_of(*cube)).collect::<Vec<_>>(),
        "retention": [
            { "step": 60, "for": retention.minutes },
            { "step": 300, "for": retention.five_minutes },
            { "step": 3_600, "for": retention.hours },
            { "step": 86_400, "for": null },
        ],
        "ranges": RANGES.iter().map(|(name, seconds)| json!({ "name": name, "seconds": seconds })).collect::<Vec<_>>(),
        "limits": { "group_by": 2, "points": MAX_POINTS, "groups": MAX_LIMIT },
    })
}

fn cubes_of(metric: Metric) -> Value {
    if metric == Metric::UniqueCallers {
        return json!([{ "cube": "uniques", "dimensions": ["environment", "service"], "finest_step": 3_600 }]);
    }
    let cubes = Cube::ALL.iter().filter(|cube| is_kept(**cube, metric));
    let one = |cube: &Cube| {
        let finest = if is_kept_by_minute(*cube, metric) {
            60
        } else {
            3_600
        };
        json!({ "cube": cube.as_str(), "finest_step": finest })
    };
    Value::Array(cubes.map(one).collect())
}

fn cube_of(cube: Cube) -> Value {
    let mut dimensions: Vec<&str> = cube.dimensions().iter().map(|it| it.as_str()).collect();
    if !dimensions.contains(&"class") && dimensions.contains(&"status") {
        dimensions.push("class");
    }
    json!({
        "name": cube.as_str(),
        "description": cube.help(),
        "dimensions": dimensions,
        "keys_per_hour": cube.limit(),
        "sampled": cube.is_sampled(),
    })
}
