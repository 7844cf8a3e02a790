//! Leader election by Lease, with the rules of client-go: who holds the lease writes, everybody else waits.
//!
//! The time at which another may take over is measured by each candidate from when it saw the last renewal, on its
//! own clock. The holder stops writing earlier than that, counted from before its renewal was sent.

use std::time::Duration;

use bulkhead_controllers::WritePermit;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

/// How an election goes.
#[derive(Clone, Debug)]
pub(super) struct Election {
    /// Namespace of the Lease.
    pub(super) namespace: String,
    /// Name of the Lease.
    pub(super) name: String,
    /// This candidate; different for every process.
    pub(super) identity: String,
    /// How long others wait after the last renewal that they saw.
    pub(super) lease_duration: Duration,
    /// How long the holder writes after its last renewal; shorter than the lease.
    pub(super) renew_deadline: Duration,
    /// How often to try.
    pub(super) retry_period: Duration,
    /// The modes of this candidate, which it writes into the Lease.
    pub(super) modes: String,
}

/// Annotation of the Lease: the modes of its holder.
pub(crate) const MODES: &str = "bulkhead.dev/modes";

/// A candidate. Its own client needs no permit: it writes nothing but the Lease.
pub(super) struct Candidate {
    election: Election,
    leases: Api<Lease>,
    permit: WritePermit,
    /// The Lease as last seen, and when it was first seen like that.
    seen: Option<(Lease, Instant)>,
}

impl Candidate {
    pub(super) fn new(election: Election, client: Client, permit: WritePermit) -> Self {
        let leases = Api::namespaced(client, &election.namespace);
        Self { election, leases, permit, seen: None }
    }

    /// Waits until this candidate holds the lease. `waiting` is told who does, whenever that changes. Returns the modes
    /// of the one before, if they were others.
    pub(super) async fn acquire(&mut self, mut waiting: impl FnMut(&str)) -> Option<String> {
        let (mut told, mut before) = (String::new(), None);
        loop {
            let seen = self.others_modes();
            let why = match self.attempt().await {
                Ok(None) => return seen.or(before),
                Ok(Some(holder)) => {
                    before = self.others_modes();
                    let modes = before.as_ref().map(|modes| {
                        format!(
                            " in mode {modes}, and this process is for mode {}: all processes of one lease should have \
                             the same --mode, and other installations a --leader-elect-resource-name of their own",
                            self.election.modes
                        )
                    });
                    format!("{holder} holds the lease {}{}", self.lease(), modes.unwrap_or_default())
                }
                Err(error) => format!("the lease {} cannot be had: {error}", self.lease()),
            };
            if why != told {
                waiting(&why);
                told = why;
            }
            tokio::time::sleep(self.election.retry_period).await;
        }
    }

    /// Renews for as long as that works, and returns why it does not any more. The permit has ended by then.
    pub(super) async fn hold(&mut self) -> String {
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(self.election.retry_period).await;
            let left = self.election.renew_deadline.saturating_sub(last.elapsed());
            let started = Instant::now();
            let lost = match tokio::time::timeout(left, self.attempt()).await {
                Ok(Ok(None)) => {
                    last = started;
                    continue;
                }
                Ok(Ok(Some(holder))) => format!("{holder} holds the lease {} now", self.lease()),
                Ok(Err(_)) if last.elapsed() < self.election.renew_deadline => continue,
                Ok(Err(error)) => format!("the lease {} could not be renewed: {error}", self.lease()),
                Err(_) => format!("the lease {} could not be renewed in time", self.lease()),
            };
            self.permit.revoke();
            return lost;
        }
    }

    /// Gives the lease up, so that nobody has to wait for it.
    pub(super) async fn release(&mut self) {
        self.permit.revoke();
        let Some((mut lease, _)) = self.seen.take() else { return };
        if let Some(spec) = &mut lease.spec
            && spec.holder_identity.as_deref() == Some(&self.election.identity)
        {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            let parameters = PostParams::default();
            let replaced = self.leases.replace(&self.election.name, &parameters, &lease);
            // Whoever cannot give it up lets it run out.
            let _ = tokio::time::timeout(self.election.retry_period, replaced).await;
        }
    }

    /// The modes that the Lease was last written with, if they are not those of this candidate.
    fn others_modes(&self) -> Option<String> {
        let (lease, _) = self.seen.as_ref()?;
        let modes = lease.metadata.annotations.as_ref()?.get(MODES)?;
        (*modes != self.election.modes).then(|| modes.clone())
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.election.namespace, self.election.name)
    }

    /// Takes or renews the lease. Returns who else holds it, or nobody.
    async fn attempt(&mut self) -> Result<Option<String>, String> {
        let asked = Instant::now();
        let current = self.leases.get_opt(&self.election.name).await.map_err(|error| error.to_string())?;
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        if let Some(current) = &current
            && self.seen.as_ref().is_none_or(|(seen, _)| version(seen) != version(current))
        {
            self.seen = Some((current.clone(), Instant::now()));
        }
        let spec = current.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let ours = holder == self.election.identity;
        if !ours && !holder.is_empty() && !self.has_run_out(&spec) {
            return Ok(Some(holder));
        }
        let now = MicroTime(super::now());
        let next = LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.election.lease_duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: if ours { spec.acquire_time.clone() } else { Some(now.clone()) },
            lease_transitions: Some(spec.lease_transitions.unwrap_or(0) + i32::from(!ours && current.is_some())),
            renew_time: Some(now),
            ..spec
        };
        let written = if let Some(mut lease) = current {
            lease.spec = Some(next);
            lease.metadata.annotations.get_or_insert_default().insert(MODES.to_owned(), self.election.modes.clone());
            self.leases.replace(&self.election.name, &PostParams::default(), &lease).await
        } else {
            let annotations = Some([(MODES.to_owned(), self.election.modes.clone())].into());
            let metadata = ObjectMeta { name: Some(self.election.name.clone()), annotations, ..ObjectMeta::default() };
            self.leases.create(&PostParams::default(), &Lease { metadata, spec: Some(next) }).await
        };
        match written {
            Ok(lease) => {
                self.seen = Some((lease, Instant::now()));
                self.permit.extend(asked + self.election.renew_deadline);
                Ok(None)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some("another candidate".to_owned())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn has_run_out(&self, spec: &LeaseSpec) -> bool {
        let lasts = Duration::from_secs(spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0));
        self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= lasts)
    }
}
