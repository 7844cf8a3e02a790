//! Header of a hostile script: its expected outcome. The keys are described in `tests/guests/README.md`.

use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::FaultKind;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Outcome of a call.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The call ends in a fault of this kind.
    Fault(FaultKind),
    /// The script returns the healthy verdict because its attack had no effect.
    Healthy,
}

/// Expected outcome of a script.
#[derive(Debug)]
pub(crate) struct Expectation {
    pub(crate) point: EntryPoint,
    pub(crate) outcome: Outcome,
    /// True if loading must fail.
    pub(crate) at_load: bool,
    /// Text that the message of the fault contains.
    pub(crate) says: Option<String>,
    /// Time limit; implies an unlimited number of steps.
    pub(crate) wall_clock_ms: Option<u64>,
}

impl Expectation {
    /// Reads the leading comment lines. Lines without a known key describe the attack.
    pub(crate) fn read(script: &str) -> Result<Self, String> {
        let head: Vec<_> = script.lines().map_while(|line| line.strip_prefix("-- ")).collect();
        let field = |key: &str| head.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        let required = |key: &str| field(key).ok_or_else(|| format!("its head has no {key}"));
        let outcome = match required("expect")? {
            "healthy" => Outcome::Healthy,
            kind => Outcome::Fault(named("expect", kind)?),
        };
        let at_load = match field("at") {
            None => false,
            Some("load") => true,
            Some(other) => return Err(format!("at: {other} is not load")),
        };
        let says = field("says").map(str::to_owned);
        if at_load && says.is_none() {
            return Err("an error at load has no kind, so its head has to give the words that it says".to_owned());
        }
        let wall_clock_ms = field("wall-clock-ms").map(|text| text.parse().map_err(|_| format!("{text} milliseconds")));
        let wall_clock_ms = wall_clock_ms.transpose()?;
        Ok(Self {
            point: named("kind", required("kind")?)?,
            outcome,
            at_load,
            says,
            wall_clock_ms,
        })
    }
}

fn named<T: DeserializeOwned>(key: &str, name: &str) -> Result<T, String> {
    serde_json::from_value(Value::from(name)).map_err(|error| format!("{key}: {error}"))
}
