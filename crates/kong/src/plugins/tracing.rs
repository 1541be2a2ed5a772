//! The common part of the plugins that trace: which headers are read and written, and how spans wait.

use super::logging::Queue;
use super::{UnsupportedOption, typed};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::tracing::Config;
use weir_plugins::tracing::propagation::{Format, Inject};

#[derive(Deserialize)]
struct Options {
    header_type: Option<String>,
    default_header_type: Option<Format>,
    propagation: Propagation,
    queue: Queue,
    http_response_header_for_traceid: Option<String>,
}

#[derive(Deserialize)]
struct Propagation {
    extract: Option<Vec<Format>>,
    inject: Option<Vec<Inject>>,
    clear: Option<Vec<String>>,
    default_format: Format,
}

/// The configuration that both begin with.
///
/// If nothing of `propagation` but the default format is given, the former fields say what is read and written:
/// `preserve` all forms and the caller's own, `ignore` none and the default, a form all and that one besides.
pub fn base(config: &Value) -> Result<Config, UnsupportedOption> {
    let options: Options = typed(config)?;
    let given = options.propagation;
    let is_given = given.extract.is_some() || given.inject.is_some() || given.clear.is_some();
    let all = || Format::READABLE.to_vec();
    let mut base = Config {
        default_format: match is_given {
            true => given.default_format,
            false => options.default_header_type.unwrap_or(given.default_format),
        },
        clear: given.clear.unwrap_or_default(),
        echo_header: options.http_response_header_for_traceid,
        batch: options.queue.batch(),
        host_attribute: None,
        ..Config::default()
    };
    (base.extract, base.inject) = match options.header_type.as_deref() {
        _ if is_given => (
            given.extract.unwrap_or_default(),
            given.inject.unwrap_or_default(),
        ),
        None => (Vec::new(), Vec::new()),
        Some("preserve") => (all(), vec![Inject::Preserve]),
        Some("ignore") => (Vec::new(), vec![Inject::Form(base.default_format)]),
        Some(form) => {
            let form: Format = typed(&form.into())?;
            (all(), vec![Inject::Preserve, Inject::Form(form)])
        }
    };
    Ok(base)
}
