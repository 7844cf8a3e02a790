//! Modes: the responsibilities of a process beside Karmada.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bulkhead_controllers::controller_names;
use bulkhead_controllers::permissions::Mode;
use bulkhead_core::time::Time;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{Api, Client};
use tracing::{info, warn};

use super::RETRY;
use super::connect_error::ConnectError;
use super::endpoint::State;
use super::hub::Hub;
use super::usage_error::UsageError;

/// Parses the name of a mode.
///
/// # Errors
///
/// The mode is unknown; the message lists the known modes.
pub fn parse(text: &str) -> Result<Mode, String> {
    let found = Mode::ALL.into_iter().find(|mode| mode.name() == text);
    found.ok_or_else(|| {
        format!(
            "there is no mode {text}; there are {}",
            Mode::ALL.map(Mode::name).join(", ")
        )
    })
}

/// Argument `--mode`.
#[derive(Args)]
struct ModeArgument {
    /// Responsibilities that Bulkhead takes over from Karmada: `report` decides like evict but writes nothing;
    /// `interpret` serves Karmada's interpreter with plugins; `finish` ends eviction tasks; `evict` taints, evicts
    /// and finishes; `all`. Modes can be combined, such as `interpret,finish`. Beside Karmada's controllers there is
    /// no default.
    #[arg(long, value_delimiter = ',', default_value = "all", value_name = "MODES", value_parser = parse,
          env = "BULKHEAD_MODE", hide_env_values = true)]
    mode: Vec<Mode>,
}

/// Selected modes, from the command line, a file or the default.
pub(super) struct Chosen {
    /// Modes as given.
    pub(super) modes: Vec<Mode>,
    /// True if the modes are the default.
    pub(super) is_default: bool,
}

impl Args for Chosen {
    fn augment_args(command: Command) -> Command {
        ModeArgument::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ModeArgument::augment_args_for_update(command)
    }
}

impl FromArgMatches for Chosen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let ModeArgument { mode } = ModeArgument::from_arg_matches(matches)?;
        Ok(Self {
            modes: mode,
            is_default: matches.value_source("mode") == Some(ValueSource::DefaultValue),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Namespace of the Leases of Karmada's controllers.
pub const KARMADA_NAMESPACE: &str = "karmada-system";
/// Leases of the Karmada controllers that mode `all` replaces.
pub const KARMADA_LEASES: [&str; 2] = ["karmada-controller-manager", "karmada-scheduler"];
/// Largest lead of this machine's clock at which a live lease of Karmada is detected, in milliseconds.
const CLOCK_AHEAD_MAX_MS: i64 = 3_600_000;
/// Maximum time for which a lease is observed, in seconds.
const OBSERVATION_MAX_S: u32 = 60;

/// Error: a Karmada controller is active on the control plane, and no mode was selected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BesideKarmada {
    address: String,
    lease: &'static str,
    holder: String,
}

impl fmt::Display for BesideKarmada {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, lease, holder } = self;
        write!(
            f,
            "cannot run in mode all, the default, on {address}: {holder} holds the lease {KARMADA_NAMESPACE}/{lease} \
             and does the same work; choose --mode report, interpret, finish or evict, which leave the rest to Karmada, \
             or --mode all in place of Karmada once it is stopped"
        )
    }
}

impl Error for BesideKarmada {}

/// Error: the account may not read the Leases of Karmada's controllers, and no mode was selected.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KarmadaUnknown {
    address: String,
    message: String,
}

impl fmt::Display for KarmadaUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, message } = self;
        write!(
            f,
            "cannot run in mode all, the default, on {address}: the account may not get the leases {} in \
             {KARMADA_NAMESPACE}, so Karmada's controllers may be running ({message}); give the account the role of \
             the mode with `bulkhead account --mode all --apply` and its --namespace, or choose a --mode: --mode all \
             runs without this check, in place of Karmada once it is stopped",
            KARMADA_LEASES.join(" and ")
        )
    }
}

impl Error for KarmadaUnknown {}

/// Checks that no Karmada controller is active on the control plane before running in the default mode. Waits while
/// the API server is unavailable.
///
/// # Errors
///
/// [`BesideKarmada`], [`KarmadaUnknown`] if the Leases may not be read, or a [`ConnectError`] that needs manual action.
pub(super) async fn check_default(hub: &Hub, state: &State) -> anyhow::Result<()> {
    check_leases(&hub.unguarded, &hub.address, state).await
}

async fn check_leases(client: &Client, address: &str, state: &State) -> anyhow::Result<()> {
    loop {
        let error = match active_karmada_controller(client, Time::new(super::now())).await {
            Ok(None) => return Ok(()),
            Ok(Some((lease, holder))) => {
                return Err(BesideKarmada {
                    address: address.to_owned(),
                    lease,
                    holder,
                }
                .into());
            }
            Err(error) => error,
        };
        if let kube::Error::Api(status) = &error
            && status.code == 403
        {
            return Err(KarmadaUnknown {
                address: address.to_owned(),
                message: status.message.clone(),
            }
            .into());
        }
        let error = ConnectError::of(address, &error);
        if !error.is_transient {
            return Err(error.into());
        }
        state.set_stage(format!("looking for Karmada's controllers: {error}"));
        warn!("waiting: {error}");
        tokio::time::sleep(RETRY).await;
    }
}

/// Held Lease of a Karmada controller, as first read.
struct Held {
    name: &'static str,
    holder: String,
    renewed: MicroTime,
}

/// Returns the first active Karmada controller: its lease and the holder.
///
/// A lease is observed for its duration, in which an active holder renews it. Its age alone proves nothing: a
/// controller that was stopped keeps its lease until it expires, and by a clock that is ahead of Karmada's a live lease
/// looks expired. A lease that lasts longer than [`OBSERVATION_MAX_S`] counts as active until it expires.
async fn active_karmada_controller(client: &Client, now: Time) -> kube::Result<Option<(&'static str, String)>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), KARMADA_NAMESPACE);
    let (mut observed, mut observation_s) = (Vec::new(), 0);
    for name in KARMADA_LEASES {
        let Some((spec, holder)) = held(&leases, name).await? else {
            continue;
        };
        let Some(renewed) = spec.renew_time else { continue };
        let lasts_s = spec
            .lease_duration_seconds
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(0);
        let age_ms = now.millis_since(Time::new(renewed.0));
        let is_expired = age_ms >= i64::from(lasts_s) * 1000;
        if !is_expired && lasts_s > OBSERVATION_MAX_S {
            return Ok(Some((name, holder)));
        }
        if !is_expired || age_ms < CLOCK_AHEAD_MAX_MS {
            observation_s = lasts_s.clamp(observation_s, OBSERVATION_MAX_S);
            observed.push(Held { name, holder, renewed });
        }
    }
    let Some(first) = observed.first() else { return Ok(None) };
    info!(
        "waiting {observation_s} s at most: {} held the lease {KARMADA_NAMESPACE}/{}; an active holder renews it",
        first.holder, first.name
    );
    for _ in 0..observation_s {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for Held { name, renewed, .. } in &observed {
            if let Some((spec, holder)) = held(&leases, name).await?
                && spec.renew_time.as_ref() != Some(renewed)
            {
                return Ok(Some((*name, holder)));
            }
        }
    }
    Ok(None)
}

/// Returns the spec of a lease and its holder, if it has one.
async fn held(leases: &Api<Lease>, name: &str) -> kube::Result<Option<(LeaseSpec, String)>> {
    let spec = leases
        .get_opt(name)
        .await?
        .and_then(|lease| lease.spec)
        .unwrap_or_default();
    let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty());
    Ok(holder.map(|holder| (spec, holder)))
}

/// Modes of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes(Vec<Mode>);

impl Modes {
    /// Creates the set of modes.
    ///
    /// # Errors
    ///
    /// Mode `report` is combined with another mode.
    pub(super) fn new(modes: &[Mode]) -> Result<Self, UsageError> {
        if modes.contains(&Mode::Report)
            && let Some(other) = modes.iter().find(|mode| **mode != Mode::Report)
        {
            let why = "a process that only reports writes nothing; leave one of them out";
            return Err(UsageError::new("mode", format!("report,{}: {why}", other.name())));
        }
        let mut sorted = modes.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        Ok(Self(sorted))
    }

    /// Returns the names, separated by commas.
    pub(super) fn names(&self) -> String {
        self.0.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(",")
    }

    /// Returns all modes.
    pub fn all(&self) -> &[Mode] {
        &self.0
    }

    /// Returns true if the mode is included.
    pub(super) fn has(&self, mode: Mode) -> bool {
        self.0.contains(&mode)
    }

    /// Returns true in mode `report`, which permits no writes.
    pub(super) fn only_reports(&self) -> bool {
        self.has(Mode::Report)
    }

    /// Returns true if one of the modes includes the controller. Mode `report` runs the controllers of `evict`.
    fn runs(&self, controller: &str) -> bool {
        let deciding = |mode: &Mode| if *mode == Mode::Report { Mode::Evict } else { *mode };
        self.0
            .iter()
            .map(deciding)
            .any(|mode| mode.duties().iter().any(|duty| duty.name == controller))
    }

    /// Returns the controllers of the modes that a list in Karmada's syntax selects. The first entry that names a
    /// controller takes precedence.
    ///
    /// # Errors
    ///
    /// A named controller does not exist or belongs to none of the modes.
    pub(super) fn controllers(&self, list: &[String]) -> Result<Vec<&'static str>, UsageError> {
        for entry in list {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            if name != "*" && !controller_names().any(|known| known == name) {
                let known: Vec<_> = controller_names().collect();
                let why = format!("there is no controller {name}; there are {}", known.join(", "));
                return Err(UsageError::new("controllers", why));
            }
            if name != "*" && entry == name && !self.runs(name) {
                let why = format!("{name} does not run in this --mode; it does in mode all");
                return Err(UsageError::new("controllers", why));
            }
        }
        let decides = |name: &str| {
            let exact = list.iter().find_map(|entry| match entry.strip_prefix('-') {
                Some(off) => (off == name).then_some(false),
                None => (entry == name).then_some(true),
            });
            exact.unwrap_or_else(|| list.iter().any(|entry| entry == "*"))
        };
        Ok(controller_names()
            .filter(|name| self.runs(name) && decides(name))
            .collect())
    }
}

#[cfg(test)]
mod tests;
