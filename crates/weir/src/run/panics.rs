//! What a panic of the program does: it is logged. On a worker's thread the runtime then ends one call or one
//! connection; on any other thread the process ends.

use std::panic::PanicHookInfo;
use weir_proxy::panics::WORKER_THREADS;

/// How the messages of the standard library's own checks begin. They hold numbers, and nothing of a call.
const HARMLESS: [&str; 5] = [
    "index out of bounds",
    "range ",
    "slice index",
    "already ",
    "RefCell already",
];
const WITHHELD: &str = "(the message may hold data of a call and is not shown)";

/// Logs panics from now on. Without a backtrace: making one takes long, and its call waits.
pub fn install_hook() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        let (place, message) = (place(info), message(info));
        if name.starts_with(WORKER_THREADS) {
            tracing::error!(
                thread = name,
                "panicked at {place}: {message}; only this call or connection ends; please report this bug"
            );
        } else {
            tracing::error!(
                thread = name,
                "panicked at {place}: {message}; the process ends; please report this bug"
            );
            std::process::abort();
        }
    }));
}

fn place(info: &PanicHookInfo<'_>) -> String {
    info.location().map(ToString::to_string).unwrap_or_default()
}

/// The part of a panic's message that may be logged: one that is fixed in the source, or is known to hold no data.
fn message<'i>(info: &'i PanicHookInfo<'_>) -> &'i str {
    let payload = info.payload();
    if let Some(fixed) = payload.downcast_ref::<&'static str>() {
        return fixed;
    }
    let made = payload.downcast_ref::<String>().map_or("", String::as_str);
    let is_harmless = HARMLESS.iter().any(|start| made.starts_with(start));
    if is_harmless { made } else { WITHHELD }
}

#[cfg(test)]
mod tests {
    use super::{WITHHELD, message, place};
    use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
    use std::sync::{Arc, Mutex};

    #[test]
    fn panic_messages_hold_no_data_of_calls() {
        let (none, secret): (Vec<u8>, _) = (Vec::new(), "sécret".to_owned());
        let panics: [(&dyn Fn(), &str); 4] = [
            (&|| panic!("fixed"), "fixed"),
            (
                &|| assert!(none[7] > 0),
                "index out of bounds: the len is 0 but the index is 7",
            ),
            (&|| assert!(secret[..2].is_empty()), WITHHELD),
            (&|| panic!("{secret}"), WITHHELD),
        ];
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, own) = (Arc::clone(&seen), std::thread::current().id());
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if std::thread::current().id() == own {
                noted
                    .lock()
                    .unwrap()
                    .push((place(info), message(info).to_owned()));
            }
        }));
        for (panics, _) in panics {
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        }
        set_hook(usual);
        let seen = seen.lock().unwrap();
        for ((place, message), (_, expected)) in seen.iter().zip(panics) {
            assert_eq!(message, expected);
            assert!(place.contains("panics.rs:"), "{place}");
        }
        assert_eq!(seen.len(), panics.len());
    }
}
