//! Lists of plugins.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bulkhead_fuzz::plugins(input));
