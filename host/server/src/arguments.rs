//! Arguments of `bulkhead run`, which `doctor` and `config print` take too.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bulkhead_controllers::flags::Flags;
use bulkhead_controllers::permissions::Mode;
use clap::Args;

use super::console::{ConsoleArguments, Hosting};
use super::https_url::host_of;
use super::leader::{Election, ElectionArguments};
use super::mode::{self, Modes};
use super::plugin_state::PluginStateArguments;
use super::queries::QueryArguments;
use super::settings::Settings;
use super::usage_error::UsageError;
use super::webhook::OfferedOperations;
use super::{embedded, endpoint, hub, journal};
use crate::access::Uses;
use crate::config_file::ConfigFile;
use crate::engines::EngineArguments;
use crate::help;
use crate::images::{ImageArguments, PluginSources};
use crate::logs::LogArguments;

/// Name of the controller that the setting `failover-records` switches off.
const FAILOVER_RECORD: &str = "failoverRecord";

/// Run the controllers on a control plane.
///
/// The control plane is Karmada's, or Kubernetes with the CRDs that `bulkhead crds` prints. Runs until it is
/// interrupted. With several processes, one is the leader and the others stand by.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead run --embedded --members 3
  bulkhead run --mode report --kubeconfig karmada.kubeconfig --journal journal
  bulkhead run --mode evict,interpret --webhook-bind-address :8443
  bulkhead run --config bulkhead.yaml")]
pub struct RunArguments {
    #[command(flatten)]
    pub(super) mode: mode::Chosen,

    /// Controllers of the mode to run: names, `*` for all, `-name` to exclude one.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true,
        value_name = "NAMES"
    )]
    pub(super) controllers: Vec<String>,

    /// File with any of these arguments, by name: apiVersion bulkhead.dev/v1alpha1, kind BulkheadConfiguration.
    /// Arguments on the command line and environment variables take precedence.
    #[arg(long, value_name = "FILE", env = help::CONFIG_VARIABLE, hide_env_values = true)]
    pub(super) config: Option<ConfigFile>,

    #[command(flatten)]
    pub(super) hub: hub::HubArguments,

    /// Directory of plugins: a plugins.yaml, or components (.wasm) and scripts (.lua). Watched for changes.
    #[arg(long, value_name = "PATH", help_heading = help::PLUGINS, env = help::PLUGINS_VARIABLE,
          hide_env_values = true)]
    pub(super) plugin_directory: Option<PathBuf>,

    #[command(flatten)]
    pub(super) engines: EngineArguments,

    #[command(flatten)]
    pub(super) images: ImageArguments,

    #[command(flatten)]
    pub(super) plugin_state: PluginStateArguments,

    #[command(flatten)]
    pub(super) journal: journal::JournalArguments,

    /// Address of /healthz, /readyz and /metrics; port 0 selects a free one.
    #[arg(long, default_value = "127.0.0.1:10370", value_name = "ADDRESS", value_parser = endpoint::address,
          help_heading = help::ENDPOINTS)]
    pub(super) health_probe_bind_address: SocketAddr,

    /// Address of the webhook endpoint, served over TLS; without it, no webhook is registered.
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint::address, help_heading = help::ENDPOINTS)]
    pub(super) webhook_bind_address: Option<SocketAddr>,

    /// URL at which API servers reach the webhook endpoint; defaults to the address that it is served at.
    #[arg(long, value_name = "URL", requires = "webhook_bind_address", help_heading = help::ENDPOINTS)]
    pub(super) webhook_url: Option<String>,

    /// Directory with tls.crt, tls.key and ca.crt of the webhook endpoint; without it, a certificate is created.
    #[arg(long, value_name = "DIR", requires = "webhook_bind_address", help_heading = help::ENDPOINTS)]
    pub(super) webhook_cert_dir: Option<PathBuf>,

    /// File with the CA certificates, in PEM, that client certificates of the webhook endpoint must be signed by;
    /// without it, any client is accepted. Not for mode interpret: Karmada presents no client certificate.
    #[arg(long, value_name = "FILE", requires = "webhook_bind_address", help_heading = help::ENDPOINTS)]
    pub(super) webhook_client_ca_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) queries: QueryArguments,

    #[command(flatten)]
    pub(super) console: ConsoleArguments,

    /// Operations that mode interpret offers to Karmada: names, `*` for all, `-name` to exclude one. Karmada's own
    /// interpreters answer the others.
    #[arg(long, value_delimiter = ',', default_value = "*", allow_hyphen_values = true, value_name = "NAMES",
          help_heading = help::ENDPOINTS)]
    pub(super) interpreter_operations: Vec<String>,

    #[command(flatten)]
    pub(super) election: ElectionArguments,

    #[command(flatten)]
    pub(super) embedded: embedded::EmbeddedArguments,

    #[command(flatten)]
    pub(super) log: LogArguments,

    #[command(flatten)]
    pub(super) settings: Settings,
}

/// Storage of the webhook certificate.
pub enum WebhookCertificate<'a> {
    /// Directory with files that are renewed externally.
    Directory(&'a Path),
    /// Secret managed by Bulkhead.
    Secret {
        /// Namespace of the Secret.
        namespace: &'a str,
    },
}

/// Validated arguments.
pub struct Checked {
    /// Settings of the controllers.
    pub flags: Flags,
    /// Modes of the process.
    pub modes: Modes,
    /// Controllers to run.
    pub wanted: Vec<&'static str>,
    /// Settings of the election.
    pub(super) election: Election,
    /// True if there is a leader election.
    pub elects: bool,
}

impl RunArguments {
    /// Checks the arguments for conflicts.
    ///
    /// # Errors
    ///
    /// A [`UsageError`] of one argument.
    pub fn check(&self) -> anyhow::Result<Checked> {
        let mut flags = self.settings.flags()?;
        let modes = Modes::new(&self.mode.modes)?;
        let mut wanted = modes.controllers(&self.controllers)?;
        // A process that only reports would have no record to read.
        if !flags.failover_records || modes.only_reports() {
            wanted.retain(|name| *name != FAILOVER_RECORD);
        }
        flags.failover_records = wanted.contains(&FAILOVER_RECORD);
        let election = self.election.check(&modes)?;
        match self.webhook_bind_address {
            None if modes.has(Mode::Interpret) => {
                let why = "interpret answers Karmada over HTTPS and needs webhook-bind-address";
                return Err(UsageError::new("mode", why).into());
            }
            Some(_) if modes.only_reports() => {
                let why = "leave it out: mode report registers nothing";
                return Err(UsageError::new("webhook-bind-address", why).into());
            }
            _ => {}
        }
        if self.webhook_client_ca_file.is_some() && modes.has(Mode::Interpret) {
            let why = "Karmada presents no client certificate to its interpreter; leave it out, or mode interpret";
            return Err(UsageError::new("webhook-client-ca-file", why).into());
        }
        if let Some(url) = &self.webhook_url {
            host_of("webhook-url", url)?;
        }
        OfferedOperations::parse(&self.interpreter_operations)?;
        // A process without writes needs no election, and an embedded control plane has only one process.
        let elects = self.election.leader_elect && !modes.only_reports() && !self.embedded.embedded;
        self.queries.check(elects)?;
        self.console.check(self.hosting(), self.journal.directory())?;
        Ok(Checked {
            flags,
            modes,
            wanted,
            election,
            elects,
        })
    }

    /// Returns the kind of the control plane.
    pub(super) fn hosting(&self) -> Hosting {
        match (self.embedded.embedded, self.mode.modes.contains(&Mode::Report)) {
            (true, _) => Hosting::Embedded,
            (false, true) => Hosting::ReportOnly,
            (false, false) => Hosting::ControlPlane,
        }
    }

    /// Replaces the modes, as if they were given on the command line.
    pub fn set_modes(&mut self, modes: &[Mode]) {
        self.mode = mode::Chosen {
            modes: modes.to_vec(),
            is_default: false,
        };
    }

    /// Returns the connection arguments of the control plane.
    pub fn hub(&self) -> &hub::HubArguments {
        &self.hub
    }

    /// Returns the arguments of the log.
    pub fn log(&self) -> &LogArguments {
        &self.log
    }

    /// Returns the arguments of the plugin engines.
    pub fn engines(&self) -> &EngineArguments {
        &self.engines
    }

    /// Returns the path of the plugins.
    pub fn plugin_directory(&self) -> Option<&Path> {
        self.plugin_directory.as_deref()
    }

    /// Returns the sources of plugins.
    ///
    /// # Errors
    ///
    /// The access to registries cannot be used.
    pub fn plugins(&self) -> anyhow::Result<PluginSources> {
        self.images.sources(self.plugin_directory())
    }

    /// Returns the path of the trust file.
    pub fn trust_file(&self) -> Option<&Path> {
        self.images.trust()
    }

    /// Returns the storage of the webhook certificate, if the webhook is enabled.
    pub fn webhook_certificate(&self) -> Option<WebhookCertificate<'_>> {
        self.webhook_bind_address?;
        Some(match &self.webhook_cert_dir {
            Some(directory) => WebhookCertificate::Directory(directory),
            None => WebhookCertificate::Secret {
                namespace: &self.election.leader_elect_resource_namespace,
            },
        })
    }

    /// Returns the features of the control plane that the process uses.
    pub fn uses<'a>(&'a self, checked: &'a Checked) -> Uses<'a> {
        Uses {
            modes: checked.modes.all(),
            controllers: &checked.wanted,
            default_mode: self.mode.is_default,
            elects: checked.elects,
            lease_namespace: &self.election.leader_elect_resource_namespace,
            lease_name: &self.election.leader_elect_resource_name,
            webhook: self.webhook_bind_address.is_some(),
            queries: self.queries.query_bind_address.is_some(),
            own_certificate: self.webhook_cert_dir.is_none(),
            estimators: checked.flags.enable_scheduler_estimator,
            templates: None,
        }
    }
}
