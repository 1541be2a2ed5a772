//! The settings of route tables, one for each dialect. The tables themselves are made elsewhere.

use crate::settings::{Charset, DialectSettings, RealIp};
use weir_model::{Diagnostic, DialectName, DocPath, Model};
use weir_plugin::headers;

/// The settings of every dialect.
pub(super) fn compile(
    model: &Model,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<(DialectName, DialectSettings)> {
    let mut settings: Vec<(DialectName, DialectSettings)> = Vec::with_capacity(model.dialect_settings.len());
    for (index, table) in model.dialect_settings.iter().enumerate() {
        let place = || DocPath::root().field("dialect_settings").index(index);
        if settings.iter().any(|(known, _)| *known == table.dialect) {
            let message = format!("expected one entry for the dialect '{}'", table.dialect.as_str());
            diagnostics.push(Diagnostic::error(place().field("dialect"), message));
        }
        if let Some(real_ip) = &table.real_ip
            && !headers::is_name(real_ip.header.as_bytes())
        {
            let message = format!(
                "expected a header name, found '{}'",
                real_ip.header.escape_debug()
            );
            let place = place().field("real_ip").field("header");
            diagnostics.push(Diagnostic::error(place, message));
        }
        if let Some(charset) = &table.charset
            && !headers::is_name(charset.name.as_bytes())
        {
            let message = format!(
                "expected a charset's name, found '{}'",
                charset.name.escape_debug()
            );
            let place = place().field("charset").field("name");
            diagnostics.push(Diagnostic::error(place, message));
        }
        let compiled = DialectSettings {
            real_ip: table.real_ip.as_ref().map(|real_ip| RealIp {
                header: real_ip.header.as_bytes().to_vec(),
                trusted: real_ip.trusted.clone(),
            }),
            trusts_real_ip_peers: table.trusts_real_ip_peers,
            forwarded_from: table.forwarded_from.clone(),
            answer_expect: table.answer_expect,
            plain_header_names: table.plain_header_names,
            strips_path_parameters: table.strips_path_parameters,
            drops_tail_slash: table.drops_tail_slash,
            keeps_escaped_slashes: table.keeps_escaped_slashes,
            graphql_max_bytes: table.graphql_max_bytes,
            charset: table.charset.as_ref().map(|charset| Charset {
                parameter: format!("; charset={}", charset.name).into_bytes(),
                media_types: charset
                    .media_types
                    .iter()
                    .map(|it| it.to_ascii_lowercase().into_bytes())
                    .collect(),
            }),
        };
        settings.push((table.dialect, compiled));
    }
    settings
}
