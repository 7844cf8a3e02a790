//! Makes the mistake that the object names, and does not export scores.

use std::hint::black_box;

use bulkhead_sdk::{HealthInterpreter, HealthVerdict, Object, Plugin, PolicyError, Reason};

struct Mistakes;

impl Plugin for Mistakes {
    const NAME: &'static str = "mistakes";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

impl HealthInterpreter for Mistakes {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        match observed.get_string("/spec/mistake").as_deref() {
            Some("exception") => return Err(PolicyError::Internal("spec.replicas must be positive".to_owned())),
            // The compiler refuses a wrong type; a wrong value is the nearest mistake.
            Some("wrong type") => return Ok(HealthVerdict::healthy(Reason::new("x".repeat(2_000_000), ""))),
            Some("endless loop") => loop {},
            Some("memory") => {
                let mut kept = Vec::new();
                loop {
                    kept.push(black_box(Vec::<u8>::with_capacity(10_000_000)));
                }
            }
            Some("exit") => panic!("the list of {} replicas is not sorted", 3),
            _ => (),
        }
        Ok(HealthVerdict::unknown(Reason::new("NoMistake", "")))
    }
}

bulkhead_sdk::export!(Mistakes: HealthInterpreter);
