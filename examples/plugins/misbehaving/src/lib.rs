//! Misbehaves in the way that its configuration selects. Tests use it to exercise the host's limits.

use std::cell::Cell;
use std::hint::black_box;

use bulkhead_sdk::{Binding, EvictionCheck, EvictionTask, EvictionVerdict, Plugin, PolicyError, Reason};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Misbehaving {
    how: How,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    Loops,
    EatsMemory,
    Recurses,
    Panics,
    Fails,
    AnswersAtLength,
    Counts,
}

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

#[expect(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    recurse(depth + 1) + frame[0]
}

impl Plugin for Misbehaving {
    const NAME: &'static str = "misbehaving";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const CONFIG_SCHEMA: &'static str = r#"{
        "type": "object",
        "properties": {"how": {"type": "string"}},
        "required": ["how"],
        "additionalProperties": false
    }"#;

    fn configure(config: &str) -> Result<Self, PolicyError> {
        bulkhead_sdk::config(config)
    }
}

impl EvictionCheck for Misbehaving {
    fn check(&self, _binding: &Binding, _task: &EvictionTask) -> Result<EvictionVerdict, PolicyError> {
        let message = match self.how {
            How::Loops => loop {
                black_box(());
            },
            How::EatsMemory => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(black_box(vec![1_u8; 1 << 20]));
                }
            }
            How::Recurses => recurse(0).to_string(),
            How::Panics => panic!("on purpose"),
            How::Fails => return Err(PolicyError::Internal("on purpose".into())),
            How::AnswersAtLength => "x".repeat(8 << 20),
            How::Counts => {
                CALLS.set(CALLS.get() + 1);
                format!("call {}", CALLS.get())
            }
        };
        Ok(EvictionVerdict::hold(Reason::new("Misbehaving", message)))
    }
}

bulkhead_sdk::export!(Misbehaving: EvictionCheck);
