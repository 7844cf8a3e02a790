//! Faults of member clusters and clocks.

use std::time::Duration;

use bulkhead_apiserver::{DeleteOptions, Fault, LinkState, ObjectKey, ReadyState};
use bulkhead_emulator::{ClusterState, FailureMode};

use super::Federation;
use super::person::Person;
use crate::scenario::FailureModeSpec;
use crate::simulation::member;

/// Kinds that random federations and examples place in member clusters.
const REGISTERED_IN_MEMBERS: [(&str, &str); 6] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
];

impl Federation {
    /// Sets the state of a member cluster.
    pub(in crate::simulation) fn set_state(&mut self, name: &str, state: ClusterState) {
        let Some(member) = self.members.get_mut(name) else {
            return;
        };
        let (link, ready) = (state.link(), state.ready());
        member.cluster.link().set(link);
        member.uplink.set(link);
        member.cluster.server().set_ready(ready);
        member.reachable = link == LinkState::Up;
        member.healthy = ready == ReadyState::Ready;
    }

    /// Returns true if a member cluster is reachable and its health endpoint reports ready.
    pub(in crate::simulation) fn is_well(&self, name: &str) -> bool {
        self.members
            .get(name)
            .is_some_and(|member| member.reachable && member.healthy)
    }

    /// Rejects all requests for objects of a member cluster for a duration. Its health endpoint stays reachable.
    pub(in crate::simulation) fn partition(&self, name: &str, lasts: Duration) {
        if let Some(member) = self.members.get(name) {
            member.cluster.server().inject_for(lasts, Fault::Refuse, |_| true);
        }
    }

    /// Makes the workloads of a member cluster fail for lack of their peers, or restores them.
    pub(in crate::simulation) fn set_peerless(&self, name: &str, peerless: bool) {
        if let Some(member) = self.members.get(name) {
            if peerless {
                member.cluster.set_failure(Some(FailureMode::CrashLoop {
                    ready_for: Duration::from_secs(1),
                }));
            } else {
                member::set_failures(&member.cluster, &member.failure_modes, &[]);
            }
        }
    }

    /// Steps the wall clock of the controllers, and steps it back after a duration.
    pub(in crate::simulation) fn skew_clock(&self, by_ms: i64, lasts: Duration) {
        self.wall.step(by_ms);
        let wall = self.wall.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(lasts).await;
            wall.step(-by_ms);
        });
    }

    /// Steps the wall clock of the controllers permanently.
    pub(in crate::simulation) fn step_clock(&self, by_ms: i64) {
        self.wall.step(by_ms);
    }

    /// Returns a person who writes control plane objects between two steps of the controllers.
    pub(in crate::simulation) fn person(&self) -> Person {
        Person::new(&self.hub)
    }

    /// Rejoins a member cluster under the same name, without the objects that were applied to it.
    pub(in crate::simulation) fn rejoin(&self, name: &str) {
        let Some(member) = self.members.get(name) else { return };
        let (server, store) = (member.cluster.server(), member.cluster.server().store());
        let kinds = REGISTERED_IN_MEMBERS
            .iter()
            .filter_map(|(version, kind)| server.kind_id(version, kind));
        for object in kinds.flat_map(|kind| store.list(kind, None).into_iter().map(move |object| (kind, object))) {
            let (kind, object) = object;
            if object.content()["metadata"]["labels"]
                .get("karmada.io/managed")
                .is_some()
            {
                let key = ObjectKey::new(kind, object.namespace(), object.name());
                // A missing object is not an error.
                let _ = store.delete(&key, &DeleteOptions::default());
            }
        }
        self.person().recreate_cluster(name);
    }

    /// Replaces the failures of workloads in a member cluster.
    pub(in crate::simulation) fn set_failures(&mut self, name: &str, modes: &[FailureModeSpec]) {
        if let Some(member) = self.members.get_mut(name) {
            member::set_failures(&member.cluster, modes, &member.failure_modes);
            member.failure_modes = modes.to_vec();
        }
    }
}
