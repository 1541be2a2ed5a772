//! Any text with variables, and any variable, for any call.
#![no_main]

#[path = "../support/call.rs"]
mod call;

use call::Call;
use weir_plugin::{Template, Variable};

libfuzzer_sys::fuzz_target!(|input: (&str, Call)| {
    let (text, call) = input;
    let exchange = call.exchange();
    let template = Template::parse(text);
    let mut rendered = b"before".to_vec();
    let found = template.render(&exchange, &mut rendered);
    assert!(rendered.starts_with(b"before"));
    if template.is_constant() {
        assert_eq!(found, 0);
    }
    let _ = template.needs_body();
    let variable = Variable::parse(text);
    let _ = (variable.needs_body(), variable.read(&exchange));
});
