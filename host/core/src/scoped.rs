//! Scopes of plugins in force: a plugin is called inside of its scope only, and one of a tenant can only hold.
//!
//! A call outside of the scope never reaches the plugin. It counts as an abstention, so the other policies decide as if
//! the plugin did not exist. A plugin of a tenant answers health and eviction checks of the tenant's namespaces. Its
//! releases and its healthy verdicts count as abstentions, so that with it nothing is released that would be held
//! without it.

use std::sync::Arc;

use crate::call::{Call, CallKind, EvictionVerdict, Reply};
use crate::manifest::{Scope, Tenancy};
use crate::model::Health;
use crate::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};

/// A policy that is called inside of its scope only.
pub struct Scoped {
    policy: Arc<dyn Policy>,
    scope: Scope,
    tenancy: Option<Tenancy>,
}

impl Scoped {
    /// Limits a policy to a scope and a tenant. Returns the policy itself if neither excludes anything.
    pub fn limit(policy: Arc<dyn Policy>, scope: &Scope, tenancy: Option<&Tenancy>) -> Arc<dyn Policy> {
        if scope.is_everything() && tenancy.is_none() {
            return policy;
        }
        Arc::new(Self {
            policy,
            scope: scope.clone(),
            tenancy: tenancy.cloned(),
        })
    }
}

fn abstention(why: &str) -> Fault {
    Fault::new(FaultKind::Unsupported, why)
}

/// Returns a reply of a tenant's plugin without anything that lets a copy go. A verdict that does not count is recorded
/// as an abstention by fault, so that a replay, which does not know the tenant, takes it from the record.
fn held(reply: Reply) -> Result<Reply, Fault> {
    match reply {
        Reply::EvictionCheck(EvictionVerdict::Release(_)) => Err(abstention("a plugin of a tenant releases nothing")),
        Reply::Health(verdict) if verdict.health == Health::Healthy => {
            Err(abstention("a plugin of a tenant makes nothing healthy"))
        }
        other => Ok(other),
    }
}

impl Policy for Scoped {
    fn id(&self) -> &PolicyId {
        self.policy.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.policy.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        if self.tenancy.as_ref().is_some_and(|tenancy| !tenancy.admits(call)) {
            return Err(abstention("it is outside of the namespaces of the tenant"));
        }
        if !self.scope.covers(call) {
            return Err(abstention("it is outside of the scope of the plugin"));
        }
        let reply = self.policy.call(call)?;
        match self.tenancy {
            Some(_) => held(reply),
            None => Ok(reply),
        }
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.policy.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.policy.build()
    }
}
