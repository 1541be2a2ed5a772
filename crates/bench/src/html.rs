//! The page of the report: what was measured how, every experiment with its table and charts, the raw rows.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::chart::escape;
use crate::machine::date;
use crate::results::{Line, Round};
use crate::section::Section;
use crate::tables;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}\
td,th{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}\
td:first-child,th:first-child{text-align:left}td.why{text-align:left;white-space:normal;color:#777}\
svg{max-width:100%;height:auto;margin:.6em 0}pre{overflow-x:auto;background:#f5f5f5;padding:.8em;font-size:12px}\
.note{color:#555;font-size:13px;margin:.2em 0}";

const PROCEDURE: &str = "\
<li>The gateway under test runs with one worker on a core of its own; the load generator and the API are on others, or \
share another one on a machine of two cores.</li>\
<li>Before anything is measured the same probe calls get the same answers from every gateway: the API's whole body, 404 \
for an unknown path, 401 for a missing, wrong or expired credential; and with a limit of 5 calls a minute it refuses. The \
plain NGINX, which is the bar, is asked for good calls only.</li>\
<li>Rounds are interleaved (gateway A, gateway B, …, gateway A, …) after a warm-up. Figures are medians of the rounds, with \
the smallest and the largest behind them. Ratios are medians of pairs of the same round.</li>\
<li>CPU per call is user and system time of the gateway's processes, as the kernel accounts it, divided by its good \
answers. It is the figure that stays stable on a shared machine.</li>\
<li>Closed loop: wrk, one thread. Where the gateway's core was idle for more than a tenth of the time something else set \
the pace; calls/s and latency are marked invalid then.</li>\
<li>Constant rate: latency counts from the time at which a call was meant to be sent, so a stall shows in every call that \
it held up. A load generator that was late itself, or whose core was full, makes the latency invalid. <code>weir-bench \
stall</code> proves it against a server that stands still for 1 ms in each second.</li>\
<li>Single calls: each over a new connection, from before the connection is opened to the last byte.</li>";

/// The page. It begins with the picture of all experiments.
pub fn page(overview: &str, sections: &[Section<'_>], lines: &[Line]) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>weir bench</title><style>{STYLE}</style><h1>weir bench</h1>"
    );
    html.push_str(overview);
    machine(&mut html, lines);
    let _ = write!(html, "<h2>Procedure</h2><ul>{PROCEDURE}</ul>");
    html.push_str("<h2>Experiments</h2>");
    for section in sections {
        experiment(&mut html, section);
    }
    by_hand(&mut html);
    html.push_str("<h2>Raw rows</h2><details><summary>results.jsonl</summary><pre>");
    for line in lines {
        let text = serde_json::to_string(line).unwrap_or_default();
        let _ = writeln!(html, "{}", escape(&text));
    }
    html.push_str("</pre></details></html>\n");
    html
}

fn machine(html: &mut String, lines: &[Line]) {
    let rounds: Vec<&Round> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Round(round) => Some(&**round),
            _ => None,
        })
        .collect();
    html.push_str("<h2>Machine</h2>");
    let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else {
        html.push_str("<p>No round was measured.</p>");
        return;
    };
    let conditions = &last.conditions;
    let _ = write!(
        html,
        "<p>{}, {} cores, Linux {}. {}. {} rounds from {} to {} (UTC); load averages {} at the first, {} at the last.</p>",
        escape(&conditions.processor),
        conditions.cores,
        escape(&conditions.kernel),
        escape(&conditions.pinning),
        rounds.len(),
        date(first.time),
        date(last.time),
        escape(&first.load_average),
        escape(&last.load_average),
    );
    let versions: BTreeMap<&str, &str> = rounds
        .iter()
        .map(|round| (round.gateway.as_str(), round.conditions.version.as_str()))
        .collect();
    html.push_str("<table><tr><th>gateway<th>version</tr>");
    for (gateway, version) in versions {
        let _ = write!(html, "<tr><td>{}<td>{}</tr>", escape(gateway), escape(version));
    }
    html.push_str("</table>");
}

fn experiment(html: &mut String, section: &Section<'_>) {
    let table = tables::of(section.experiment, &section.summaries);
    let _ = write!(html, "<h3>{}</h3><table><tr>", escape(&table.title));
    for column in &table.columns {
        let _ = write!(html, "<th>{}", escape(column));
    }
    html.push_str("</tr>");
    for (name, cells) in &table.rows {
        let _ = write!(html, "<tr><td>{}", escape(name));
        match cells {
            Ok(cells) => cells.iter().for_each(|cell| {
                let _ = write!(html, "<td>{}", escape(cell));
            }),
            Err(reason) => {
                let _ = write!(
                    html,
                    "<td class=\"why\" colspan=\"{}\">{}",
                    table.columns.len() - 1,
                    escape(reason)
                );
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    for note in &table.notes {
        let _ = write!(html, "<p class=\"note\">{}</p>", escape(note));
    }
    for (_, svg) in &section.charts {
        html.push_str(svg);
    }
    if let Some(summary) = section.summaries.iter().find(|it| !it.command.is_empty()) {
        let _ = write!(
            html,
            "<p class=\"note\">Its load by hand:</p><pre>{}</pre>",
            escape(&summary.command)
        );
    }
}

fn by_hand(html: &mut String) {
    html.push_str(
        "<h2>By hand</h2><p><code>weir-bench render DIR</code> writes every configuration that is measured here, and a \
         file <code>by-hand.sh</code> for each experiment and gateway: it starts the API and the gateway on fixed ports \
         and cores, and runs the load. CPU time is in <code>/proc/PID/stat</code> (fields 14 and 15, in clock ticks) of \
         the gateway's processes before and after.</p>",
    );
}
