//! Resources that a cloud provides: load balancer addresses and volumes. They are available immediately.

use bulkhead_apiserver::{Object, ObjectKey, stable_hash};
use serde_json::json;

use crate::controllers::Emulator;

impl Emulator {
    /// Assigns an address to a load balancer. The address depends only on the seed and on the service's namespace and
    /// name.
    pub(super) fn sync_service(&self, key: &ObjectKey, object: &Object) {
        let status = if object.content()["spec"]["type"] == "LoadBalancer" {
            let hash = stable_hash(self.timing.seed, &[&key.namespace, &key.name]);
            // Address block reserved for benchmarks of network devices (RFC 2544).
            let ip = format!("198.18.{}.{}", hash & 0xFF, 1 + ((hash >> 8) % 254));
            json!({"loadBalancer": {"ingress": [{"ip": ip, "ipMode": "VIP"}]}})
        } else {
            json!({"loadBalancer": {}})
        };
        self.write_status(key, object, status);
    }

    /// Binds a claim with the requested access modes and capacity.
    pub(super) fn sync_claim(&self, key: &ObjectKey, object: &Object) {
        let spec = &object.content()["spec"];
        let mut status = json!({"phase": "Bound"});
        if spec["accessModes"].is_array() {
            status["accessModes"] = spec["accessModes"].clone();
        }
        if spec["resources"]["requests"].is_object() {
            status["capacity"] = spec["resources"]["requests"].clone();
        }
        self.write_status(key, object, status);
    }
}
