//! Interprets replicas, requirements, retained fields and health of a GameServer of example.io/v1.

use bulkhead_sdk::{
    Edit, HealthInterpreter, HealthVerdict, Object, Plugin, PolicyError, Reason, ReplicaRequirements, Replicas,
    ResourceInterpreter, Value,
};

/// Largest processor time of a room in thousandths of a core.
const CPU_MAX: i64 = 1_000_000_000;

struct GameServer;

impl Plugin for GameServer {
    const NAME: &'static str = "game-server";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("example.io/v1", "GameServer")];
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

/// Returns the edits that write the rooms of a server.
fn with_rooms(server: &Object, rooms: i64) -> Vec<Edit> {
    match server.get("/spec") {
        Some(Value::Fields(_)) => vec![Edit::set_json("/spec/rooms", rooms.to_string())],
        _ => vec![Edit::set_json("/spec", format!(r#"{{"rooms": {rooms}}}"#))],
    }
}

fn rooms(server: &Object) -> Option<i64> {
    server.get_s64("/spec/rooms").map(|rooms| rooms.clamp(0, i64::from(i32::MAX)))
}

impl HealthInterpreter for GameServer {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        Ok(match observed.get_string("/status/phase").as_deref() {
            Some("Running") => HealthVerdict::healthy(Reason::new("Running", "")),
            Some(phase) => HealthVerdict::unhealthy(Reason::new("NotRunning", format!("its phase is {phase}"))),
            None => HealthVerdict::unknown(Reason::new("NoPhase", "")),
        })
    }
}

impl ResourceInterpreter for GameServer {
    fn replicas(&self, template: &Object) -> Result<Replicas, PolicyError> {
        let cpu = template.get_quantity_milli("/spec/roomCpu").filter(|milli| *milli > 0);
        let requirements = cpu.map(|milli| ReplicaRequirements {
            requests: vec![("cpu".to_owned(), format!("{}m", milli.min(CPU_MAX)))],
            node_claim: None,
            namespace: None,
            priority_class_name: None,
        });
        let count = i32::try_from(rooms(template).unwrap_or(0)).unwrap_or(i32::MAX);
        Ok(Replicas { count, requirements })
    }

    fn revise_replicas(&self, template: &Object, replicas: i32) -> Result<Vec<Edit>, PolicyError> {
        Ok(with_rooms(template, i64::from(replicas)))
    }

    fn retain(&self, desired: &Object, observed: &Object) -> Result<Vec<Edit>, PolicyError> {
        Ok(match (observed.get_bool("/spec/autoscaled"), rooms(observed)) {
            (Some(true), Some(rooms)) => with_rooms(desired, rooms),
            _ => Vec::new(),
        })
    }
}

bulkhead_sdk::export!(GameServer: HealthInterpreter, ResourceInterpreter);
