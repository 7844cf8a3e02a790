//! What can go wrong with the control plane and with the controllers themselves.

use bulkhead_controllers::flags::GoDuration;
use serde::{Deserialize, Serialize};

/// Kinds whose objects the controllers of a failover share, by their plural.
pub const RESOURCES: [&str; 4] = ["resourcebindings", "clusterresourcebindings", "clusters", "works"];

/// Something that goes wrong, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Which objects it is about, by the plural of their kind; absent is any of those that controllers share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// HTTP status of a request that is answered with an error, 400 to 599.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
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
    /// All watches break, and objects are listed again.
    DropWatches,
    /// Changes are not told for a time: every cache is stale.
    LateWatches,
    /// The history of changes is forgotten: a watch that resumes gets 410.
    Compact,
    /// All controllers die before their next write is carried out, and come back later.
    CrashBeforeWrite,
    /// All controllers die after their next write was carried out, and come back later.
    CrashAfterWrite,
    /// Another process takes over: controllers and caches start from nothing.
    LeaderChange,
    /// A plugin that is asked everything answers nothing but faults for a time.
    FailingPlugin,
}

impl FaultKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 10] = [
        Self::Respond,
        Self::Refuse,
        Self::LoseReply,
        Self::DropWatches,
        Self::LateWatches,
        Self::Compact,
        Self::CrashBeforeWrite,
        Self::CrashAfterWrite,
        Self::LeaderChange,
        Self::FailingPlugin,
    ];

    /// The spelling used in scenarios and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Respond => "respond",
            Self::Refuse => "refuse",
            Self::LoseReply => "lose-reply",
            Self::DropWatches => "drop-watches",
            Self::LateWatches => "late-watches",
            Self::Compact => "compact",
            Self::CrashBeforeWrite => "crash-before-write",
            Self::CrashAfterWrite => "crash-after-write",
            Self::LeaderChange => "leader-change",
            Self::FailingPlugin => "failing-plugin",
        }
    }

    /// Whether it lasts for a time.
    pub fn lasts(self) -> bool {
        matches!(self, Self::LateWatches | Self::CrashBeforeWrite | Self::CrashAfterWrite | Self::FailingPlugin)
    }

    /// Whether it is about objects of one kind.
    pub fn has_resource(self) -> bool {
        !matches!(self, Self::LeaderChange | Self::FailingPlugin)
    }
}

impl FaultSpec {
    /// What is wrong with it as it is written; none if nothing is.
    pub fn mistake(&self) -> Option<String> {
        let kind = self.kind.as_str();
        if (self.kind == FaultKind::Respond) != self.code.is_some() {
            return Some("code goes with kind respond, which needs it".to_owned());
        }
        if self.code.is_some_and(|code| !(400..600).contains(&code)) {
            return Some("code must be from 400 to 599".to_owned());
        }
        if self.kind.lasts() != self.for_.is_some() {
            let needs = if self.kind.lasts() { "needs" } else { "has no" };
            return Some(format!("kind {kind} {needs} for"));
        }
        match &self.resource {
            Some(_) if !self.kind.has_resource() => Some(format!("kind {kind} has no resource")),
            Some(resource) if !RESOURCES.contains(&resource.as_str()) => {
                Some(format!("there is no resource {resource:?}; there are {}", RESOURCES.join(", ")))
            }
            _ => None,
        }
    }

    /// A line for people.
    pub fn describe(&self) -> String {
        let code = self.code.map(|code| format!(" {code}")).unwrap_or_default();
        let about = self.resource.as_ref().map(|resource| format!(" {resource}")).unwrap_or_default();
        let lasts = self.for_.map(|time| format!(" for {time}")).unwrap_or_default();
        format!("{}{code}{about}{lasts}", self.kind.as_str())
    }
}
