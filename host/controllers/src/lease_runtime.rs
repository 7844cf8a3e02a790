//! Runtime for leases and probes, which plugins and busy controllers cannot delay.
//!
//! Connections belong to the runtime that opened them, so the runtime has its own clients.

use std::sync::Arc;

use kube::Client;
use tokio::runtime::Handle;

use crate::context::{Context, Members};

/// Runtime with clients whose connections live on it.
#[derive(Clone)]
pub struct LeaseRuntime {
    /// Handle of the runtime.
    pub runtime: Handle,
    /// Client of the control plane.
    pub hub: Client,
    /// Clients of member clusters.
    pub members: Arc<dyn Members>,
}

impl Context {
    /// Returns the runtime of leases and probes with its context; without a separate one, the runtime of the caller.
    pub(crate) fn on_lease_runtime(&self) -> (Handle, Self) {
        match &self.lease_runtime {
            None => (Handle::current(), self.clone()),
            Some(LeaseRuntime { runtime, hub, members }) => {
                let (hub, members) = (hub.clone(), Arc::clone(members));
                (runtime.clone(), Self { hub, members, ..self.clone() })
            }
        }
    }
}
