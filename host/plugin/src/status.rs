use std::collections::BTreeSet;
use std::fmt;

use bulkhead_core::call::CallKind;
use bulkhead_core::composition::Mode;
use bulkhead_core::manifest::Digest;
use bulkhead_core::policy::{PolicyId, SignedImage};

use crate::{BreakerState, CallCounts, FoundPlugin, LoadError, LoadStage};

/// Status of one plugin of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStatus {
    /// Name of the plugin.
    pub name: String,
    /// Generation of the object that its newest version comes from; none for a file.
    pub generation: Option<i64>,
    /// Stage that failed for its newest version, or [`LoadStage::Active`].
    pub stage: LoadStage,
    /// Reason why the newest version is not active.
    pub refused: Option<Refused>,
    /// True while the newest version is being loaded.
    pub is_loading: bool,
    /// Calls that are faults because no version is active; empty if one is, or if `fallback` prevents it.
    pub held: Vec<CallKind>,
    /// Active version, which is an older one if the newest was rejected; absent if there is none.
    pub active: Option<PolicyId>,
    /// Digest of the active code.
    pub digest: Option<Digest>,
    /// Image that the list or the object names; none for a file or an object with its code.
    pub listed_image: Option<String>,
    /// Image that the active version comes from.
    pub image: Option<SignedImage>,
    /// Calls that the active version answers; a kind may be repeated.
    pub answers: Vec<CallKind>,
    /// Calls that the rule of trust permits the active version; none for all.
    pub permitted: Option<BTreeSet<CallKind>>,
    /// Participation in decisions.
    pub mode: Option<Mode>,
    /// State of its breaker.
    pub breaker: BreakerState,
    /// Call counters of the active version.
    pub counts: CallCounts,
    /// Warnings for the author of the active version, each with its position.
    pub remarks: Vec<String>,
}

/// Formats one line: the active version and, if it is not the newest, the reason.
impl fmt::Display for PluginStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            active,
            mode,
            digest,
            is_loading,
            held,
            refused,
            ..
        } = self;
        write!(f, "plugin {name}")?;
        match active {
            Some(active) => {
                write!(f, " {} is active", active.version)?;
                if let Some(digest) = digest {
                    write!(f, ", sha256 {digest}")?;
                }
                match mode {
                    Some(Mode::Enforce) | None => {}
                    Some(Mode::Shadow) => f.write_str(", in shadow mode: its answers are compared and do not count")?,
                    Some(Mode::Off) => f.write_str(", switched off")?,
                }
            }
            None if *is_loading && refused.is_none() => f.write_str(" is being loaded")?,
            None => f.write_str(" is not active")?,
        }
        if !held.is_empty() {
            let kinds: Vec<_> = held.iter().map(|kind| kind.as_str()).collect();
            write!(f, "; until it is, every {} call is a fault", kinds.join(", "))?;
        }
        match refused {
            Some(refused) => write!(f, "; the newest version was refused: {refused}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, origin, message } = self;
        write!(f, "{origin} failed to {stage}: {message}")
    }
}

/// A version that was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Stage that failed.
    pub stage: LoadStage,
    /// Origin of its code.
    pub origin: String,
    /// Cause and remedy.
    pub message: String,
}

impl Refused {
    /// Returns the rejection of a plugin whose name is already taken by an object or a file.
    pub(crate) fn second(of_object: bool, found: Result<FoundPlugin, LoadError>) -> Self {
        let first = if of_object {
            "a Plugin object"
        } else {
            "the plugin directory"
        };
        let origin = found.map_or_else(|error| error.origin, |found| found.source.origin().to_owned());
        let message = format!("its name is taken by another plugin, of {first}; names are unique");
        Self {
            stage: LoadStage::Verified,
            origin,
            message,
        }
    }
}

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Self {
        let LoadError {
            plugin: _,
            origin,
            stage,
            message,
        } = error;
        Self { stage, origin, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_version_in_force_and_the_reason_against_a_newer_one() {
        let refused = Refused {
            stage: LoadStage::Compiled,
            origin: "h.lua".to_owned(),
            message: "no end".to_owned(),
        };
        let check = |active: bool, mode: Mode, refused: Option<Refused>, held: &[CallKind], expected: &str| {
            let status = PluginStatus {
                name: "health".to_owned(),
                generation: None,
                stage: LoadStage::Active,
                refused,
                is_loading: false,
                held: held.to_vec(),
                active: active.then(|| PolicyId::builtin("health")),
                digest: None,
                listed_image: None,
                image: None,
                answers: Vec::new(),
                permitted: None,
                mode: active.then_some(mode),
                breaker: BreakerState::default(),
                counts: CallCounts::default(),
                remarks: Vec::new(),
            };
            assert_eq!(
                status.to_string(),
                expected.replace("VERSION", env!("CARGO_PKG_VERSION"))
            );
        };
        check(true, Mode::Enforce, None, &[], "plugin health VERSION is active");
        let shadow = "plugin health VERSION is active, in shadow mode: its answers are compared and do not count";
        check(true, Mode::Shadow, None, &[], shadow);
        let why = "the newest version was refused: h.lua failed to compile: no end";
        check(
            true,
            Mode::Enforce,
            Some(refused.clone()),
            &[],
            &format!("plugin health VERSION is active; {why}"),
        );
        check(
            false,
            Mode::Enforce,
            Some(refused.clone()),
            &[],
            &format!("plugin health is not active; {why}"),
        );
        let held = "plugin health is not active; until it is, every health, eviction-check call is a fault";
        let kinds = [CallKind::Health, CallKind::EvictionCheck];
        check(false, Mode::Enforce, Some(refused), &kinds, &format!("{held}; {why}"));
    }
}
