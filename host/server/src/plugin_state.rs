//! Directory of the record of plugins that ended a process ([`CrashMarker`]).

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bulkhead_core::manifest::Digest;
use bulkhead_journal::private;
use bulkhead_plugin::CrashMarker;
use bulkhead_runtime::causes::causes;
use clap::Args;
use tracing::warn;

use crate::help;
use crate::user_folder::{self, FolderOrOff};

/// Folder of the records in the user's folder for state.
const RECORDS: &str = "plugins";

#[derive(Args)]
pub(super) struct PluginStateArguments {
    /// Directory of the record of plugins that ended a process, or `off`. Each process needs its own. The default is
    /// the directory of --journal or --data-dir, or one in bulkhead below $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "DIR|off", help_heading = help::PLUGINS, env = "BULKHEAD_PLUGIN_STATE_DIRECTORY",
          hide_env_values = true)]
    plugin_state_directory: Option<FolderOrOff>,
}

/// Properties that distinguish the processes of a user and stay the same at a restart.
pub(super) struct Identity<'a> {
    /// Subcommand.
    pub(super) command: &'a str,
    /// Modes of `run`, or member of `agent`.
    pub(super) role: &'a str,
    /// Address of the control plane.
    pub(super) control_plane: &'a str,
    /// Path of the plugins in files.
    pub(super) plugins: Option<&'a Path>,
}

impl Identity<'_> {
    /// Returns the name of the folder of a process.
    fn folder(&self) -> String {
        let plugins = self
            .plugins
            .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()));
        let plugins = plugins.unwrap_or_default().into_os_string().into_encoded_bytes();
        let pieces = [self.role.as_bytes(), self.control_plane.as_bytes(), &plugins];
        format!("{}-{}", self.command, Digest::of(pieces.into_iter()).short())
    }
}

impl PluginStateArguments {
    /// Opens the record, and logs its conclusions. `owned` is a directory that only this process uses. The caller
    /// keeps the record until the process ends.
    ///
    /// Without a usable directory, plugins run without a record, and a warning is logged: the record protects from
    /// defects that are rarer than a read-only file system.
    pub(super) fn open(&self, owned: Option<&Path>, identity: &Identity<'_>) -> Option<CrashMarker> {
        let state = user_folder::default_folder(user_folder::Kind::State);
        let opened = self
            .directory(owned, state, identity)
            .and_then(|directory| directory.map(open).transpose());
        match opened {
            Ok(marker) => {
                marker
                    .iter()
                    .flat_map(CrashMarker::notices)
                    .for_each(|notice| warn!("{notice}"));
                marker
            }
            Err(error) => {
                let error = causes(error.as_ref());
                warn!(
                    "a plugin that ends this process will be loaded again at the next start: {error}; set \
                     --plugin-state-directory to a writable directory of this process, or to off"
                );
                None
            }
        }
    }

    /// Returns the directory; `None` if there is to be no record.
    fn directory(
        &self,
        owned: Option<&Path>,
        state: Option<PathBuf>,
        identity: &Identity<'_>,
    ) -> anyhow::Result<Option<PathBuf>> {
        match (&self.plugin_state_directory, owned) {
            (Some(FolderOrOff::Off), _) => Ok(None),
            (Some(FolderOrOff::Folder(directory)), _) => Ok(Some(directory.clone())),
            (None, Some(directory)) => Ok(Some(directory.to_path_buf())),
            (None, None) => {
                let state = state.context("neither $XDG_STATE_HOME nor $HOME names a directory")?;
                Ok(Some(state.join(RECORDS).join(identity.folder())))
            }
        }
    }
}

fn open(directory: PathBuf) -> anyhow::Result<CrashMarker> {
    let about = || format!("the record of plugins in {}", directory.display());
    private::directory(&directory).with_context(about)?;
    CrashMarker::open(&directory).with_context(about)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity<'a>(role: &'a str, plugins: Option<&'a Path>) -> Identity<'a> {
        Identity {
            command: "run",
            role,
            control_plane: "https://127.0.0.1:6443",
            plugins,
        }
    }

    fn arguments(flag: Option<&str>) -> PluginStateArguments {
        PluginStateArguments {
            plugin_state_directory: flag.map(|text| text.parse().unwrap()),
        }
    }

    #[test]
    fn the_directory_is_the_flag_or_that_of_the_process_or_one_of_the_user() {
        let check = |flag: Option<&str>, owned: Option<&str>, state: Option<&str>, expected: Option<&str>| {
            let identity = identity("all", None);
            let found = arguments(flag)
                .directory(owned.map(Path::new), state.map(PathBuf::from), &identity)
                .unwrap();
            assert_eq!(found.as_deref(), expected.map(Path::new), "{flag:?} {owned:?}");
        };
        check(Some("/given"), Some("/journal"), Some("/state"), Some("/given"));
        check(Some("off"), Some("/journal"), Some("/state"), None);
        check(None, Some("/journal"), Some("/state"), Some("/journal"));
        let of_user = format!("/state/plugins/{}", identity("all", None).folder());
        check(None, None, Some("/state"), Some(&of_user));
        assert!(arguments(None).directory(None, None, &identity("all", None)).is_err());
    }

    #[test]
    fn processes_with_other_work_have_other_directories() {
        let (a, b) = (Path::new("/plugins/a"), Path::new("/plugins/b"));
        let folder = |role, plugins| identity(role, plugins).folder();
        assert_eq!(folder("all", Some(a)), folder("all", Some(a)));
        let of_agent = Identity {
            command: "agent",
            ..identity("all", Some(a))
        }
        .folder();
        let mut folders = vec![folder("all", None), folder("all", Some(a)), folder("all", Some(b))];
        folders.extend([folder("report", Some(a)), of_agent]);
        let count = folders.len();
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), count, "{folders:?}");
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let identity = identity("all", None);
        let below_file = file.join("state").display().to_string();
        assert!(arguments(Some(&below_file)).open(None, &identity).is_none());
        let usable = folder.path().join("new/state").display().to_string();
        let first = arguments(Some(&usable)).open(None, &identity);
        assert!(first.is_some());
        assert!(
            arguments(Some(&usable)).open(None, &identity).is_none(),
            "another process uses it"
        );
        drop(first);
        assert!(arguments(Some(&usable)).open(None, &identity).is_some());
    }
}
