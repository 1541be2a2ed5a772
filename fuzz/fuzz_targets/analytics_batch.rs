//! Any bytes as counts that a gateway delivers to its control plane: they are refused, or mean the same when they are
//! written again.
#![no_main]

use weir_analytics::batch::Batch;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(batch) = Batch::decode(bytes) {
        let again = Batch::decode(&batch.encode());
        assert_eq!(again.ok().as_ref(), Some(&batch));
    }
});
