//! Interprets stages, secrets, status and health of a Pipeline of example.io/v1.

use std::collections::BTreeSet;

use bulkhead_sdk::{
    Component, Dependency, Edit, HealthInterpreter, HealthVerdict, Object, Observations, Plugin, PolicyError, Reason,
    ResourceInterpreter, Value,
};

/// Largest number of records that a cluster can report.
const RECORDS_MAX: f64 = 1e12;

struct Pipeline;

impl Plugin for Pipeline {
    const NAME: &'static str = "pipeline";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("example.io/v1", "Pipeline")];
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

/// Returns a text that is not empty.
fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

impl HealthInterpreter for Pipeline {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        Ok(match observed.get_string("/status/phase").as_deref() {
            Some(phase @ ("Running" | "Done")) => HealthVerdict::healthy(Reason::new(phase, "")),
            Some("Failed") => HealthVerdict::unhealthy(Reason::new("Failed", "")),
            _ => HealthVerdict::unknown(Reason::new("UnknownPhase", "")),
        })
    }
}

impl ResourceInterpreter for Pipeline {
    fn components(&self, template: &Object) -> Result<Vec<Component>, PolicyError> {
        let names = template.get_each("/spec/stages", "/name");
        let workers = template.get_each("/spec/stages", "/workers");
        let mut seen = BTreeSet::new();
        let mut components = Vec::new();
        for (name, workers) in names.into_iter().zip(workers) {
            let Some(name) = text(name).filter(|name| seen.insert(name.clone())) else { continue };
            let replicas = match workers {
                Some(Value::Integer(workers)) => i32::try_from(workers.max(0)).unwrap_or(i32::MAX),
                _ => 1,
            };
            components.push(Component { name, replicas, requirements: None });
        }
        Ok(components)
    }

    fn reflect_status(&self, observed: &Object) -> Result<Option<String>, PolicyError> {
        let mut members = Vec::new();
        if let Some(Value::Text(_)) = observed.get("/status/phase") {
            members.extend(observed.json("/status/phase").map(|phase| format!(r#""phase": {phase}"#)));
        }
        if let Some(records) = observed.get_s64("/status/records") {
            members.push(format!(r#""records": {records}"#));
        }
        Ok((!members.is_empty()).then(|| format!("{{{}}}", members.join(", "))))
    }

    fn aggregate_status(&self, _template: &Object, reports: &Observations) -> Result<Vec<Edit>, PolicyError> {
        let count = |number: &f64| if *number > 0.0 { number.min(RECORDS_MAX).floor() as i64 } else { 0 };
        let records: i64 = reports.number("/records").iter().map(count).sum();
        let phases = reports.text("/phase");
        let is = |expected: &'static str| move |phase: &Option<String>| phase.as_deref() == Some(expected);
        let phase = if phases.iter().any(is("Failed")) {
            "Failed"
        } else if !phases.is_empty() && phases.iter().all(is("Done")) {
            "Done"
        } else {
            "Running"
        };
        let status = format!(r#"{{"phase": "{phase}", "records": {records}}}"#);
        Ok(vec![Edit::set_json("/status", status)])
    }

    fn dependencies(&self, template: &Object) -> Result<Vec<Dependency>, PolicyError> {
        let namespace = template.get_string("/metadata/namespace").unwrap_or_default();
        let secret = |name: String| Dependency {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: namespace.clone(),
            name: Some(name),
            label_selector: None,
        };
        Ok(template.get_each("/spec/stages", "/secret").into_iter().filter_map(text).map(secret).collect())
    }
}

bulkhead_sdk::export!(Pipeline: HealthInterpreter, ResourceInterpreter);
