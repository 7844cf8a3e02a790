//! Faults of the control plane, of connections and clocks, and of the controllers themselves.

use bulkhead_controllers::flags::GoDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Plurals of the kinds whose objects the failover controllers share.
pub const RESOURCES: [&str; 4] = ["resourcebindings", "clusterresourcebindings", "clusters", "works"];

/// Plurals of the kinds that controllers list at startup.
const LISTED: [&str; 13] = [
    "resourcebindings",
    "clusterresourcebindings",
    "clusters",
    "works",
    "propagationpolicies",
    "clusterpropagationpolicies",
    "overridepolicies",
    "clusteroverridepolicies",
    "clustertaintpolicies",
    "evictionpauses",
    "clusterdrains",
    "resourceinterpretercustomizations",
    "resourceinterpreterwebhookconfigurations",
];

/// Fault that is injected once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultSpec {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Plural of the affected kind; absent means any kind that the fault can affect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// HTTP status of the error response, 400 to 599.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Number of writes that pass before the fault; for a target loss, number of seconds. Absent means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Affected member cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Member cluster that the first one cannot reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Deviation of the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<GoDuration>,
    /// Duration, for kinds that have one.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub for_: Option<GoDuration>,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The next write fails with an error status and is not applied.
    Respond,
    /// The next write does not reach the API server.
    Refuse,
    /// The next write is applied, and its response is lost.
    LoseReply,
    /// The next write is applied, and returns 504 after the duration.
    TimeOut,
    /// All watches break, and objects are listed again.
    DropWatches,
    /// Watch events are delayed for the duration: every cache is stale.
    LateWatches,
    /// Every watch event is delivered twice for the duration.
    RepeatWatches,
    /// The event history is compacted: a watch that resumes receives 410.
    Compact,
    /// All controllers crash before their next write is applied, and restart after the duration.
    CrashBeforeWrite,
    /// All controllers crash after their next write is applied, and restart after the duration.
    CrashAfterWrite,
    /// Another process becomes the leader, with empty controllers and caches.
    LeaderChange,
    /// Another process becomes the leader, and list requests are delayed for the duration, so that caches stay
    /// unsynced.
    LateLists,
    /// The control plane cannot reach the objects of a member cluster for the duration, but still sees its health.
    Partition,
    /// Two member clusters cannot reach each other for the duration: workloads that span both become unready on the
    /// second.
    PeerPartition,
    /// The controllers' clock is ahead of all others for the duration.
    ClockAhead,
    /// The controllers' clock is behind all others for the duration.
    ClockBehind,
    /// The controllers' clock steps ahead of all others permanently. Monotonic time is not affected.
    ClockStepAhead,
    /// The controllers' clock steps back behind all others permanently. Monotonic time is not affected.
    ClockStepBack,
    /// A plugin with all capabilities returns only faults for the duration.
    FailingPlugin,
    /// A plugin with all capabilities exceeds its deadline for the duration.
    SlowPlugin,
    /// A plugin with all capabilities takes seconds for each call for the duration, without failing. Decisions are
    /// delayed; leases and probes are not.
    SluggishPlugin,
    /// A plugin with all capabilities returns invalid replies for the duration.
    LyingPlugin,
    /// Every write of a kind fails for the duration, as with an unavailable admission webhook.
    WriteOutage,
    /// A person writes the object concurrently: after the controller read it, before its next write is applied.
    RacingWrite,
    /// An object is deleted and created again with the same name and another uid, before the next write of its
    /// status is applied.
    Recreate,
    /// A member cluster is joined again under its name, with another uid and without the previously applied objects.
    Rejoin,
    /// A target cluster of an eviction is lost for the duration, while the health of the new copy is being assessed.
    TargetLoss,
    /// Another process becomes the leader, and gets too little CPU for the duration to send any request.
    StarvedStart,
}

impl FaultKind {
    /// Every kind, in order of declaration.
    pub const ALL: [Self; 28] = [
        Self::Respond,
        Self::Refuse,
        Self::LoseReply,
        Self::TimeOut,
        Self::DropWatches,
        Self::LateWatches,
        Self::RepeatWatches,
        Self::Compact,
        Self::CrashBeforeWrite,
        Self::CrashAfterWrite,
        Self::LeaderChange,
        Self::LateLists,
        Self::Partition,
        Self::PeerPartition,
        Self::ClockAhead,
        Self::ClockBehind,
        Self::ClockStepAhead,
        Self::ClockStepBack,
        Self::FailingPlugin,
        Self::SlowPlugin,
        Self::SluggishPlugin,
        Self::LyingPlugin,
        Self::WriteOutage,
        Self::RacingWrite,
        Self::Recreate,
        Self::Rejoin,
        Self::TargetLoss,
        Self::StarvedStart,
    ];

    /// Returns the name used in scenarios and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Respond => "respond",
            Self::Refuse => "refuse",
            Self::LoseReply => "lose-reply",
            Self::TimeOut => "time-out",
            Self::DropWatches => "drop-watches",
            Self::LateWatches => "late-watches",
            Self::RepeatWatches => "repeat-watches",
            Self::Compact => "compact",
            Self::CrashBeforeWrite => "crash-before-write",
            Self::CrashAfterWrite => "crash-after-write",
            Self::LeaderChange => "leader-change",
            Self::LateLists => "late-lists",
            Self::Partition => "partition",
            Self::PeerPartition => "peer-partition",
            Self::ClockAhead => "clock-ahead",
            Self::ClockBehind => "clock-behind",
            Self::ClockStepAhead => "clock-step-ahead",
            Self::ClockStepBack => "clock-step-back",
            Self::FailingPlugin => "failing-plugin",
            Self::SlowPlugin => "slow-plugin",
            Self::SluggishPlugin => "sluggish-plugin",
            Self::LyingPlugin => "lying-plugin",
            Self::WriteOutage => "write-outage",
            Self::RacingWrite => "racing-write",
            Self::Recreate => "recreate",
            Self::Rejoin => "rejoin",
            Self::TargetLoss => "target-loss",
            Self::StarvedStart => "starved-start",
        }
    }

    /// Returns true if the fault has a duration.
    pub fn lasts(self) -> bool {
        match self {
            Self::Respond
            | Self::Refuse
            | Self::LoseReply
            | Self::DropWatches
            | Self::Compact
            | Self::LeaderChange
            | Self::ClockStepAhead
            | Self::ClockStepBack
            | Self::RacingWrite
            | Self::Recreate
            | Self::Rejoin => false,
            Self::TimeOut
            | Self::LateWatches
            | Self::RepeatWatches
            | Self::CrashBeforeWrite
            | Self::CrashAfterWrite
            | Self::LateLists
            | Self::Partition
            | Self::PeerPartition
            | Self::ClockAhead
            | Self::ClockBehind
            | Self::FailingPlugin
            | Self::SlowPlugin
            | Self::SluggishPlugin
            | Self::LyingPlugin
            | Self::WriteOutage
            | Self::TargetLoss
            | Self::StarvedStart => true,
        }
    }

    /// Returns true if the fault affects a single write.
    pub fn affects_single_write(self) -> bool {
        let strikes = [
            Self::Respond,
            Self::Refuse,
            Self::LoseReply,
            Self::TimeOut,
            Self::CrashBeforeWrite,
            Self::CrashAfterWrite,
            Self::RacingWrite,
            Self::Recreate,
        ];
        strikes.contains(&self)
    }

    /// Returns the plurals of the kinds that the fault can affect; empty if it does not affect objects.
    pub fn resources(self) -> &'static [&'static str] {
        let many = [
            Self::DropWatches,
            Self::LateWatches,
            Self::RepeatWatches,
            Self::Compact,
            Self::WriteOutage,
        ];
        match self {
            Self::LateLists => &LISTED,
            Self::Recreate => &["works"],
            _ if self.affects_single_write() || many.contains(&self) => &RESOURCES,
            _ => &[],
        }
    }

    /// Returns true if the fault needs a member cluster.
    pub fn has_cluster(self) -> bool {
        matches!(self, Self::Partition | Self::PeerPartition | Self::Rejoin)
    }

    /// Returns true if the fault affects the controllers' clock.
    pub fn is_of_clocks(self) -> bool {
        matches!(
            self,
            Self::ClockAhead | Self::ClockBehind | Self::ClockStepAhead | Self::ClockStepBack
        )
    }

    /// Returns true if the fault needs the faulty plugin.
    pub fn is_of_plugins(self) -> bool {
        matches!(
            self,
            Self::FailingPlugin | Self::SlowPlugin | Self::SluggishPlugin | Self::LyingPlugin
        )
    }

    /// Returns true if controllers cannot observe the member clusters while the fault lasts.
    pub fn hides_members(self) -> bool {
        let hiding = [
            Self::TimeOut,
            Self::LateWatches,
            Self::CrashBeforeWrite,
            Self::CrashAfterWrite,
            Self::LeaderChange,
            Self::LateLists,
            Self::Partition,
            Self::SluggishPlugin,
            Self::WriteOutage,
            Self::Recreate,
            Self::Rejoin,
            Self::StarvedStart,
        ];
        hiding.contains(&self)
    }
}

impl FaultSpec {
    /// Creates a fault of a kind with all other fields unset.
    pub fn of(kind: FaultKind) -> Self {
        Self {
            kind,
            resource: None,
            code: None,
            after: None,
            cluster: None,
            peer: None,
            by: None,
            for_: None,
        }
    }

    /// Returns a message if fields are missing, surplus or out of range.
    pub fn mistake(&self) -> Option<String> {
        let kind = self.kind.as_str();
        let fields = [
            ("code", self.kind == FaultKind::Respond, self.code.is_some()),
            ("for", self.kind.lasts(), self.for_.is_some()),
            ("cluster", self.kind.has_cluster(), self.cluster.is_some()),
            ("peer", self.kind == FaultKind::PeerPartition, self.peer.is_some()),
            ("by", self.kind.is_of_clocks(), self.by.is_some()),
        ];
        if let Some((field, needs, _)) = fields.into_iter().find(|(_, needs, given)| needs != given) {
            return Some(format!(
                "kind {kind} {} {field}",
                if needs { "needs" } else { "has no" }
            ));
        }
        if self.code.is_some_and(|code| !(400..600).contains(&code)) {
            return Some("code must be from 400 to 599".to_owned());
        }
        if self.after.is_some() && !self.kind.affects_single_write() && self.kind != FaultKind::TargetLoss {
            return Some(format!("kind {kind} has no after: it strikes at once"));
        }
        if self.peer.is_some() && self.peer == self.cluster {
            return Some("cluster and peer must be two clusters".to_owned());
        }
        let resources = self.kind.resources();
        match &self.resource {
            Some(_) if resources.is_empty() => Some(format!("kind {kind} has no resource")),
            Some(resource) if !resources.contains(&resource.as_str()) => Some(format!(
                "kind {kind} has no resource {resource:?}; there are {}",
                resources.join(", ")
            )),
            _ => None,
        }
    }

    /// Returns a one-line description.
    pub fn describe(&self) -> String {
        let code = self.code.map(|code| format!(" {code}")).unwrap_or_default();
        let about = [&self.resource, &self.cluster, &self.peer].into_iter().flatten();
        let about: String = about.flat_map(|name| [" ", name]).collect();
        let unit = if self.kind == FaultKind::TargetLoss {
            "seconds"
        } else {
            "writes"
        };
        let after = self
            .after
            .map(|count| format!(" after {count} {unit}"))
            .unwrap_or_default();
        let by = self.by.map(|time| format!(" by {time}")).unwrap_or_default();
        let lasts = self.for_.map(|time| format!(" for {time}")).unwrap_or_default();
        format!("{}{code}{about}{after}{by}{lasts}", self.kind.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_needs_what_its_kind_needs_and_has_nothing_else() {
        let check = |text: &str, expected: Option<&str>| {
            let fault: FaultSpec = serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(fault.mistake().as_deref(), expected, "{text}");
        };
        check("{kind: respond, code: 409, resource: works, after: 3}", None);
        check("{kind: respond}", Some("kind respond needs code"));
        check("{kind: respond, code: 200}", Some("code must be from 400 to 599"));
        check("{kind: late-watches}", Some("kind late-watches needs for"));
        check("{kind: compact, for: 1s}", Some("kind compact has no for"));
        check(
            "{kind: compact, after: 1}",
            Some("kind compact has no after: it strikes at once"),
        );
        check("{kind: partition, for: 5s}", Some("kind partition needs cluster"));
        check("{kind: partition, cluster: a, for: 5s}", None);
        check(
            "{kind: peer-partition, cluster: a, for: 5s}",
            Some("kind peer-partition needs peer"),
        );
        check(
            "{kind: peer-partition, cluster: a, peer: a, for: 5s}",
            Some("cluster and peer must be two clusters"),
        );
        check("{kind: clock-ahead, for: 5s}", Some("kind clock-ahead needs by"));
        check("{kind: clock-behind, by: 1h, for: 5s}", None);
        check(
            "{kind: leader-change, resource: works}",
            Some("kind leader-change has no resource"),
        );
        check(
            "{kind: time-out, for: 5s, resource: pods}",
            Some(
                "kind time-out has no resource \"pods\"; there are resourcebindings, clusterresourcebindings, clusters, \
                 works",
            ),
        );
        check("{kind: target-loss, for: 5s, after: 3}", None);
        check("{kind: rejoin}", Some("kind rejoin needs cluster"));
        check("{kind: clock-step-ahead, by: 1h}", None);
        check(
            "{kind: recreate, resource: clusters}",
            Some("kind recreate has no resource \"clusters\"; there are works"),
        );
        check("{kind: late-lists, for: 5s, resource: propagationpolicies}", None);
        check("{kind: late-lists}", Some("kind late-lists needs for"));
    }
}
