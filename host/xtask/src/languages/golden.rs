//! Generated parts of pages, between `<!-- generated: NAME -->` and `<!-- end -->`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Returns true if the pages are to be written.
pub(super) fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDENS").is_some_and(|value| value == "1")
}

/// Compares a part of a page, or writes it if that is requested.
pub(super) fn check(page: &Path, name: &str, expected: &str) -> anyhow::Result<()> {
    if is_update() {
        return write(page, name, expected);
    }
    let text = read(page)?;
    let (start, end) = part(&text, name).with_context(|| page.display().to_string())?;
    let found = text.get(start..end).unwrap_or_default().trim();
    if found != expected.trim() {
        bail!(
            "{}, part {name}, differs; UPDATE_GOLDENS=1 writes it. It should be\n{expected}",
            page.display()
        );
    }
    Ok(())
}

/// Writes a part of a page.
pub(super) fn write(page: &Path, name: &str, part_text: &str) -> anyhow::Result<()> {
    let text = read(page)?;
    let (start, end) = part(&text, name).with_context(|| page.display().to_string())?;
    let (before, after) = (
        text.get(..start).unwrap_or_default(),
        text.get(end..).unwrap_or_default(),
    );
    let changed = format!("{before}\n\n{}\n\n{after}", part_text.trim());
    fs::write(page, changed).with_context(|| format!("writing {}", page.display()))
}

fn read(page: &Path) -> anyhow::Result<String> {
    fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))
}

/// Returns the range of a part, without its marks.
fn part(text: &str, name: &str) -> anyhow::Result<(usize, usize)> {
    let mark = format!("<!-- generated: {name} -->");
    let start = text.find(&mark).with_context(|| format!("there is no {mark}"))? + mark.len();
    let length = text.get(start..).and_then(|rest| rest.find("<!-- end -->"));
    let length = length.with_context(|| format!("{mark} has no end"))?;
    Ok((start, start + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_name() {
        let text = "a\n<!-- generated: one -->\n\n1\n\n<!-- end -->\n<!-- generated: two -->\n2\n<!-- end -->\n";
        let (start, end) = part(text, "two").unwrap();
        assert_eq!(&text[start..end], "\n2\n");
        assert!(part(text, "three").is_err());
    }
}
