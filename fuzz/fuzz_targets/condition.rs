//! Any condition on any call: it is read or refused, its text form means the same, and it is decided without
//! a panic.
#![no_main]

#[path = "../support/call.rs"]
mod call;

use call::Call;
use weir_model::Predicate;
use weir_plugin::Condition;

libfuzzer_sys::fuzz_target!(|input: (&str, Call)| {
    let (text, call) = input;
    let Ok(value) = serde_json::from_str(text) else {
        return;
    };
    let Ok(predicate) = Predicate::parse(&value) else {
        return;
    };
    assert_eq!(
        Predicate::parse(&predicate.to_value()).as_ref(),
        Ok(&predicate),
        "{value}"
    );
    let Ok(condition) = Condition::compile(&predicate) else {
        return;
    };
    let exchange = call.exchange();
    let holds = condition.holds(&exchange);
    assert_eq!(condition.holds(&exchange), holds);
    let _ = (condition.needs_body(), condition.awaits_body(&exchange));
    let negated = Condition::Not(Box::new(condition));
    assert_eq!(negated.holds(&exchange), !holds);
});
