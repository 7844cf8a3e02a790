//! Nodes of a member cluster: their capacity and the assignment of pods to them.

use std::collections::BTreeMap;

use bulkhead_apiserver::json::{HasFields, array, text};
use bulkhead_apiserver::{ObjectKey, rfc3339};
use bulkhead_core::quantity::Quantity;
use serde_json::{Value, json};

/// Amount of the resources that a node offers and a pod requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) cpu_milli: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) pods: u64,
}

impl Amount {
    /// Returns the amount of two Kubernetes quantities. Text that is not a quantity, and negative ones, count as 0.
    pub(crate) fn new(cpu: &str, memory: &str, pods: u64) -> Self {
        let quantity = |text: &str| text.parse::<Quantity>().unwrap_or_default();
        Self {
            cpu_milli: u64::try_from(quantity(cpu).millis()).unwrap_or_default(),
            memory_bytes: u64::try_from(quantity(memory).units()).unwrap_or_default(),
            pods,
        }
    }

    /// Returns the requests of a pod: the sum over its containers, or those of an init container if they are higher.
    pub(crate) fn of_pod(pod: &impl HasFields) -> Self {
        let requests = |container: &Value| {
            let resources = &container["resources"];
            // A limit without a request is the request, as the API server defaults it.
            let quantity = |name: &str| {
                let request = text(resources, &format!("/requests/{name}"));
                if request.is_empty() {
                    text(resources, &format!("/limits/{name}")).to_owned()
                } else {
                    request.to_owned()
                }
            };
            Self::new(&quantity("cpu"), &quantity("memory"), 0)
        };
        let mut all = Self {
            pods: 1,
            ..Self::default()
        };
        for container in array(pod, "/spec/containers") {
            all = all.plus(requests(container));
        }
        for container in array(pod, "/spec/initContainers") {
            let one = requests(container);
            all.cpu_milli = all.cpu_milli.max(one.cpu_milli);
            all.memory_bytes = all.memory_bytes.max(one.memory_bytes);
        }
        all
    }

    /// Returns the amount of that many pods.
    pub(crate) fn times(self, pods: u64) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_mul(pods),
            memory_bytes: self.memory_bytes.saturating_mul(pods),
            pods: self.pods.saturating_mul(pods),
        }
    }

    /// Returns the number of pods of this amount that fit beside those that are `used`.
    fn fitting(self, used: Self, capacity: Self) -> u64 {
        let fitting = |one: u64, used: u64, capacity: u64| match (capacity.checked_sub(used), one) {
            (None, _) => 0,
            (Some(_), 0) => u64::MAX,
            (Some(free), one) => free / one,
        };
        fitting(self.cpu_milli, used.cpu_milli, capacity.cpu_milli)
            .min(fitting(self.memory_bytes, used.memory_bytes, capacity.memory_bytes))
            .min(fitting(self.pods, used.pods, capacity.pods))
    }

    fn fits(self, used: Self, capacity: Self) -> bool {
        used.cpu_milli.saturating_add(self.cpu_milli) <= capacity.cpu_milli
            && used.memory_bytes.saturating_add(self.memory_bytes) <= capacity.memory_bytes
            && used.pods.saturating_add(self.pods) <= capacity.pods
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            pods: self.pods.saturating_add(other.pods),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_sub(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
            pods: self.pods.saturating_sub(other.pods),
        }
    }
}

/// Nodes of equal capacity and the pods assigned to them.
pub(crate) struct Nodes {
    cluster: String,
    capacity: Amount,
    used: Vec<Amount>,
    placed: BTreeMap<ObjectKey, (usize, Amount)>,
}

impl Nodes {
    pub(crate) fn new(cluster: &str, nodes_total: u32, node_capacity: Amount) -> Self {
        Self {
            cluster: cluster.to_owned(),
            capacity: node_capacity,
            used: vec![Amount::default(); nodes_total as usize],
            placed: BTreeMap::new(),
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.used.len()
    }

    pub(crate) fn name(&self, index: usize) -> String {
        format!("{}-node-{index}", self.cluster)
    }

    /// Assigns a pod to the node with the fewest pods that has capacity for it; of several, the first one.
    pub(crate) fn place(&mut self, pod: &ObjectKey, amount: Amount) -> Option<String> {
        let (index, _) = self
            .used
            .iter()
            .enumerate()
            .filter(|(_, used)| amount.fits(**used, self.capacity))
            .min_by_key(|(index, used)| (used.pods, *index))?;
        self.occupy(pod, index, amount);
        Some(self.name(index))
    }

    /// Divides pods of one amount over the nodes as [`Nodes::place`] places them one after the other. Returns the shares
    /// by index of the node; no share has the pods that do not fit.
    pub(crate) fn spread(&self, one: Amount, pods: u64) -> Vec<(usize, u64)> {
        let rooms = self
            .used
            .iter()
            .map(|used| (used.pods, one.fitting(*used, self.capacity)));
        let rooms: Vec<(u64, u64)> = rooms.collect();
        // Pods that raise each node with room to a level, as far as its room permits.
        let share = |(used, room): (u64, u64), level: u64| level.saturating_sub(used).min(room);
        let total = |level: u64| {
            let shares = rooms.iter().map(|node| share(*node, level));
            shares.fold(0, u64::saturating_add)
        };
        let level = highest_level(self.capacity.pods.saturating_add(1), |level| total(level) <= pods);
        let mut rest = pods - total(level);
        let shares = rooms.iter().enumerate().map(|(index, node)| {
            let (lower, higher) = (share(*node, level), share(*node, level + 1));
            let more = (higher - lower).min(rest);
            rest -= more;
            (index, lower + more)
        });
        shares.filter(|(_, share)| *share > 0).collect()
    }

    /// Accounts for a pod that specifies its node. A pod on an unknown node uses no capacity. Returns true if the pod
    /// uses less than before.
    pub(crate) fn adopt(&mut self, pod: &ObjectKey, node: &str, amount: Amount) -> bool {
        if let Some((index, known)) = self.placed.get_mut(pod) {
            let before = std::mem::replace(known, amount);
            let used = &mut self.used[*index];
            *used = used.minus(before).plus(amount);
            return amount.pods < before.pods;
        }
        if let Some(index) = (0..self.total()).find(|&index| self.name(index) == node) {
            self.occupy(pod, index, amount);
        }
        false
    }

    /// Counts the pods of one object as those of another one on the same node.
    pub(crate) fn transfer(&mut self, from: &ObjectKey, to: &ObjectKey) {
        if let Some((index, amount)) = self.placed.remove(from) {
            let (_, sum) = self.placed.entry(to.clone()).or_insert((index, Amount::default()));
            *sum = sum.plus(amount);
        }
    }

    /// Assigns a pod to a node.
    pub(crate) fn occupy(&mut self, pod: &ObjectKey, index: usize, amount: Amount) {
        self.used[index] = self.used[index].plus(amount);
        self.placed.insert(pod.clone(), (index, amount));
    }

    /// Releases the capacity of a pod that was removed or is finished. Returns true if the pod used any.
    pub(crate) fn release(&mut self, pod: &ObjectKey) -> bool {
        let Some((index, amount)) = self.placed.remove(pod) else {
            return false;
        };
        self.used[index] = self.used[index].minus(amount);
        true
    }

    /// Returns the Node object with its status.
    pub(crate) fn object(&self, index: usize, kubelet_version: &str, now: jiff::Timestamp) -> Value {
        let name = self.name(index);
        let amount = json!({
            "cpu": format!("{}m", self.capacity.cpu_milli),
            "memory": self.capacity.memory_bytes.to_string(),
            "pods": self.capacity.pods.to_string(),
        });
        json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {},
            "status": {
                "capacity": amount,
                "allocatable": amount,
                "conditions": [{
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": rfc3339(now),
                    "lastTransitionTime": rfc3339(now),
                }],
                "nodeInfo": {
                    "architecture": "amd64",
                    "bootID": "",
                    "containerRuntimeVersion": "simulated://1",
                    "kernelVersion": "",
                    "kubeProxyVersion": kubelet_version,
                    "kubeletVersion": kubelet_version,
                    "machineID": "",
                    "operatingSystem": "linux",
                    "osImage": "simulated",
                    "systemUUID": "",
                },
            },
        })
    }
}

/// Returns the highest level below `end` up to which `fits` holds; 0 if there is none.
pub(crate) fn highest_level(end: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut level, mut above) = (0, end);
    while above > level + 1 {
        let middle = level + (above - level) / 2;
        if fits(middle) {
            level = middle;
        } else {
            above = middle;
        }
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_a_group_are_divided_as_if_they_came_one_after_the_other() {
        // A custom generator gives the same numbers on every machine.
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let amount = |cpu_milli, memory_bytes, pods| Amount {
            cpu_milli,
            memory_bytes,
            pods,
        };
        let kind = pod_kind();
        let key = |name: u64| ObjectKey::new(kind, "default", &name.to_string());
        for _ in 0..500 {
            let mut nodes = Nodes::new("m", next(5) as u32, amount(next(40), next(60), next(30)));
            for other in 0..next(6) {
                let node = nodes.name(next(5) as usize);
                nodes.adopt(&key(1_000 + other), &node, amount(next(9), next(9), 1 + next(9)));
            }
            let (one, pods) = (amount(next(3), next(3), 1), next(200));
            let shares = nodes.spread(one, pods);
            let mut placed = std::collections::BTreeMap::<String, u64>::new();
            for pod in 0..pods {
                if let Some(node) = nodes.place(&key(pod), one) {
                    *placed.entry(node).or_default() += 1;
                }
            }
            let shares = shares.into_iter().map(|(index, share)| (nodes.name(index), share));
            assert_eq!(shares.collect::<std::collections::BTreeMap<_, _>>(), placed);
        }
    }

    fn pod_kind() -> bulkhead_apiserver::KindId {
        let clock = bulkhead_apiserver::Clock::new(jiff::Timestamp::UNIX_EPOCH);
        let server = bulkhead_apiserver::ApiServer::new(bulkhead_apiserver::Options {
            kinds: bulkhead_apiserver::kinds::kubernetes(),
            ..bulkhead_apiserver::Options::new("m", 0, clock)
        });
        server.kind_id("v1", "Pod").unwrap()
    }

    #[test]
    fn a_pod_requests_the_sum_of_its_containers_or_its_largest_init_container() {
        let container = |cpu: &str, memory: &str| json!({"resources": {"requests": {"cpu": cpu, "memory": memory}}});
        let pod = json!({"spec": {
            "containers": [container("100m", "1.5Gi"), {"resources": {"limits": {"cpu": "0.5", "memory": "lots"}}}],
            "initContainers": [container("2", "-1Gi")],
        }});
        assert_eq!(
            Amount::of_pod(&pod),
            Amount {
                cpu_milli: 2_000,
                memory_bytes: 3 << 29,
                pods: 1
            }
        );
    }
}
