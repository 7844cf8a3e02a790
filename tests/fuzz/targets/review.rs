//! Requests to the webhook that interprets objects.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bulkhead_fuzz::review(input));
