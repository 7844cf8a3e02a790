//! All interpreter operations for a custom resource, here a `Game` of `example.io/v1`: a number of rooms, each a
//! replica, with a map to load and a lobby.

use bulkhead_sdk::{
    Component, Dependency, Edit, HealthInterpreter, HealthVerdict, Object, Observations, Plugin, PolicyError, Reason,
    ReplicaRequirements, Replicas, ResourceInterpreter, Value,
};
use serde_json::json;

struct GameInterpreter;

impl Plugin for GameInterpreter {
    const NAME: &'static str = "game-interpreter";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DESCRIPTION: &'static str = "Interprets Game objects of example.io/v1";
    const OBJECT_KINDS: &'static [(&'static str, &'static str)] = &[("example.io/v1", "Game")];
    const REUSABLE: bool = true;

    fn configure(_config: &str) -> Result<Self, PolicyError> {
        Ok(Self)
    }
}

fn count(object: &Object, pointer: &str) -> i32 {
    object
        .get_s64(pointer)
        .and_then(|count| i32::try_from(count).ok())
        .unwrap_or(0)
        .max(0)
}

/// Returns the requirements of one room: the requested CPU, or 500m by default.
fn room(template: &Object) -> ReplicaRequirements {
    let cpu = template
        .get_string("/spec/cpuPerRoom")
        .unwrap_or_else(|| "500m".to_owned());
    ReplicaRequirements {
        requests: vec![("cpu".to_owned(), cpu)],
        node_claim: None,
        namespace: template.get_string("/metadata/namespace"),
        priority_class_name: None,
    }
}

/// Returns an error if `/spec` exists and is not a map: edits below it would fail. The host creates a missing map.
fn can_edit_spec(template: &Object) -> Result<(), PolicyError> {
    match template.get("/spec") {
        None | Some(Value::Null | Value::Fields(_)) => Ok(()),
        Some(_) => Err(PolicyError::Internal("spec is no map".to_owned())),
    }
}

impl HealthInterpreter for GameInterpreter {
    fn interpret(&self, observed: &Object) -> Result<HealthVerdict, PolicyError> {
        let (wanted, open) = (count(observed, "/spec/rooms"), count(observed, "/status/openRooms"));
        let message = format!("{open} of {wanted} rooms are open");
        Ok(match observed.get_string("/status/phase").as_deref() {
            Some("Running") if open >= wanted => HealthVerdict::healthy(Reason::new("RoomsOpen", message)),
            Some("Running") => HealthVerdict::unhealthy(Reason::new("RoomsClosed", message)),
            Some(phase) => HealthVerdict::unhealthy(Reason::new("NotRunning", format!("its phase is {phase}"))),
            None => HealthVerdict::unknown(Reason::new("NoPhase", "nothing reports a phase yet")),
        })
    }
}

impl ResourceInterpreter for GameInterpreter {
    fn replicas(&self, template: &Object) -> Result<Replicas, PolicyError> {
        Ok(Replicas {
            count: count(template, "/spec/rooms"),
            requirements: Some(room(template)),
        })
    }

    fn components(&self, template: &Object) -> Result<Vec<Component>, PolicyError> {
        let rooms = Component {
            name: "rooms".to_owned(),
            replicas: count(template, "/spec/rooms"),
            requirements: Some(room(template)),
        };
        Ok(vec![
            rooms,
            Component {
                name: "lobby".to_owned(),
                replicas: 1,
                requirements: None,
            },
        ])
    }

    fn revise_replicas(&self, template: &Object, replicas: i32) -> Result<Vec<Edit>, PolicyError> {
        can_edit_spec(template)?;
        Ok(vec![Edit::set_json("/spec/rooms", replicas.to_string())])
    }

    fn retain(&self, desired: &Object, observed: &Object) -> Result<Vec<Edit>, PolicyError> {
        can_edit_spec(desired)?;
        // The member cluster generates the seed; changing it would disrupt players.
        let seed = observed
            .json("/spec/seed")
            .map(|seed| Edit::set_json("/spec/seed", seed));
        Ok(seed.into_iter().collect())
    }

    fn reflect_status(&self, observed: &Object) -> Result<Option<String>, PolicyError> {
        Ok(observed.length("/status").map(|_| {
            let status = json!({
                "phase": observed.get_string("/status/phase"),
                "openRooms": count(observed, "/status/openRooms"),
            });
            status.to_string()
        }))
    }

    fn aggregate_status(&self, _template: &Object, reports: &Observations) -> Result<Vec<Edit>, PolicyError> {
        let open: f64 = reports
            .number("/openRooms")
            .into_iter()
            .filter(|rooms| rooms.is_finite())
            .sum();
        let phases = reports.text("/phase");
        let running = !phases.is_empty() && phases.iter().all(|phase| phase.as_deref() == Some("Running"));
        let phase = if running { "Running" } else { "Pending" };
        let status = json!({"openRooms": open as i64, "phase": phase});
        Ok(vec![Edit::set_json("/status", status.to_string())])
    }

    fn dependencies(&self, template: &Object) -> Result<Vec<Dependency>, PolicyError> {
        let namespace = template.get_string("/metadata/namespace").unwrap_or_default();
        let map = template.get_string("/spec/mapFrom").map(|name| Dependency {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace,
            name: Some(name),
            label_selector: None,
        });
        Ok(map.into_iter().collect())
    }
}

bulkhead_sdk::export!(GameInterpreter: HealthInterpreter, ResourceInterpreter);
