//! Runbook of the alerts: the commands and quotations of its sections.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Path of the page, from the root of the workspace.
const PAGE: &str = "docs/src/runbook.md";

/// The page.
pub(super) struct Runbook(String);

/// A part of the page, from its heading on.
#[derive(Clone, Debug)]
pub(super) struct Section {
    title: String,
    text: String,
}

impl Runbook {
    /// Reads the page.
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let path = root.join(PAGE);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(Self(text))
    }

    /// Returns the part before the first section, with the commands for every case.
    pub(super) fn introduction(&self) -> Section {
        let text = self.0.split("\n## ").next().unwrap_or_default();
        Section {
            title: "introduction".to_owned(),
            text: text.to_owned(),
        }
    }

    /// Returns the section that an annotation links to.
    pub(super) fn linked(&self, annotation: &str) -> anyhow::Result<Section> {
        let (page, anchor) = annotation.split_once('#').context("the annotation has no anchor")?;
        ensure!(page == PAGE, "the annotation links to {page}, not to {PAGE}");
        let sections = self.0.split("\n## ").skip(1);
        let section = sections.filter_map(|section| section.split_once('\n'));
        let (title, text) = section
            .into_iter()
            .find(|(title, _)| title.to_lowercase() == anchor)
            .with_context(|| format!("{PAGE} has no section {anchor}"))?;
        Ok(Section {
            title: title.to_owned(),
            text: text.to_owned(),
        })
    }
}

impl Section {
    /// Returns the command, expression or other code that begins with a text. A line of a block counts, with or without
    /// its prompt, and so does code within a sentence.
    pub(super) fn code(&self, prefix: &str) -> anyhow::Result<&str> {
        let lines = self.text.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
        let blocks = lines.clone().filter(|line| !line.contains('`'));
        // Code in a sentence is every second part between backticks.
        let inline = self.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        blocks
            .chain(inline)
            .find(|code| code.starts_with(prefix))
            .with_context(|| format!("section {} of {PAGE} has no code {prefix:?}", self.title))
    }

    /// Returns an error unless the section has a text.
    pub(super) fn says(&self, text: &str) -> anyhow::Result<()> {
        ensure!(
            self.text.contains(text),
            "section {} of {PAGE} does not say {text:?}",
            self.title
        );
        Ok(())
    }
}

/// Returns a command with values in place of words such as `KARMADA`.
pub(super) fn with_values(command: &str, values: &[(&str, &str)]) -> String {
    let value = |word: &str| {
        let known = values.iter().find(|(name, _)| *name == word);
        known.map_or_else(|| word.to_owned(), |(_, value)| (*value).to_owned())
    };
    command.split(' ').map(value).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Runbook\n\n```console,norun\n$ bulkhead pause --kubeconfig KARMADA\n```\n\n## BulkheadDown\n\n\
                        **Look at:** `kubectl logs | grep 'x'` and `y`.\n\n```promql\ntopk(10, up)\n```\n";

    #[test]
    fn code_is_found_in_the_section_of_the_link() {
        let runbook = Runbook(TEXT.to_owned());
        let section = runbook.linked("docs/src/runbook.md#bulkheaddown").unwrap();
        assert_eq!(section.code("kubectl logs").unwrap(), "kubectl logs | grep 'x'");
        assert_eq!(section.code("topk").unwrap(), "topk(10, up)");
        assert!(section.code("bulkhead pause").is_err());
        assert!(section.says("**Look at:**").is_ok() && section.says("Pray").is_err());
        assert!(runbook.linked("docs/src/runbook.md#bulkheadup").is_err());
        assert!(runbook.linked("docs/src/other.md#bulkheaddown").is_err());
        let pause = runbook.introduction().code("bulkhead pause").unwrap().to_owned();
        let values = [("KARMADA", "/tmp/hub")];
        assert_eq!(with_values(&pause, &values), "bulkhead pause --kubeconfig /tmp/hub");
    }
}
