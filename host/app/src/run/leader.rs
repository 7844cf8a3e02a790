//! Leader election by Lease, with the rules of client-go: the holder of the lease writes, the others wait.
//!
//! Each candidate measures the expiry of the lease on its own clock, from the time at which it observed the last
//! renewal. The holder stops writing earlier, measured from before it sent its renewal, by a clock that includes the
//! time for which the machine is suspended.

use std::time::Duration;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_controllers::{WritePermit, causes};
use clap::Args;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::mode::Modes;
use super::usage_error::UsageError;

#[derive(Args)]
#[command(next_help_heading = "Leader election")]
pub(super) struct ElectionArguments {
    /// Enable leader election among several processes.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "true|false")]
    pub(super) leader_elect: bool,

    /// Namespace of the Lease.
    #[arg(long, default_value = "karmada-system", value_name = "NAMESPACE")]
    pub(super) leader_elect_resource_namespace: String,

    /// Name of the Lease.
    #[arg(long, default_value = "bulkhead", value_name = "NAME")]
    pub(super) leader_elect_resource_name: String,

    /// Time after the last observed renewal before another candidate takes over, in whole seconds.
    #[arg(long, default_value = "15s", value_name = "DURATION")]
    pub(super) leader_elect_lease_duration: GoDuration,

    /// Time after its last renewal for which the leader continues, in whole seconds.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub(super) leader_elect_renew_deadline: GoDuration,

    /// Interval between attempts to acquire or renew the lease.
    #[arg(long, default_value = "2s", value_name = "DURATION")]
    pub(super) leader_elect_retry_period: GoDuration,
}

/// Settings of an election.
#[derive(Clone, Debug)]
pub(super) struct Election {
    /// Namespace of the Lease.
    pub(super) namespace: String,
    /// Name of the Lease.
    pub(super) name: String,
    /// Identity of this candidate, unique per process.
    pub(super) identity: String,
    /// Time after the last observed renewal before another candidate takes over.
    pub(super) lease_duration: Duration,
    /// Time after its last renewal for which the leader writes; shorter than the lease duration.
    pub(super) renew_deadline: Duration,
    /// Interval between attempts.
    pub(super) retry_period: Duration,
    /// Modes of this candidate, recorded in the Lease.
    pub(super) modes: String,
}

/// Annotation of the Lease with the modes of its holder.
pub(crate) const MODES: &str = "bulkhead.dev/modes";

impl ElectionArguments {
    /// Validates the arguments.
    ///
    /// # Errors
    ///
    /// A [`UsageError`] of an argument that conflicts with the others.
    pub(super) fn check(&self, modes: &Modes) -> Result<Election, UsageError> {
        let (lease, renew, retry) =
            (self.leader_elect_lease_duration.0, self.leader_elect_renew_deadline.0, self.leader_elect_retry_period.0);
        // A Lease has a resolution of one second: with fractions, others would take over before the holder stops.
        for (name, duration) in [("leader-elect-lease-duration", lease), ("leader-elect-renew-deadline", renew)] {
            if duration.is_zero() || duration.subsec_nanos() != 0 {
                return Err(UsageError::new(name, "must be whole seconds, at least 1s: a Lease counts in seconds"));
            }
        }
        if lease <= renew {
            let why = format!(
                "must be longer than leader-elect-renew-deadline, which is {}",
                self.leader_elect_renew_deadline
            );
            return Err(UsageError::new("leader-elect-lease-duration", why));
        }
        if renew <= retry {
            let why =
                format!("must be longer than leader-elect-retry-period, which is {}", self.leader_elect_retry_period);
            return Err(UsageError::new("leader-elect-renew-deadline", why));
        }
        if retry.is_zero() {
            return Err(UsageError::new("leader-elect-retry-period", "must be greater than 0"));
        }
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "bulkhead".to_owned());
        Ok(Election {
            namespace: self.leader_elect_resource_namespace.clone(),
            name: self.leader_elect_resource_name.clone(),
            identity: format!("{host}_{}", uuid::Uuid::new_v4()),
            lease_duration: lease,
            renew_deadline: renew,
            retry_period: retry,
            modes: modes.names(),
        })
    }
}

/// Maximum number of consecutive write conflicts on the Lease.
const CONFLICTS_MAX: usize = 5;

/// Candidate of the election. Its client needs no permit, because it writes the Lease only.
pub(super) struct Candidate {
    election: Election,
    leases: Api<Lease>,
    permit: WritePermit,
    /// Last observed Lease, and the time at which its spec was first observed.
    seen: Option<(Lease, Instant)>,
}

impl Candidate {
    pub(super) fn new(election: Election, client: Client, permit: WritePermit) -> Self {
        let leases = Api::namespaced(client, &election.namespace);
        Self { election, leases, permit, seen: None }
    }

    /// Waits until this candidate holds the lease. Calls `waiting` with the current holder whenever it changes.
    /// Returns the modes of the previous holder, if they differ.
    pub(super) async fn acquire(&mut self, mut waiting: impl FnMut(&str) + Send) -> Option<String> {
        let (mut logged, mut before) = (String::new(), None);
        loop {
            let seen = self.others_modes();
            let why = match self.attempt().await {
                Ok(None) => return seen.or(before),
                Ok(Some(holder)) => {
                    before = self.others_modes();
                    let modes = before.as_ref().map(|modes| {
                        format!(
                            " in mode {modes}, and this process runs in mode {}: all processes of one lease should have \
                             the same --mode, and other installations a --leader-elect-resource-name of their own",
                            self.election.modes
                        )
                    });
                    format!("{holder} holds the lease {}{}", self.lease(), modes.unwrap_or_default())
                }
                Err(error) => format!("the lease {} cannot be acquired: {error}", self.lease()),
            };
            if why != logged {
                waiting(&why);
                logged = why;
            }
            tokio::time::sleep(self.election.retry_period).await;
        }
    }

    /// Renews the lease until that fails, and returns the reason. The permit is revoked by then.
    pub(super) async fn hold(&mut self) -> String {
        let clock = self.permit.clock().clone();
        let (mut last, mut journal) = (clock.now(), Progress::default());
        loop {
            tokio::time::sleep(self.election.retry_period).await;
            let started = clock.now();
            let remaining = self.election.renew_deadline.saturating_sub(started.saturating_sub(last));
            let waiting = self.permit.journal_barrier().waiting();
            let lost = if journal.stands_for(waiting, Instant::now()) > self.election.renew_deadline {
                // Every write waits for the journal; another process may have a writable one.
                "decisions wait to be recorded, and the disk of the journal does not answer".to_owned()
            } else {
                match tokio::time::timeout(remaining, self.attempt()).await {
                    Ok(Ok(None)) => {
                        last = started;
                        continue;
                    }
                    Ok(Ok(Some(holder))) => format!("{holder} holds the lease {} now", self.lease()),
                    Ok(Err(_)) if clock.now().saturating_sub(last) < self.election.renew_deadline => continue,
                    Ok(Err(error)) => format!("the lease {} could not be renewed: {error}", self.lease()),
                    Err(_) => format!("the lease {} could not be renewed in time", self.lease()),
                }
            };
            self.permit.revoke();
            return lost;
        }
    }

    /// Returns true if this candidate held the lease when it was last read.
    pub(super) fn holds(&self) -> bool {
        let spec = self.seen.as_ref().and_then(|(lease, _)| lease.spec.as_ref());
        spec.is_some_and(|spec| spec.holder_identity.as_deref() == Some(&self.election.identity))
    }

    /// Releases the lease, so that no other candidate has to wait for its expiry.
    pub(super) async fn release(&mut self) {
        self.permit.revoke();
        if self.seen.is_some() {
            // If the release fails, the lease expires.
            let _ = tokio::time::timeout(self.election.retry_period, self.give_up()).await;
        }
    }

    /// Clears the holder of the Lease. Reads it first: the known version may be stale if a renewal was interrupted.
    async fn give_up(&self) -> kube::Result<()> {
        loop {
            let Some(mut lease) = self.leases.get_opt(&self.election.name).await? else { return Ok(()) };
            let Some(spec) = &mut lease.spec else { return Ok(()) };
            if spec.holder_identity.as_deref() != Some(&self.election.identity) {
                return Ok(());
            }
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            match self.leases.replace(&self.election.name, &PostParams::default(), &lease).await {
                Err(error) if is_conflict(&error) => {}
                replaced => return replaced.map(drop),
            }
        }
    }

    /// Returns the modes in the observed Lease, if they differ from those of this candidate.
    fn others_modes(&self) -> Option<String> {
        let (lease, _) = self.seen.as_ref()?;
        let modes = lease.metadata.annotations.as_ref()?.get(MODES)?;
        (*modes != self.election.modes).then(|| modes.clone())
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.election.namespace, self.election.name)
    }

    /// Acquires or renews the lease. Returns the holder if it is another candidate.
    async fn attempt(&mut self) -> Result<Option<String>, String> {
        for _ in 0..CONFLICTS_MAX {
            match self.write().await {
                // Concurrent write: by another candidate, or by a person who annotates the Lease.
                Err(error) if is_conflict(&error) => {}
                outcome => return outcome.map_err(|error| causes(&error)),
            }
        }
        Err(format!("others wrote it at the same time, {CONFLICTS_MAX} times in a row"))
    }

    /// Acquires or renews the lease in one attempt. Returns the holder if it is another candidate.
    async fn write(&mut self) -> kube::Result<Option<String>> {
        let asked = self.permit.clock().now();
        let current = self.leases.get_opt(&self.election.name).await?;
        if let Some(current) = &current {
            // Only a change of the spec counts as a renewal.
            let since = self.seen.take().filter(|(seen, _)| seen.spec == current.spec).map(|(_, since)| since);
            self.seen = Some((current.clone(), since.unwrap_or_else(Instant::now)));
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
            self.leases.replace(&self.election.name, &PostParams::default(), &lease).await?
        } else {
            let annotations = Some([(MODES.to_owned(), self.election.modes.clone())].into());
            let metadata = ObjectMeta { name: Some(self.election.name.clone()), annotations, ..ObjectMeta::default() };
            self.leases.create(&PostParams::default(), &Lease { metadata, spec: Some(next) }).await?
        };
        self.seen = Some((written, Instant::now()));
        self.permit.extend(asked + self.election.renew_deadline);
        Ok(None)
    }

    fn has_run_out(&self, spec: &LeaseSpec) -> bool {
        let lasts = Duration::from_secs(spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0));
        self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= lasts)
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Progress of the records that wait for the journal.
#[derive(Default)]
struct Progress(Option<(u64, Instant)>);

impl Progress {
    /// Returns the time without progress while records were pending. `waiting` is the number of written records if
    /// others are pending.
    fn stands_for(&mut self, waiting: Option<u64>, now: Instant) -> Duration {
        let before = self.0.filter(|(stored, _)| waiting == Some(*stored));
        self.0 = before.or(waiting.map(|stored| (stored, now)));
        self.0.map_or(Duration::ZERO, |(_, since)| now - since)
    }
}

#[cfg(test)]
mod tests;
