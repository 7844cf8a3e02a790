//! Workflows only call commands of the repository, so that each check and each release can be repeated on any machine.

use super::{files, one_yaml};

/// Commands that a workflow may run, by their first words.
const COMMANDS: [&str; 2] = [".ci/run", "cargo xtask release"];

#[test]
fn a_workflow_only_calls_commands_of_the_repository() {
    let mut seen = 0;
    for file in files(".github/workflows") {
        let workflow = one_yaml(&file);
        assert_eq!(
            workflow["permissions"],
            serde_json::json!({"contents": "read"}),
            "{file}"
        );
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            for step in job["steps"].as_array().unwrap() {
                let Some(run) = step["run"].as_str() else {
                    let uses = step["uses"].as_str().unwrap_or_default();
                    assert!(uses.starts_with("actions/"), "{file}: job {name} uses {uses:?}");
                    continue;
                };
                let is_known = COMMANDS.iter().any(|command| run.starts_with(command));
                assert!(is_known, "{file}: job {name} runs {run:?}");
                assert_eq!(run.lines().count(), 1, "{file}: job {name} runs a script");
                // An expression in a script is replaced before the shell reads it.
                assert!(
                    !run.contains("${{"),
                    "{file}: job {name}: pass the expression as a variable"
                );
                seen += 1;
            }
        }
    }
    assert_eq!(seen, COMMANDS.len());
}

/// Files with versions of dependencies.
const LOCKS: [&str; 4] = ["Cargo.lock", "go.mod", "package-lock.json", "requirements.txt"];

#[test]
fn updates_are_asked_for_in_every_place_with_dependencies() {
    let configuration = one_yaml(".github/dependabot.yml");
    let updates = configuration["updates"].as_array().unwrap();
    let mut folders = Vec::new();
    for update in updates {
        let one = update["directory"].as_str().map(str::to_owned);
        let many = update["directories"].as_array().into_iter().flatten();
        folders.extend(
            one.into_iter()
                .chain(many.map(|folder| folder.as_str().unwrap().to_owned())),
        );
    }
    for folder in &folders {
        let path = super::path(folder.trim_start_matches('/'));
        assert!(path.is_dir(), "{folder} of dependabot.yml is no folder");
    }
    let Some(tracked) = crate::secrets::tracked() else {
        eprintln!("skipped: no git checkout");
        return;
    };
    let mut seen = 0;
    for file in tracked {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", &file));
        if LOCKS.contains(&name) {
            assert!(
                folders.contains(&format!("/{folder}")),
                "dependabot.yml does not name the folder of {file}"
            );
            seen += 1;
        }
    }
    assert!(seen > LOCKS.len(), "only {seen} files with versions of dependencies");
}
