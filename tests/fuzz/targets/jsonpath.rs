//! Templates of JSONPath with an object.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bulkhead_fuzz::jsonpath(input));
