//! Mistakes of plugins as their authors see them, compared with the page that shows them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::golden;
use super::plugin::Plugins;
use super::policies::copy;

/// Languages with a plugin of mistakes: extension of its source, and the place in a plugin.
const LANGUAGES: [(&str, &str, &str); 6] = [
    ("rust", "rs", "src/lib.rs"),
    ("lua", "lua", "mistakes.lua"),
    ("python", "py", "plugin.py"),
    ("javascript", "js", "src/plugin.js"),
    ("c", "c", "plugin.c"),
    ("go", "go", "plugin.go"),
];
const MISTAKES: [&str; 6] = [
    "exception",
    "wrong type",
    "endless loop",
    "memory",
    "exit",
    "missing function",
];
const PAGE: &str = "docs/src/how-to/mistakes-in-plugins.md";
/// Beginnings of addresses in the stacks of Go.
const ADDRESSES: [&str; 4] = [" fp=0x", " gp=0x", "({0x", "(0x"];
/// Number of lines shown of each mistake; stacks of Go have more.
const LINES_MAX: usize = 8;

/// Builds the plugins, and compares the output of each mistake with the page.
pub(super) fn check(root: &Path, plugins: &Plugins<'_>) -> anyhow::Result<()> {
    let examples = root.join("examples/plugins");
    for (language, extension, place) in LANGUAGES {
        println!("-- mistakes in {language}");
        let folder = plugins.create(&format!("{language}/mistakes"), language, "health")?;
        copy(
            &examples.join(format!("{language}/mistakes.{extension}")),
            &folder.join(place),
        )?;
        copy(&examples.join("cases/mistakes.yaml"), &folder.join("cases/cases.yaml"))?;
        build(plugins, &folder, language)?;
        let mut shown = String::new();
        for mistake in MISTAKES {
            let lines = plugins.lines(&folder, &["run", "--input", "cases/cases.yaml", "--name", mistake])?;
            let _ = write!(
                shown,
                "A mistake of the sort \"{mistake}\":\n\n```text\n{}```\n\n",
                stable(&lines)
            );
        }
        golden::check(&root.join(PAGE), language, &shown)?;
    }
    Ok(())
}

/// Builds a plugin that promises scores, if its language lets it.
fn build(plugins: &Plugins<'_>, folder: &Path, language: &str) -> anyhow::Result<()> {
    match language {
        // The steps of an endless loop run out before the time, on a slow machine too.
        "lua" => {
            let manifest = "name: mistakes\nlua: mistakes.lua\nbudget: {wallClockMs: 60000}\n";
            return fs::write(folder.join("plugin.yaml"), manifest).context("writing plugin.yaml");
        }
        // The source of a crate names its exports.
        "rust" => (),
        _ => {
            let settings = format!("language: {language}\nkinds: [health, score]\n");
            fs::write(folder.join("build.yaml"), settings).context("writing build.yaml")?;
        }
    }
    plugins.run(folder, &["build"]).map(drop)
}

/// Returns the first lines of the plugin and the fault, without numbers that differ between builds: steps, memory,
/// addresses, and names of temporary files.
fn stable(output: &str) -> String {
    let (lines, fault) = match output.find("fault:") {
        Some(at) => output.split_at(at),
        None => (output, ""),
    };
    let mut out = String::new();
    let count = lines.lines().count();
    for line in lines.lines().take(LINES_MAX) {
        let line = ADDRESSES
            .iter()
            .fold(line, |line, mark| line.split(mark).next().unwrap_or_default());
        let line = line.trim_end();
        if !line.contains("/tmp/") {
            out += line;
            out.push('\n');
        }
    }
    if count > LINES_MAX {
        out += "[…]\n";
    }
    let is_stable = |line: &&str| !line.starts_with("steps:") && !line.starts_with("memoryBytes:");
    for line in fault.lines().filter(is_stable) {
        out += line;
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_differ_between_builds_are_left_out() {
        let output = "m [warn] panic: index out of range\nm [warn] main.interpret({0x3d008, 0x3dc88})\nm [warn] \
                      mistakes/plugin.go:34 +0x32 fp=0x23 sp=0x23\nfault:\n  kind: trap\nmemoryBytes: 7\nsteps: 5\n";
        let expected = "m [warn] panic: index out of range\nm [warn] main.interpret\nm [warn] mistakes/plugin.go:34 \
                        +0x32\nfault:\n  kind: trap\n";
        assert_eq!(stable(output), expected);
    }

    #[test]
    fn every_language_has_a_source_and_shows_every_mistake() {
        let root = crate::root();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        for (language, extension, _) in LANGUAGES {
            let source = root.join(format!("examples/plugins/{language}/mistakes.{extension}"));
            assert!(source.is_file(), "{}", source.display());
            assert!(page.contains(&format!("<!-- generated: {language} -->")), "{language}");
        }
        for mistake in MISTAKES {
            let shown = page.matches(&format!("A mistake of the sort \"{mistake}\":")).count();
            assert_eq!(shown, LANGUAGES.len(), "{mistake}");
        }
    }

    #[test]
    fn long_stacks_are_cut() {
        let output = "line\n".repeat(LINES_MAX + 1) + "fault:\n";
        assert!(stable(&output).ends_with("line\n[…]\nfault:\n"));
    }
}
