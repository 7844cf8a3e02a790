//! Documentation site: checked reference pages, then mdBook.

use std::path::{Path, PathBuf};

use crate::sh;
use crate::test::UNIT_TESTS;
use crate::tools::Tool;

/// Builds the site.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    features: &["--no-default-features", "--features", "search"],
};
/// Text in the names of the unit tests that compare reference pages with the program.
const REFERENCE_TESTS: &str = "the_page_of";

/// Builds the site to `target/book`. Fails if a reference page differs from the program; `UPDATE_GOLDENS=1` writes the
/// pages anew. Returns the first page.
pub(crate) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    sh::cargo(root, &[UNIT_TESTS, &["--quiet", "--", REFERENCE_TESTS]].concat())?;
    let mdbook = MDBOOK.ensure(root)?;
    sh::run(root, &mdbook, &["build", "docs"])?;
    Ok(root.join("target/book/index.html"))
}
