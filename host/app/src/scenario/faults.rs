//! What can go wrong with the control plane, with connections and clocks, and with the controllers themselves.

use bulkhead_controllers::flags::GoDuration;
use serde::{Deserialize, Serialize};

/// Kinds whose objects the controllers of a failover share, by their plural.
pub const RESOURCES: [&str; 4] = ["resourcebindings", "clusterresourcebindings", "clusters", "works"];

/// What controllers list as they start, by its plural.
const LISTED: [&str; 11] = [
    "resourcebindings",
    "clusterresourcebindings",
    "clusters",
    "works",
    "propagationpolicies",
    "clusterpropagationpolicies",
    "clustertaintpolicies",
    "evictionpauses",
    "clusterdrains",
    "resourceinterpretercustomizations",
    "resourceinterpreterwebhookconfigurations",
];

/// Something that goes wrong, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Which objects it is about, by the plural of their kind; absent is any of [`FaultKind::resources`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// HTTP status of a request that is answered with an error, 400 to 599.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// How many writes it lets pass before it strikes, for a target loss how many seconds; absent is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The member cluster that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The member cluster that the first one cannot reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// How far a clock is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<GoDuration>,
    /// How long it lasts, for what lasts.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub for_: Option<GoDuration>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The next write is answered with an error and not carried out.
    Respond,
    /// The next write does not reach the API server.
    Refuse,
    /// The next write is carried out, and its answer is lost.
    LoseReply,
    /// The next write is carried out, and answered with 504 after a time.
    TimeOut,
    /// All watches break, and objects are listed again.
    DropWatches,
    /// Changes are not told for a time: every cache is stale.
    LateWatches,
    /// Every change is told twice for a time.
    RepeatWatches,
    /// The history of changes is forgotten: a watch that resumes gets 410.
    Compact,
    /// All controllers die before their next write is carried out, and come back later.
    CrashBeforeWrite,
    /// All controllers die after their next write was carried out, and come back later.
    CrashAfterWrite,
    /// Another process takes over: controllers and caches start from nothing.
    LeaderChange,
    /// Another process takes over, and lists are answered only after a time, so that what they tell is not known yet.
    LateLists,
    /// The control plane reaches no object of a member cluster for a time, whose health it still sees.
    Partition,
    /// Two member clusters cannot reach each other for a time: what spans both stops being ready on the second.
    PeerPartition,
    /// The clock of the controllers is ahead of all others for a time.
    ClockAhead,
    /// The clock of the controllers is behind all others for a time.
    ClockBehind,
    /// The clock of the controllers steps ahead of all others, and stays there. Monotonic time goes on.
    ClockStepAhead,
    /// The clock of the controllers steps back behind all others, and stays there. Monotonic time goes on.
    ClockStepBack,
    /// A plugin that is asked everything answers nothing but faults for a time.
    FailingPlugin,
    /// A plugin that is asked everything runs into its deadline for a time.
    SlowPlugin,
    /// A plugin that is asked everything takes seconds for each call for a time, and does not fail. Decisions wait for
    /// it; leases and probes do not.
    SluggishPlugin,
    /// A plugin that is asked everything answers what cannot be true for a time.
    LyingPlugin,
    /// Every write of a kind is answered with an error for a time, as behind an admission webhook that is down.
    WriteOutage,
    /// A person writes the object at the same moment: after the controller read it, before its next write is carried out.
    RacingWrite,
    /// An object is deleted and created again under its name, with another uid, before the next write of its status is
    /// carried out.
    Recreate,
    /// A member cluster is joined again under its name: another uid, and nothing left of what was put there.
    Rejoin,
    /// A cluster that an eviction moves to is lost for a time, while its new copy is being judged.
    TargetLoss,
    /// Another process takes over, and gets too little CPU for a time to send any request.
    StarvedStart,
}

impl FaultKind {
    /// Every kind, in the order of declaration.
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

    /// The spelling used in scenarios and on the command line.
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

    /// Whether it lasts for a time.
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

    /// Whether it strikes one write.
    pub fn strikes_a_write(self) -> bool {
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

    /// Of which kinds of objects it can be about one, by their plurals; none if it is about no objects.
    pub fn resources(self) -> &'static [&'static str] {
        let many = [Self::DropWatches, Self::LateWatches, Self::RepeatWatches, Self::Compact, Self::WriteOutage];
        match self {
            Self::LateLists => &LISTED,
            Self::Recreate => &["works"],
            _ if self.strikes_a_write() || many.contains(&self) => &RESOURCES,
            _ => &[],
        }
    }

    /// Whether it is about a member cluster.
    pub fn has_cluster(self) -> bool {
        matches!(self, Self::Partition | Self::PeerPartition | Self::Rejoin)
    }

    /// Whether it is about a clock.
    pub fn is_of_clocks(self) -> bool {
        matches!(self, Self::ClockAhead | Self::ClockBehind | Self::ClockStepAhead | Self::ClockStepBack)
    }

    /// Whether it needs the plugin that fails.
    pub fn is_of_plugins(self) -> bool {
        matches!(self, Self::FailingPlugin | Self::SlowPlugin | Self::SluggishPlugin | Self::LyingPlugin)
    }

    /// Whether controllers cannot know what goes on in the member clusters as long as it lasts.
    pub fn blinds(self) -> bool {
        let blinds = [
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
        blinds.contains(&self)
    }
}

impl FaultSpec {
    /// A fault of a kind with nothing else said about it.
    pub fn of(kind: FaultKind) -> Self {
        Self { kind, resource: None, code: None, after: None, cluster: None, peer: None, by: None, for_: None }
    }

    /// What is wrong with it as it is written; none if nothing is.
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
            return Some(format!("kind {kind} {} {field}", if needs { "needs" } else { "has no" }));
        }
        if self.code.is_some_and(|code| !(400..600).contains(&code)) {
            return Some("code must be from 400 to 599".to_owned());
        }
        if self.after.is_some() && !self.kind.strikes_a_write() && self.kind != FaultKind::TargetLoss {
            return Some(format!("kind {kind} has no after: it strikes at once"));
        }
        if self.peer.is_some() && self.peer == self.cluster {
            return Some("cluster and peer must be two clusters".to_owned());
        }
        let resources = self.kind.resources();
        match &self.resource {
            Some(_) if resources.is_empty() => Some(format!("kind {kind} has no resource")),
            Some(resource) if !resources.contains(&resource.as_str()) => {
                Some(format!("kind {kind} has no resource {resource:?}; there are {}", resources.join(", ")))
            }
            _ => None,
        }
    }

    /// A line for people.
    pub fn describe(&self) -> String {
        let code = self.code.map(|code| format!(" {code}")).unwrap_or_default();
        let about = [&self.resource, &self.cluster, &self.peer].into_iter().flatten();
        let about: String = about.flat_map(|name| [" ", name]).collect();
        let unit = if self.kind == FaultKind::TargetLoss { "seconds" } else { "writes" };
        let after = self.after.map(|count| format!(" after {count} {unit}")).unwrap_or_default();
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
        check("{kind: compact, after: 1}", Some("kind compact has no after: it strikes at once"));
        check("{kind: partition, for: 5s}", Some("kind partition needs cluster"));
        check("{kind: partition, cluster: a, for: 5s}", None);
        check("{kind: peer-partition, cluster: a, for: 5s}", Some("kind peer-partition needs peer"));
        check("{kind: peer-partition, cluster: a, peer: a, for: 5s}", Some("cluster and peer must be two clusters"));
        check("{kind: clock-ahead, for: 5s}", Some("kind clock-ahead needs by"));
        check("{kind: clock-behind, by: 1h, for: 5s}", None);
        check("{kind: leader-change, resource: works}", Some("kind leader-change has no resource"));
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
