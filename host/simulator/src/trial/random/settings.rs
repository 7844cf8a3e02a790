//! Random flags of the controllers.

use serde_json::{Value, json};

use crate::trial::seeded_rng::SeededRng;

/// Settings that the other generators depend on.
pub(super) struct Settings {
    /// Flags as scenario data.
    pub(super) flags: Value,
    /// True if taints with the effect `PreferNoExecute` are enabled.
    pub(super) prefers: bool,
    /// True if capacity is limited, and everything is placed by capacity.
    pub(super) crowded: bool,
}

pub(super) fn draw(rng: &mut SeededRng) -> Settings {
    let (prefers, crowded) = (rng.chance(15), rng.chance(12));
    let mut gates = json!({"Failover": rng.chance(95)});
    for (gate, on) in [
        ("PreferNoExecute", prefers),
        ("SchedulingOvercommitProtection", crowded || rng.chance(40)),
        ("StatefulFailoverInjection", rng.chance(10)),
    ] {
        if on {
            gates[gate] = json!(true);
        }
    }
    let mut flags = json!({
        "feature-gates": gates,
        "enable-no-execute-taint-eviction": rng.chance(95),
        "allow-no-execute-taint-policy": true,
        "cluster-failure-threshold": rng.seconds(5, 30),
        "cluster-success-threshold": rng.seconds(5, 30),
        "resource-eviction-rate": rng.one_of(&[0.1, 0.2, 0.5, 1.0, 5.0]),
        // Either short enough to expire, or too long to wait for.
        "graceful-eviction-timeout": rng.one_of(&["15s", "40s", "10m", "10m"]),
    });
    if rng.chance(20) {
        flags["eviction-pre-check"] = json!("none");
    }
    if rng.chance(15) {
        flags["resource-eviction-rate-per-cluster"] = json!(rng.one_of(&[0.1, 0.5]));
    }
    if rng.chance(15) {
        flags["unhealthy-cluster-threshold"] = json!(0.55);
        flags["eviction-brake-by"] = json!(rng.one_of(&["federation", "region"]));
    }
    if rng.chance(25) {
        flags["enable-failback"] = json!(true);
        flags["failback-stabilization-window"] = json!(rng.seconds(10, 40));
        flags["failback-concurrency"] = json!(rng.between(1, 3));
    }
    if rng.chance(10) {
        flags["cluster-taint-policy-damping-window"] = json!("30s");
    }
    Settings {
        flags,
        prefers,
        crowded,
    }
}
