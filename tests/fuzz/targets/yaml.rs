//! Documents of YAML, and JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bulkhead_fuzz::yaml(input));
