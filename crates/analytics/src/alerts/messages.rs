//! What messages say of a rule and its value: "4xx share is 24.3 %, limit 2 %".

use super::rule::Rule;
use crate::query::{Length, Metric};
use crate::reports::render::number;

/// A metric as people read it: `latency_p95` is "Latency p95".
pub fn title(metric: &str) -> String {
    let known = match metric {
        "errors_4xx" => "4xx answers",
        "errors_5xx" => "5xx answers",
        "share_4xx" => "4xx share",
        "share_5xx" => "5xx share",
        "share_refused" => "Refused share",
        "unique_callers" => "Callers",
        _ => {
            let words = metric.replace('_', " ");
            let mut letters = words.chars();
            let first = letters.next().map(|it| it.to_ascii_uppercase());
            return first.into_iter().chain(letters).collect();
        }
    };
    known.to_owned()
}

/// A value of a metric with its unit.
pub fn amount(metric: &str, value: f64) -> String {
    number(value, Metric::of(metric).map_or("", Metric::unit))
}

/// A length of time: 120 seconds are "2m".
pub fn length(length: &Length) -> String {
    let seconds: u64 = match length {
        Length::Seconds(seconds) => *seconds,
        Length::Text(text) => match text.parse() {
            Ok(seconds) => seconds,
            Err(_) => return text.clone(),
        },
    };
    let units = [(604_800, "w"), (86_400, "d"), (3_600, "h"), (60, "m")];
    let unit = units
        .into_iter()
        .find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (unit, character) = unit.unwrap_or((1, "s"));
    format!("{}{character}", seconds / unit)
}

impl Rule {
    /// What a value of the rule is, and the threshold.
    pub fn sentence(&self, value: Option<f64>) -> String {
        let title = title(&self.metric);
        // Only the value of a metric itself has the metric's unit.
        let is_factor = self.over.is_some() || self.compare.is_some() || self.burn_rate.is_some();
        let shown = |value: f64| match is_factor {
            true => number(value, ""),
            false => amount(&self.metric, value),
        };
        let (is, limit) = (value.map(shown), shown(self.threshold));
        let is = is.unwrap_or_else(|| "not known".to_owned());
        let finding = if let Some(over) = &self.over {
            format!("{title} / {} is {is}", self::title(over))
        } else if let Some(before) = &self.compare {
            format!("{title} is {is} times that of {} earlier", length(before))
        } else if self.burn_rate.is_some() {
            format!("{title} uses up its error budget {is} times as fast as allowed")
        } else {
            format!("{title} is {is}")
        };
        format!("{finding}, limit {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn values_are_written_in_units_that_people_use() {
        let cases: [(Value, Option<f64>, &str); 7] = [
            (
                json!({ "metric": "share_4xx", "threshold": 0.02 }),
                Some(0.243_304),
                "4xx share is 24.33 %, limit 2 %",
            ),
            (
                json!({ "metric": "latency_p95", "threshold": 250_000 }),
                Some(1_500_000.0),
                "Latency p95 is 1.5 s, limit 250 ms",
            ),
            (
                json!({ "metric": "calls", "operator": "<", "threshold": 1000 }),
                Some(0.0),
                "Calls is 0, limit 1,000",
            ),
            (
                json!({ "metric": "calls", "threshold": 1 }),
                None,
                "Calls is not known, limit 1",
            ),
            (
                json!({ "metric": "share_4xx", "threshold": 2, "compare": "1w" }),
                Some(24.3304),
                "4xx share is 24.33 times that of 1w earlier, limit 2",
            ),
            (
                json!({ "metric": "bytes_out", "over": "calls", "threshold": 100 }),
                Some(250.0),
                "Bytes out / Calls is 250, limit 100",
            ),
            (
                json!({ "metric": "share_5xx", "threshold": 10, "burn_rate": { "objective": 0.999, "short": "5m" } }),
                Some(14.4),
                "5xx share uses up its error budget 14.4 times as fast as allowed, limit 10",
            ),
        ];
        for (mut rule, value, message) in cases {
            let default = json!({ "name": "r", "operator": ">", "period": "10m" });
            for (name, value) in default.as_object().expect("an object") {
                rule.as_object_mut()
                    .expect("an object")
                    .entry(name)
                    .or_insert(value.clone());
            }
            let rule: Rule = serde_json::from_value(rule).expect("a rule");
            assert_eq!(rule.sentence(value), message);
        }
    }

    #[test]
    fn lengths_have_a_unit() {
        for (seconds, text) in [
            (0, "0s"),
            (90, "90s"),
            (120, "2m"),
            (7_200, "2h"),
            (86_400, "1d"),
            (604_800, "1w"),
        ] {
            assert_eq!(length(&Length::Seconds(seconds)), text);
        }
        for (text, shown) in [("1w", "1w"), ("300", "5m")] {
            assert_eq!(length(&Length::Text(text.to_owned())), shown);
        }
    }
}
