//! `bulkhead plugin test --watch`: a round for each change of a plugin's files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::build;
use super::target::Which;
use crate::exit::error_text;

/// Polling interval. Polling also works for links, network file systems and editors that replace files.
const INTERVAL: Duration = Duration::from_millis(400);
/// Folders that builds and tests write, besides hidden ones.
const OUTPUT_FOLDERS: [&str; 4] = ["target", "node_modules", "__pycache__", "venv"];
/// Files that builds and tests write, besides components.
const OUTPUT_FILES: [&str; 3] = ["Cargo.lock", "package-lock.json", "go.sum"];

/// Size and time of the last change of each file.
type Snapshot = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Files and folders whose changes start a round.
struct Inputs {
    roots: Vec<PathBuf>,
    /// True if components are the result of a build, and not inputs.
    is_built: bool,
}

impl Inputs {
    /// Returns the present state. Files that cannot be read, for example in the middle of an edit, are left out.
    fn snapshot(&self) -> Snapshot {
        let mut found = Snapshot::new();
        for root in &self.roots {
            self.add(root, &mut found);
        }
        found
    }

    fn add(&self, path: &Path, found: &mut Snapshot) {
        let Ok(metadata) = fs::metadata(path) else { return };
        if !metadata.is_dir() {
            found.insert(path.to_path_buf(), (metadata.len(), metadata.modified().ok()));
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_component = Path::new(&*name)
                .extension()
                .is_some_and(|extension| extension == "wasm");
            let is_output = self.is_built && (is_component || OUTPUT_FILES.contains(&&*name));
            // A link to a folder is not followed, because it could lead back.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink()) && entry.path().is_dir();
            if !name.starts_with('.') && !OUTPUT_FOLDERS.contains(&&*name) && !is_output && !is_link {
                self.add(&entry.path(), found);
            }
        }
    }

    /// Makes a round at once, and after each change when the files have been the same for one pause. Ends when `pause`
    /// returns false.
    fn watch(
        &self,
        mut round: impl FnMut() -> anyhow::Result<()>,
        mut pause: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        loop {
            // A change during the round starts the next one.
            let before = self.snapshot();
            round()?;
            let mut last = before.clone();
            loop {
                if !pause() {
                    return Ok(());
                }
                let now = self.snapshot();
                if now == last && now != before {
                    break;
                }
                last = now;
            }
        }
    }
}

/// Builds and tests a plugin, and again after each change, until the process is interrupted. A failed round is shown
/// and is no error.
pub(super) fn run(
    which: &Which,
    cases: Option<&Path>,
    test: impl Fn() -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    let folder = which.folder().filter(|folder| build::has_source(folder));
    let arguments = folder.map(build::Arguments::defaults).transpose()?;
    let mut roots = which.inputs();
    roots.extend(cases.map(Path::to_path_buf));
    let inputs = Inputs {
        roots,
        is_built: arguments.is_some(),
    };
    let round = || -> anyhow::Result<()> {
        let built = arguments.as_ref().map_or(Ok(()), build::run);
        if let Err(error) = built.and_then(|()| test().map(drop)) {
            writeln!(anstream::stderr(), "error: {}", error_text(&error))?;
        }
        writeln!(anstream::stderr(), "waiting for a change; press Ctrl+C to end")?;
        Ok(())
    };
    let pause = || {
        thread::park_timeout(INTERVAL);
        true
    };
    inputs.watch(round, pause).map(|()| true)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn inputs(folder: &Path, is_built: bool) -> Inputs {
        Inputs {
            roots: vec![folder.to_path_buf()],
            is_built,
        }
    }

    fn write(folder: &Path, file: &str, text: &str) {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_change_starts_one_round_when_the_files_are_settled() {
        let folder = tempfile::tempdir().unwrap();
        let (pauses, rounds) = (Cell::new(0), Cell::new(Vec::new()));
        write(folder.path(), "hold.lua", "-");
        let round = || -> anyhow::Result<()> {
            let mut before = rounds.take();
            before.push(pauses.get());
            rounds.set(before);
            Ok(())
        };
        let pause = || {
            pauses.set(pauses.get() + 1);
            match pauses.get() {
                // Two files of one change.
                3 => write(folder.path(), "hold.lua", "--"),
                4 => write(folder.path(), "cases/cases.yaml", "cases: []"),
                8 => fs::remove_file(folder.path().join("cases/cases.yaml")).unwrap(),
                _ => (),
            }
            pauses.get() < 12
        };
        inputs(folder.path(), false).watch(round, pause).unwrap();
        assert_eq!(rounds.take(), [0, 5, 9]);
    }

    #[test]
    fn a_change_during_a_round_starts_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let (rounds, pauses) = (Cell::new(0), Cell::new(0));
        let round = || -> anyhow::Result<()> {
            rounds.set(rounds.get() + 1);
            if rounds.get() == 1 {
                write(folder.path(), "plugin.py", "x = 1");
            }
            Ok(())
        };
        let pause = || {
            pauses.set(pauses.get() + 1);
            pauses.get() < 6
        };
        inputs(folder.path(), true).watch(round, pause).unwrap();
        assert_eq!(rounds.get(), 2);
    }

    #[test]
    fn an_error_of_a_round_ends_the_watch() {
        let folder = tempfile::tempdir().unwrap();
        let ended = inputs(folder.path(), true).watch(|| anyhow::bail!("no output"), || true);
        assert_eq!(ended.unwrap_err().to_string(), "no output");
    }

    #[test]
    fn results_of_a_build_are_no_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let before = [
            "plugin.c",
            "src/more.c",
            "cases/cases.yaml",
            "vendor/bulkhead/bulkhead.h",
        ];
        for file in before {
            write(folder.path(), file, "");
        }
        let outputs = [
            "mine.wasm",
            ".build/plugin.module.wasm",
            "target/release/a.d",
            "node_modules/a/index.js",
            "tests/__pycache__/a.pyc",
            "Cargo.lock",
        ];
        let built = inputs(folder.path(), true);
        let found = built.snapshot();
        assert_eq!(found.len(), before.len());
        for file in outputs {
            write(folder.path(), file, "output");
        }
        assert_eq!(built.snapshot(), found);
        // A component without source is the plugin.
        assert!(
            inputs(folder.path(), false)
                .snapshot()
                .contains_key(&folder.path().join("mine.wasm"))
        );
    }
}
