//! Leader election by Lease, with the rules of client-go: the holder of the lease writes, the others wait.
//!
//! Each candidate measures the expiry of the lease on its own clock, from the time at which it observed the last
//! renewal. The holder stops writing earlier, measured from before it sent its renewal, by a clock that includes the
//! time for which the machine is suspended.

use std::time::Duration;

use bulkhead_controllers::clock_handover::{self, ObservedRenewal};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_runtime::causes::causes;
use bulkhead_runtime::clock::{Clock, ClockReading};
use bulkhead_runtime::connection::WritePermit;
use bulkhead_runtime::controller::is_conflict;
use clap::Args;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::mode::Modes;
use super::queries::advertised::Advertised;
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

    /// Interval between attempts to renew the lease; a waiting candidate reads it four times as often.
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
    /// Address at which this candidate answers queries, recorded in the Lease.
    pub(super) queries: Option<Advertised>,
}

impl Election {
    /// Returns the election of a candidate that answers queries.
    pub(super) fn advertising(self, queries: Option<&Advertised>) -> Self {
        Self {
            queries: queries.cloned(),
            ..self
        }
    }
}

/// Annotation of the Lease with the modes of its holder.
pub const MODES: &str = "bulkhead.dev/modes";

impl ElectionArguments {
    /// Validates the arguments.
    ///
    /// # Errors
    ///
    /// A [`UsageError`] of an argument that conflicts with the others.
    pub(super) fn check(&self, modes: &Modes) -> Result<Election, UsageError> {
        let (lease, renew, retry) = (
            self.leader_elect_lease_duration.0,
            self.leader_elect_renew_deadline.0,
            self.leader_elect_retry_period.0,
        );
        // A Lease has a resolution of one second: with fractions, others would take over before the holder stops.
        for (name, duration) in [
            ("leader-elect-lease-duration", lease),
            ("leader-elect-renew-deadline", renew),
        ] {
            if duration.is_zero() || duration.subsec_nanos() != 0 {
                return Err(UsageError::new(
                    name,
                    "must be whole seconds, at least 1s: a Lease counts in seconds",
                ));
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
            let why = format!(
                "must be longer than leader-elect-retry-period, which is {}",
                self.leader_elect_retry_period
            );
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
            queries: None,
        })
    }
}

/// Reads of the Lease by a waiting candidate per retry period: a holder that releases the lease is followed in a
/// quarter of the period, and its renewals are dated as exactly.
const READS_PER_RETRY: u32 = 4;

/// Maximum number of consecutive write conflicts on the Lease.
const CONFLICTS_MAX: usize = 5;

/// Candidate of the election. Its client needs no permit, because it writes the Lease only.
pub(super) struct Candidate {
    election: Election,
    leases: Api<Lease>,
    permit: WritePermit,
    /// Decision clock of the process, which continues that of the previous holder.
    clock: Clock,
    seen: Option<Seen>,
    /// True once this process has held the lease.
    elected: bool,
    /// Log line about the adjustment of the clock at the election.
    adjusted: Option<String>,
}

/// Last observed Lease.
struct Seen {
    lease: Lease,
    /// Time at which its spec was first observed.
    since: Instant,
    /// Time of the last read.
    read: Instant,
    /// Time between the read before and the first read of this spec, if there was one.
    unseen_max: Option<Duration>,
}

/// Circumstances of an election.
pub(super) struct Elected {
    /// Modes of the previous holder, if they differ.
    pub(super) modes_before: Option<String>,
    /// Log line about the decision clock, if it was adjusted or the previous holder's could not be read.
    pub(super) clock: Option<String>,
}

/// Smallest adjustment of the decision clock that is logged.
const ADJUSTMENT_LOGGED_MS: u64 = 1_000;

impl Candidate {
    pub(super) fn new(election: Election, client: Client, permit: WritePermit, clock: Clock) -> Self {
        let leases = Api::namespaced(client, &election.namespace);
        Self {
            election,
            leases,
            permit,
            clock,
            seen: None,
            elected: false,
            adjusted: None,
        }
    }

    /// Waits until this candidate holds the lease. Calls `waiting` with the current holder whenever it changes.
    pub(super) async fn acquire(&mut self, mut waiting: impl FnMut(&str) + Send) -> Elected {
        let (mut logged, mut before) = (String::new(), None);
        loop {
            let seen = self.others_modes();
            let mut pause = self.election.retry_period;
            let why = match self.attempt().await {
                Ok(None) => {
                    return Elected {
                        modes_before: seen.or(before),
                        clock: self.adjusted.take(),
                    };
                }
                Ok(Some(holder)) => {
                    pause = self.until_next_read();
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
            tokio::time::sleep(pause).await;
        }
    }

    /// Renews the lease until that fails, and returns the reason. The permit is revoked by then.
    pub(super) async fn hold(&mut self) -> String {
        let clock = self.permit.clock().clone();
        let (mut last, mut journal) = (clock.now(), Progress::default());
        loop {
            tokio::time::sleep(self.election.retry_period).await;
            let started = clock.now();
            let remaining = self
                .election
                .renew_deadline
                .saturating_sub(started.saturating_sub(last));
            let waiting = self.permit.journal_barrier().waiting();
            let lost = if journal.stalled_for(waiting, Instant::now()) > self.election.renew_deadline {
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
        let spec = self.seen.as_ref().and_then(|seen| seen.lease.spec.as_ref());
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
            let Some(mut lease) = self.leases.get_opt(&self.election.name).await? else {
                return Ok(());
            };
            let Some(spec) = &mut lease.spec else { return Ok(()) };
            if spec.holder_identity.as_deref() != Some(&self.election.identity) {
                return Ok(());
            }
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            clock_handover::stamp(&mut lease, self.clock.read());
            match self
                .leases
                .replace(&self.election.name, &PostParams::default(), &lease)
                .await
            {
                Err(error) if is_conflict(&error) => {}
                replaced => return replaced.map(drop),
            }
        }
    }

    /// Returns the modes in the observed Lease, if they differ from those of this candidate.
    fn others_modes(&self) -> Option<String> {
        let modes = self.seen.as_ref()?.lease.metadata.annotations.as_ref()?.get(MODES)?;
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
        Err(format!(
            "others wrote it at the same time, {CONFLICTS_MAX} times in a row"
        ))
    }

    /// Acquires or renews the lease in one attempt. Returns the holder if it is another candidate.
    async fn write(&mut self) -> kube::Result<Option<String>> {
        let asked = self.permit.clock().now();
        let current = self.leases.get_opt(&self.election.name).await?;
        let (own, read) = (self.clock.read(), Instant::now());
        if let Some(current) = &current {
            self.observe(current, read);
        }
        let spec = current
            .as_ref()
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let ours = holder == self.election.identity;
        if !ours && !holder.is_empty() && !self.has_run_out(&spec) {
            return Ok(Some(holder));
        }
        let start = if self.elected { Ok(None) } else { self.start(own) };
        let time = start.as_ref().ok().copied().flatten().unwrap_or(own.time);
        let next = LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.election.lease_duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: if ours {
                spec.acquire_time.clone()
            } else {
                Some(MicroTime(own.wall))
            },
            lease_transitions: Some(spec.lease_transitions.unwrap_or(0) + i32::from(!ours && current.is_some())),
            ..spec
        };
        let exists = current.is_some();
        let mut lease = current.unwrap_or_else(|| {
            let metadata = ObjectMeta {
                name: Some(self.election.name.clone()),
                ..ObjectMeta::default()
            };
            Lease { metadata, spec: None }
        });
        lease.spec = Some(next);
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(MODES.to_owned(), self.election.modes.clone());
        Advertised::write(self.election.queries.as_ref(), annotations);
        // The new holder's clock is recorded in the write that elects it.
        clock_handover::stamp(&mut lease, ClockReading { time, ..own });
        let parameters = PostParams::default();
        let written = if exists {
            self.leases.replace(&self.election.name, &parameters, &lease).await?
        } else {
            self.leases.create(&parameters, &lease).await?
        };
        if !self.elected {
            self.elected = true;
            self.adjusted = adjustment(&start, own);
            if let Ok(Some(start)) = start {
                self.clock.continue_from(start, read);
            }
        }
        let now = Instant::now();
        self.seen = Some(Seen {
            lease: written,
            since: now,
            read: now,
            unseen_max: Some(Duration::ZERO),
        });
        self.permit.extend(asked + self.election.renew_deadline);
        Ok(None)
    }

    /// Records a read of the Lease. Only a change of the spec counts as a renewal.
    fn observe(&mut self, lease: &Lease, read: Instant) {
        let lease = lease.clone();
        self.seen = Some(match self.seen.take() {
            Some(before) if before.lease.spec == lease.spec => Seen { lease, read, ..before },
            before => Seen {
                lease,
                since: read,
                read,
                unseen_max: before.map(|before| read - before.read),
            },
        });
    }

    /// Returns the time at which the decision clock continues that of the previous holder, see [`clock_handover`].
    fn start(&self, own: ClockReading) -> Result<Option<Timestamp>, String> {
        let Some(seen) = &self.seen else { return Ok(None) };
        let renewal = ObservedRenewal {
            seen_for: seen.read - seen.since,
            unseen_max: seen.unseen_max,
        };
        clock_handover::start(&seen.lease, renewal, own)
    }

    fn has_run_out(&self, spec: &LeaseSpec) -> bool {
        self.seen
            .as_ref()
            .is_some_and(|seen| seen.since.elapsed() >= lasts(spec))
    }

    /// Returns the time until a waiting candidate reads the Lease again: at the latest when it runs out.
    fn until_next_read(&self) -> Duration {
        let interval = self.election.retry_period / READS_PER_RETRY;
        let left = self.seen.as_ref().and_then(|seen| {
            let lasts = lasts(seen.lease.spec.as_ref()?);
            Some(lasts.saturating_sub(seen.since.elapsed()))
        });
        // A Lease that has run out is taken by the read that finds it so.
        let left = left.filter(|left| !left.is_zero());
        left.map_or(interval, |left| left.min(interval))
    }
}

/// Returns the time for which a Lease is valid after a renewal.
fn lasts(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// Formats the log line for the start of the decision clock; `None` if it is nearly its own time.
fn adjustment(start: &Result<Option<Timestamp>, String>, own: ClockReading) -> Option<String> {
    let start = match start {
        Ok(start) => (*start)?,
        Err(error) => {
            return Some(format!(
                "the previous leader's decision clock is not continued: {error}"
            ));
        }
    };
    let seconds = |ms: i64, behind: &str, ahead: &str| {
        format!("{} s {}", ms.unsigned_abs() / 1000, if ms < 0 { behind } else { ahead })
    };
    let by_ms = millis_between(own.time, start);
    (by_ms.unsigned_abs() >= ADJUSTMENT_LOGGED_MS).then(|| {
        format!(
            "the decision clock continues that of the previous leader: it is set {}, and is {} the wall clock; grace \
             periods and tolerations keep their length",
            seconds(by_ms, "back", "ahead"),
            seconds(millis_between(own.wall, start), "behind", "ahead of")
        )
    })
}

/// Returns the milliseconds from `earlier` to `later`, negative if they are in the other order.
fn millis_between(earlier: Timestamp, later: Timestamp) -> i64 {
    later.as_millisecond() - earlier.as_millisecond()
}

/// Progress of the records that wait for the journal.
#[derive(Default)]
struct Progress(Option<(u64, Instant)>);

impl Progress {
    /// Returns the time without progress while records were pending. `waiting` is the number of written records if
    /// others are pending.
    fn stalled_for(&mut self, waiting: Option<u64>, now: Instant) -> Duration {
        let before = self.0.filter(|(stored, _)| waiting == Some(*stored));
        self.0 = before.or(waiting.map(|stored| (stored, now)));
        self.0.map_or(Duration::ZERO, |(_, since)| now - since)
    }
}

#[cfg(test)]
mod tests;
