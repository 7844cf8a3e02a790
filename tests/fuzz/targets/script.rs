//! Plugins in Lua.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bulkhead_fuzz::script(input));
