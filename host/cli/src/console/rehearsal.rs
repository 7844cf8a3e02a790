//! Rehearsal of a loss of clusters for the console, as `bulkhead what-if` makes it.

use std::path::PathBuf;
use std::sync::Arc;

use bulkhead_console::rehearsal::{Loss, Rehearsal, Rehearsed};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_server::engines::EngineArguments;
use bulkhead_server::hub::HubArguments;
use bulkhead_server::settings::Settings;
use bulkhead_simulator::what_if::{self, Question};

use crate::what_if::{flags, objects, off};

/// Maximum virtual time of a rehearsal.
const HORIZON: GoDuration = GoDuration::from_secs(24 * 3600);

/// Objects and settings of rehearsals.
pub(super) struct Objects {
    /// Directory of exported objects; without it, those of the control plane are read.
    pub(super) export: Option<PathBuf>,
    /// Connection to the control plane.
    pub(super) hub: HubArguments,
    /// Engines for plugins.
    pub(super) engines: EngineArguments,
    /// Settings of the controllers.
    pub(super) settings: Settings,
}

impl Rehearsal for Objects {
    fn play(&self, loss: &Loss) -> anyhow::Result<Rehearsed> {
        let flags = flags(&self.settings, loss.rate)?;
        let export = objects(self.export.as_deref(), &self.hub, &loss.down)?;
        let notes = export.notes.iter().cloned().chain(off(&flags)).collect();
        let bindings = export.bindings.len() + export.cluster_bindings.len();
        let count = format!("{} clusters and {bindings} bindings", export.clusters.len());
        let registry = bulkhead_defaults::registry::build(&flags, self.engines.start(flags.pod_detail())?);
        let question = Question {
            down: loss.down.clone(),
            lasts: loss.lasts,
            horizon: HORIZON,
            flags,
        };
        let answer = what_if::play(export, Arc::new(registry), &question)?;
        let origin = match &self.export {
            Some(directory) => format!("the export {}", directory.display()),
            None => "the control plane".to_owned(),
        };
        Ok(Rehearsed {
            answer,
            notes,
            objects: format!("{count} of {origin}"),
        })
    }
}
