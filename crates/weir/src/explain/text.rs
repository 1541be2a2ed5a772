//! An explanation as people read it, in lines. What is explained is found elsewhere.

use std::fmt::Write as _;
use weir_control::explain::{Explanation, Instance, PluginStep, VerdictKind};

/// Near misses that are shown at most.
const MAX_OTHERS: usize = 10;

/// The explanation in lines of text.
pub(super) fn render(explanation: &Explanation) -> String {
    let mut out = String::new();
    // Writing into a text cannot fail.
    let _ = write_all(explanation, &mut out);
    out
}

fn write_all(explanation: &Explanation, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{} from {}", explanation.call, explanation.client)?;
    match &explanation.route {
        Some(route) => {
            writeln!(
                out,
                "\nRoute {} ({}){}",
                route.name,
                route.dialect.as_str(),
                at(&route.at)
            )?;
            writeln!(out, "  takes it by {}", route.by)?;
            if explanation.answer.is_none() {
                writeln!(out, "  and sends it to {}", route.to)?;
            }
        }
        None => writeln!(out, "\nNo route")?,
    }
    if let Some(answer) = &explanation.answer {
        let dialect = answer.dialect.as_str();
        writeln!(
            out,
            "  The gateway answers {} in the {dialect} dialect: {}",
            answer.status, answer.reason
        )?;
    }
    write_others(explanation, out)?;
    write_plugins(explanation, out)
}

fn write_others(explanation: &Explanation, out: &mut String) -> std::fmt::Result {
    if explanation.others.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot these")?;
    for other in explanation.others.iter().take(MAX_OTHERS) {
        writeln!(out, "  {} ({}){}", other.name, other.by, at(&other.at))?;
        writeln!(out, "    {}", other.reason.join(", "))?;
    }
    if explanation.others.len() > MAX_OTHERS {
        writeln!(out, "  … and {} more", explanation.others.len() - MAX_OTHERS)?;
    }
    Ok(())
}

fn write_plugins(explanation: &Explanation, out: &mut String) -> std::fmt::Result {
    if explanation.plugins.is_empty() {
        return writeln!(out, "\nNo plugins");
    }
    writeln!(out, "\nPlugins")?;
    for (index, step) in explanation.plugins.iter().enumerate() {
        write_step(index + 1, step, out)?;
    }
    if !explanation.response_order.is_empty() {
        let names: Vec<String> = explanation
            .response_order
            .iter()
            .map(|number| {
                let plugin = explanation
                    .plugins
                    .get(number - 1)
                    .and_then(|step| step.plugin.as_ref());
                match plugin {
                    Some(plugin) => format!("{number} {}", plugin.name),
                    None => number.to_string(),
                }
            })
            .collect();
        writeln!(out, "  On the response: {}", names.join(", "))?;
    }
    Ok(())
}

fn write_step(number: usize, step: &PluginStep, out: &mut String) -> std::fmt::Result {
    let suffix = if step.response_only {
        ", on the response only"
    } else {
        ""
    };
    match &step.plugin {
        Some(plugin) => writeln!(out, "  {number}. {}{suffix}", described(plugin))?,
        None => writeln!(out, "  {number}. nothing{suffix}")?,
    }
    let verdict = &step.verdict;
    let reason = verdict.reason.as_deref().unwrap_or_default();
    match (verdict.verdict, verdict.status) {
        (VerdictKind::Refuses, Some(status)) => {
            writeln!(out, "       refuses this call with {status}: {reason}")?
        }
        (VerdictKind::Answers, Some(status)) => writeln!(out, "       answers this call with {status}")?,
        (VerdictKind::DoesNotApply, _) => writeln!(out, "       not for this call: {reason}")?,
        (VerdictKind::Unknown, _) => writeln!(out, "       depends on the call: {reason}")?,
        _ => {}
    }
    for exception in &step.exceptions {
        let plugin = exception
            .plugin
            .as_ref()
            .map_or_else(|| "nothing".to_owned(), described);
        writeln!(out, "       for consumer {}: {plugin}", exception.consumer)?;
    }
    if step.exceptions_not_shown > 0 {
        writeln!(
            out,
            "       … and for {} more consumers",
            step.exceptions_not_shown
        )?;
    }
    Ok(())
}

fn described(instance: &Instance) -> String {
    let mut text = instance.name.clone();
    if let Some(id) = &instance.id {
        let shared = if instance.is_shared { "shared " } else { "" };
        text.push_str(&format!(" ({shared}'{id}')"));
    }
    if let Some(when) = &instance.when {
        text.push_str(&format!(" when {when}"));
    }
    text.push_str(&at(&instance.at));
    if let Some(name) = &instance.placeholder_for {
        text.push_str(&format!(": {name} there is not served, so calls are refused"));
    }
    text
}

fn at(place: &Option<String>) -> String {
    place
        .as_ref()
        .map_or_else(String::new, |place| format!(", {place}"))
}
