//! Runtime for leases and probes, which plugins and busy controllers cannot delay.
//!
//! Connections belong to the runtime that opened them, so the runtime has clients of its own.

use std::sync::Arc;

use kube::Client;
use tokio::runtime::Handle;

use crate::context::{Context, Members};

/// The runtime, with clients whose connections live on it.
#[derive(Clone)]
pub struct Vital {
    /// The runtime.
    pub runtime: Handle,
    /// The control plane.
    pub hub: Client,
    /// Member clusters.
    pub members: Arc<dyn Members>,
}

impl Context {
    /// The runtime of leases and probes, and the context for it. Without one it is the runtime of the caller.
    pub(crate) fn vital(&self) -> (Handle, Self) {
        match &self.vital {
            None => (Handle::current(), self.clone()),
            Some(Vital { runtime, hub, members }) => {
                let (hub, members) = (hub.clone(), Arc::clone(members));
                (runtime.clone(), Self { hub, members, ..self.clone() })
            }
        }
    }
}
