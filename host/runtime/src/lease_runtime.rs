//! Runtime for leases and probes, which busy controllers cannot delay.

use tokio::runtime::Handle;

/// Runtime with clients of its own: a connection belongs to the runtime that opened it.
#[derive(Clone, Debug)]
pub struct LeaseRuntime<C> {
    /// Handle of the runtime.
    pub runtime: Handle,
    /// Clients whose connections live on the runtime.
    pub clients: C,
}

impl<C> LeaseRuntime<C> {
    /// Returns the runtime of leases and its clients. A process without a separate one uses the runtime of the caller
    /// and its clients.
    pub fn or_current(lease_runtime: Option<Self>, clients: impl FnOnce() -> C) -> (Handle, C) {
        match lease_runtime {
            None => (Handle::current(), clients()),
            Some(Self { runtime, clients }) => (runtime, clients),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_without_a_separate_runtime_uses_its_own_clients() {
        let leases = LeaseRuntime {
            runtime: Handle::current(),
            clients: "leases",
        };
        assert_eq!(LeaseRuntime::or_current(Some(leases), || "all").1, "leases");
        assert_eq!(LeaseRuntime::or_current(None, || "all").1, "all");
    }
}
