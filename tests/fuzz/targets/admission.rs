//! Objects for admission, as JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bulkhead_fuzz::admission(input));
