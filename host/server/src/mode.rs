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
    found.ok_or_else(|| format!("there is no mode {text}; there are {}", Mode::ALL.map(Mode::name).join(", ")))
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
        Ok(Self { modes: mode, is_default: matches.value_source("mode") == Some(ValueSource::DefaultValue) })
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
                return Err(BesideKarmada { address: address.to_owned(), lease, holder }.into());
            }
            Err(error) => error,
        };
        if let kube::Error::Api(status) = &error
            && status.code == 403
        {
            return Err(KarmadaUnknown { address: address.to_owned(), message: status.message.clone() }.into());
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
        let Some((spec, holder)) = held(&leases, name).await? else { continue };
        let Some(renewed) = spec.renew_time else { continue };
        let lasts_s = spec.lease_duration_seconds.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(0);
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
    let spec = leases.get_opt(name).await?.and_then(|lease| lease.spec).unwrap_or_default();
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
        self.0.iter().map(deciding).any(|mode| mode.duties().iter().any(|duty| duty.name == controller))
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
        Ok(controller_names().filter(|name| self.runs(name) && decides(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_apiserver::{ApiServer, Clock, Options, kinds};
    use http::{Request, Response};
    use kube::api::{Patch, PatchParams};
    use kube::client::Body;
    use serde_json::json;
    use tower::BoxError;

    use super::*;

    fn chosen(modes: &[Mode], list: &[&str]) -> Result<Vec<&'static str>, UsageError> {
        Modes::new(modes)?.controllers(&list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn controllers_are_chosen_in_karmadas_syntax() {
        let all = |list: &[&str]| chosen(&[Mode::All], list);
        assert_eq!(all(&["*"]).unwrap().len(), controller_names().count());
        assert_eq!(all(&["scheduler", "binding"]).unwrap(), ["scheduler", "binding"]);
        let most = all(&["*", "-taintManager"]).unwrap();
        assert!(most.len() + 1 == controller_names().count() && !most.contains(&"taintManager"));
        let error = all(&["sheduler"]).unwrap_err().to_string();
        assert!(error.contains("no controller sheduler") && error.contains("scheduler"), "{error}");
    }

    #[test]
    fn a_mode_runs_what_it_owns() {
        assert_eq!(chosen(&[Mode::Finish], &["*"]).unwrap(), ["gracefulEviction", "pluginStatus"]);
        assert_eq!(chosen(&[Mode::Interpret], &["*"]).unwrap(), ["pluginStatus"]);
        let evict = chosen(&[Mode::Evict, Mode::Interpret], &["*"]).unwrap();
        assert!(evict.contains(&"taintManager") && !evict.contains(&"scheduler"), "{evict:?}");
        assert_eq!(evict, chosen(&[Mode::Report], &["*"]).unwrap());
        let error = chosen(&[Mode::Evict], &["scheduler"]).unwrap_err().to_string();
        assert!(error.contains("scheduler does not run in this --mode"), "{error}");
    }

    fn now() -> k8s_openapi::jiff::Timestamp {
        "2026-01-01T00:01:00Z".parse().unwrap()
    }

    /// Creates a control plane with a lease of 15 s. Returns its leases.
    async fn leases(name: &str, holder: &str, renewed: &str) -> (ApiServer, Api<Lease>) {
        let kinds = kinds::kubernetes();
        let options = Options { kinds, auto_create_namespaces: true, ..Options::new("hub", 1, Clock::new(now())) };
        let hub = ApiServer::new(options);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "karmada-system"},
            "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
        });
        let leases: Api<Lease> = Api::namespaced(hub.client(), "karmada-system");
        leases.create(&Default::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
        (hub, leases)
    }

    const MANAGER: &str = "karmada-controller-manager";

    #[tokio::test(start_paused = true)]
    async fn a_controller_of_karmada_is_at_work_while_its_lease_is_renewed() {
        let check = async |name: &str, holder: &str, renewed: &str, expected: Option<(&'static str, String)>| {
            let (hub, leases) = leases(name, holder, renewed).await;
            let renews = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                let next = json!({"spec": {"renewTime": "2026-01-01T00:01:02.000000Z"}});
                leases.patch(name, &PatchParams::default(), &Patch::Merge(next)).await.unwrap();
            };
            let client = hub.client();
            let (found, ()) = tokio::join!(active_karmada_controller(&client, Time::new(now())), renews);
            assert_eq!(found.unwrap(), expected, "{name} {holder:?} {renewed}");
        };
        let scheduler = "karmada-scheduler";
        check(MANAGER, "pod-a", "2026-01-01T00:00:50.000000Z", Some((MANAGER, "pod-a".to_owned()))).await;
        check(scheduler, "pod-b", "2026-01-01T00:00:46.000000Z", Some((scheduler, "pod-b".to_owned()))).await;
        check(MANAGER, "pod-a", "2026-01-01T00:01:45.000000Z", Some((MANAGER, "pod-a".to_owned()))).await;
        check(MANAGER, "", "2026-01-01T00:00:59.000000Z", None).await;
        check("bulkhead", "pod-c", "2026-01-01T00:00:59.000000Z", None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_controller_of_karmada_does_not_prevent_a_start() {
        for renewed in ["2026-01-01T00:00:59.000000Z", "2026-01-01T00:00:45.000000Z", "2026-01-01T00:01:45.000000Z"] {
            let (hub, leases) = leases(MANAGER, "pod-a", renewed).await;
            let found = active_karmada_controller(&hub.client(), Time::new(now())).await.unwrap();
            assert_eq!(found, None, "{renewed}");
            // An observation of a minute does not reach the end of a long lease.
            let hour = json!({"spec": {"leaseDurationSeconds": 3600}});
            leases.patch(MANAGER, &PatchParams::default(), &Patch::Merge(hour)).await.unwrap();
            let found = active_karmada_controller(&hub.client(), Time::new(now())).await.unwrap();
            assert_eq!(found, Some((MANAGER, "pod-a".to_owned())), "{renewed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_of_karmada_is_found_by_a_machine_whose_clock_is_ahead() {
        let check = async |renewed: &str, expected: Option<(&'static str, String)>| {
            let (hub, leases) = leases(MANAGER, "pod-a", renewed).await;
            let renews = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                let next = json!({"spec": {"renewTime": "2025-12-31T23:59:59.000000Z"}});
                leases.patch(MANAGER, &PatchParams::default(), &Patch::Merge(next)).await.unwrap();
            };
            let client = hub.client();
            let (found, ()) = tokio::join!(active_karmada_controller(&client, Time::new(now())), renews);
            assert_eq!(found.unwrap(), expected, "{renewed}");
        };
        // Half an hour ahead, and a day.
        check("2025-12-31T23:31:00.000000Z", Some((MANAGER, "pod-a".to_owned()))).await;
        check("2025-12-31T00:01:00.000000Z", None).await;
    }

    /// Returns a client that may not read one of the Leases; the server answers about the others.
    fn forbidding(server: Client, lease: &'static str) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if !request.uri().path().ends_with(&format!("/namespaces/karmada-system/leases/{lease}")) {
                    return Ok::<_, BoxError>(server.send(request).await?);
                }
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                    "message": format!("leases.coordination.k8s.io \"{lease}\" is forbidden"),
                });
                let answer = Response::builder().status(403).header("content-type", "application/json");
                Ok(answer.body(Body::from(serde_json::to_vec(&status)?))?)
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn leases_that_may_not_be_read_do_not_count_as_no_karmada() {
        let (hub, _) = leases("bulkhead", "pod-a", "2026-01-01T00:00:59.000000Z").await;
        for lease in KARMADA_LEASES {
            let client = forbidding(hub.client(), lease);
            let refused = check_leases(&client, "https://hub", &State::default()).await.unwrap_err().to_string();
            for part in [
                "cannot run in mode all, the default, on https://hub",
                "get the leases karmada-controller-manager and karmada-scheduler in karmada-system",
                &format!("\"{lease}\" is forbidden"),
                "bulkhead account --mode all --apply",
            ] {
                assert!(refused.contains(part), "{part}: {refused}");
            }
        }
        check_leases(&hub.client(), "https://hub", &State::default()).await.unwrap();
    }

    #[test]
    fn reporting_goes_with_nothing_that_writes() {
        let error = Modes::new(&[Mode::Report, Mode::Evict]).unwrap_err().to_string();
        assert!(error.contains("report,evict"), "{error}");
        assert!(Modes::new(&[Mode::Report]).unwrap().only_reports());
    }
}
