//! The head of a hostile script: what must become of it. The keys are described in `tests/guests/README.md`.

use bulkhead_core::policy::FaultKind;
use bulkhead_plugin::EntryPoint;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How a call ends.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// In a fault of this kind.
    Fault(FaultKind),
    /// In the verdict by which the script says that its trick had no effect.
    Healthy,
}

/// What must become of a script.
#[derive(Debug)]
pub(crate) struct Expectation {
    pub(crate) point: EntryPoint,
    pub(crate) outcome: Outcome,
    /// Whether it must not even load.
    pub(crate) at_load: bool,
    /// What the message of the fault contains.
    pub(crate) says: Option<String>,
    /// How much time it gets, with any number of steps.
    pub(crate) wall_clock_ms: Option<u64>,
}

impl Expectation {
    /// Reads the leading comment lines. Lines without a known key say what the script tries.
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
        Ok(Self { point: named("kind", required("kind")?)?, outcome, at_load, says, wall_clock_ms })
    }
}

fn named<T: DeserializeOwned>(key: &str, name: &str) -> Result<T, String> {
    serde_json::from_value(Value::from(name)).map_err(|error| format!("{key}: {error}"))
}
