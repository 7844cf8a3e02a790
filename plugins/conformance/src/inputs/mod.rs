//! Inputs for the laws, identical in every run.
//!
//! | sort | content |
//! | --- | --- |
//! | plain | calls that a host typically makes, and the inputs of the cases |
//! | empty | the minimum that the contract allows: no fields, no clusters, no reports |
//! | junk | fields of wrong types, numbers at the ends of their range, odd texts |
//! | deep | lists and maps nested [`DEPTH`] levels deep |
//! | huge | objects and bindings of 1 MiB, [`HUGE_CLUSTERS`] clusters or reports |

mod federation;
mod junk;
mod objects;
mod seeded;
mod size;

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::model::{AggregatedStatusItem, Cluster};
use bulkhead_core::policy::Capability;
use bulkhead_core::time::Time;
use serde_json::Value;

use crate::cases::Case;
use crate::owned_call::{Candidates, Eviction, NOW, OwnedCall, Request};

pub(crate) use seeded::Seeded;
use size::DEPTH;
pub(crate) use size::{HUGE_CLUSTERS, with_clusters};

/// Maximum number of case inputs per kind that the laws are checked on, which limits the duration.
const CASES_MAX: usize = 16;
/// Object kinds used for a policy that accepts every kind: one that Kubernetes has and one that it does not have.
const ANY_KIND: [(&str, &str); 2] = [("apps/v1", "Deployment"), ("example.io/v1", "Thing")];
/// Number of clusters in a plain call.
const CLUSTERS: usize = 24;

/// A call with its description for messages.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) what: String,
    pub(crate) call: OwnedCall,
}

impl Sample {
    fn new(what: impl Into<String>, request: Request) -> Self {
        Self {
            what: what.into(),
            call: OwnedCall {
                request,
                now: Time::from_millis(NOW),
            },
        }
    }
}

/// Inputs for one call kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) plain: Vec<Sample>,
    pub(crate) empty: Vec<Sample>,
    pub(crate) junk: Vec<Sample>,
    pub(crate) deep: Vec<Sample>,
    pub(crate) huge: Vec<Sample>,
}

/// Returns plain calls for a capability of a policy, each with its description. They cover normal operation and
/// typical disturbances.
pub fn plain_calls(capability: &Capability) -> Vec<(String, OwnedCall)> {
    let inputs = Inputs::small(capability.kind, std::slice::from_ref(capability));
    inputs
        .plain
        .into_iter()
        .map(|sample| (sample.what, sample.call))
        .collect()
}

impl Inputs {
    /// Returns all inputs for one call kind, including the inputs of the cases.
    pub(crate) fn of(kind: CallKind, capabilities: &[Capability], cases: &[Case]) -> Self {
        let mut inputs = Self::small(kind, capabilities);
        for object_kind in object_kinds(kind, capabilities) {
            inputs.huge.extend(size::huge_objects(kind, object_kind));
        }
        inputs.huge.extend(size::huge_federations(kind));
        let asked = cases
            .iter()
            .filter(|case| case.call.kind() == kind && case.config.is_none());
        let asked = asked.filter(|case| answered(&case.call, capabilities)).take(CASES_MAX);
        let sample = |case: &Case| Sample {
            what: format!("case {:?}", case.name),
            call: case.call.clone(),
        };
        inputs.plain.extend(asked.map(sample));
        inputs
    }

    /// Returns the inputs that are cheap to generate: all except the huge ones.
    pub(crate) fn small(kind: CallKind, capabilities: &[Capability]) -> Self {
        let mut inputs = Self::default();
        for object_kind in object_kinds(kind, capabilities) {
            inputs.add_objects(kind, object_kind);
        }
        match kind {
            CallKind::Health | CallKind::Interpret => {}
            CallKind::ClusterTaint => inputs.add_clusters(),
            CallKind::Filter => inputs.add_candidates(&|candidates| Request::Filter(Box::new(candidates))),
            CallKind::Score => inputs.add_candidates(&|candidates| Request::Score(Box::new(candidates))),
            CallKind::EvictionCheck => inputs.add_evictions(),
        }
        inputs
    }

    /// Iterates over all inputs except the huge ones.
    pub(crate) fn all_small(&self) -> impl Iterator<Item = &Sample> {
        self.plain.iter().chain(&self.empty).chain(&self.junk).chain(&self.deep)
    }

    fn add_objects(&mut self, kind: CallKind, of: (&str, &str)) {
        let add = |to: &mut Vec<Sample>, what: &str, object: Value| {
            let object = Arc::new(object);
            let requests = if kind == CallKind::Health {
                vec![Request::Health(object)]
            } else {
                operations(&object)
            };
            to.extend(
                requests
                    .into_iter()
                    .map(|request| Sample::new(format!("{} {what}{}", of.1, operation(&request)), request)),
            );
        };
        for (what, object) in objects::plain(of) {
            add(&mut self.plain, what, object);
        }
        add(&mut self.empty, "without fields", objects::empty(of));
        for (what, object) in junk::objects(&objects::settled(of)) {
            add(&mut self.junk, &what, object);
        }
        add(
            &mut self.deep,
            &format!("nested {DEPTH} levels deep"),
            size::deep_object(&objects::settled(of)),
        );
    }

    fn add_clusters(&mut self) {
        let one = |cluster: Cluster| Request::ClusterTaint(Box::new(cluster));
        for index in 0..6 {
            let cluster = federation::cluster(index);
            self.plain
                .push(Sample::new(format!("cluster {}", cluster.name), one(cluster)));
        }
        self.empty
            .push(Sample::new("a cluster without fields", one(Cluster::default())));
        let junk = junk::clusters()
            .into_iter()
            .map(|(what, cluster)| Sample::new(what, one(cluster)));
        self.junk.extend(junk);
        self.deep.push(Sample::new(
            format!("a cluster nested {DEPTH} levels deep"),
            one(size::deep_cluster()),
        ));
    }

    fn add_candidates(&mut self, request: &dyn Fn(Candidates) -> Request) {
        let among = federation::clusters;
        for (what, binding) in federation::bindings() {
            let candidates = Candidates {
                binding,
                clusters: among(CLUSTERS),
            };
            self.plain.push(Sample::new(
                format!("{what} and {CLUSTERS} clusters"),
                request(candidates),
            ));
        }
        let one = Candidates {
            binding: federation::binding(1),
            clusters: among(1),
        };
        self.plain.push(Sample::new("one cluster", request(one)));
        self.empty.push(Sample::new(
            "no cluster and a binding without fields",
            request(Candidates::default()),
        ));
        let blank = Candidates {
            clusters: vec![Arc::new(Cluster::default())],
            ..Candidates::default()
        };
        self.empty.push(Sample::new("a cluster without fields", request(blank)));
        let clusters: Vec<_> = junk::clusters()
            .into_iter()
            .map(|(_, cluster)| Arc::new(cluster))
            .collect();
        let odd = Candidates {
            binding: federation::binding(3),
            clusters,
        };
        self.junk.push(Sample::new("clusters with junk in them", request(odd)));
        for (what, binding) in junk::bindings() {
            self.junk.push(Sample::new(
                what,
                request(Candidates {
                    binding,
                    clusters: among(4),
                }),
            ));
        }
        let deep = Candidates {
            binding: size::deep_binding(),
            clusters: vec![Arc::new(size::deep_cluster())],
        };
        self.deep.push(Sample::new(
            format!("a binding and a cluster nested {DEPTH} levels deep"),
            request(deep),
        ));
    }

    fn add_evictions(&mut self) {
        let request = |eviction| Request::EvictionCheck(Box::new(eviction));
        for (what, eviction) in federation::evictions() {
            self.plain.push(Sample::new(what, request(eviction)));
        }
        self.empty.push(Sample::new(
            "a task, a binding and reports without fields",
            request(Eviction::default()),
        ));
        for (what, eviction) in junk::evictions() {
            self.junk.push(Sample::new(what, request(eviction)));
        }
        let (_, usual) = federation::eviction(3);
        let deep = Eviction {
            binding: size::deep_binding(),
            observed: size::deep_reports(),
            ..usual
        };
        self.deep.push(Sample::new(
            format!("a binding and reports nested {DEPTH} levels deep"),
            request(deep),
        ));
    }
}

/// Returns the object kinds to use for a call kind; none if the call kind takes no object.
fn object_kinds(kind: CallKind, capabilities: &[Capability]) -> Vec<(&str, &str)> {
    if !matches!(kind, CallKind::Health | CallKind::Interpret) {
        return Vec::new();
    }
    let own = capabilities.iter().filter(|capability| capability.kind == kind);
    let named = own.flat_map(|capability| match &capability.object_kind {
        Some((api_version, kind)) => vec![(api_version.as_str(), kind.as_str())],
        None => ANY_KIND.to_vec(),
    });
    named.collect()
}

/// True if any of these capabilities covers the call.
pub(crate) fn answered(call: &OwnedCall, capabilities: &[Capability]) -> bool {
    call.with_call(|call| capabilities.iter().any(|capability| capability.answers(call)))
}

/// Returns every operation of a resource interpreter on one object.
fn operations(object: &Arc<Value>) -> Vec<Request> {
    let own = || Arc::clone(object);
    let status = object.get("status").filter(|status| !status.is_null()).cloned();
    let report = |(index, status): (usize, Option<Value>)| AggregatedStatusItem {
        cluster_name: format!("member{index}"),
        applied: true,
        status,
        ..AggregatedStatusItem::default()
    };
    let reports = [status.clone(), status, None]
        .into_iter()
        .enumerate()
        .map(report)
        .collect();
    vec![
        Request::Replicas(own()),
        Request::Components(own()),
        Request::Revise(own(), 5),
        Request::Retain(own(), own()),
        Request::ReflectStatus(own()),
        Request::AggregateStatus(own(), reports),
        Request::Dependencies(own()),
    ]
}

/// Returns ` (Retain)` and the like for operations of a resource interpreter, otherwise an empty string.
fn operation(request: &Request) -> &'static str {
    match request {
        Request::Replicas(_) => " (InterpretReplica)",
        Request::Components(_) => " (InterpretComponent)",
        Request::Revise(..) => " (ReviseReplica)",
        Request::Retain(..) => " (Retain)",
        Request::ReflectStatus(_) => " (InterpretStatus)",
        Request::AggregateStatus(..) => " (AggregateStatus)",
        Request::Dependencies(_) => " (InterpretDependency)",
        Request::Health(_)
        | Request::ClusterTaint(_)
        | Request::Filter(_)
        | Request::Score(_)
        | Request::EvictionCheck(_) => "",
    }
}
