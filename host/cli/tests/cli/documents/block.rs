//! Fenced blocks of a page, their commands and the output that they show.

/// Line that stands for output that a page does not show.
pub(super) const CUT: &str = "[…]";

/// Shell block or other fenced block of a page.
#[derive(Debug)]
pub(super) struct Block {
    /// Line of its fence.
    pub(super) line: usize,
    /// Text after the fence.
    pub(super) language: String,
    /// Number of headings before it.
    pub(super) section: usize,
    /// Spaces before the fence.
    pub(super) indent: String,
    pub(super) text: String,
}

/// Returns the fenced blocks of a page.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut section) = (Vec::new(), None::<Block>, 0);
    for (line, text) in (1..).zip(page.lines()) {
        let trimmed = text.trim_start();
        let fence = trimmed.strip_prefix("```");
        if let Some(mut block) = open.take() {
            if fence.is_some() {
                blocks.push(block);
            } else {
                block.text += text.strip_prefix(block.indent.as_str()).unwrap_or(trimmed);
                block.text.push('\n');
                open = Some(block);
            }
        } else if let Some(language) = fence {
            let indent = text[..text.len() - trimmed.len()].to_owned();
            open = Some(Block {
                line,
                language: language.trim().to_owned(),
                section,
                indent,
                text: String::new(),
            });
        } else if text.starts_with('#') {
            section += 1;
        }
    }
    assert!(open.is_none(), "a block is not closed: {open:?}");
    blocks
}

/// Returns the commands of a `console` block, each with the output shown below it.
pub(super) fn commands(block: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => *output += &[line, "\n"].concat(),
            (None, None) => panic!("{line:?} stands before any command"),
        }
    }
    commands
}

/// Returns true if the output is as shown.
pub(super) fn is_as_shown(output: &str, shown: &str) -> bool {
    let output: Vec<&str> = output.lines().map(str::trim_end).collect();
    let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let chunks: Vec<&[&str]> = shown.split(|line| *line == CUT).collect();
    let [first, middle @ .., last] = chunks.as_slice() else {
        return output == shown;
    };
    if !output.starts_with(first) {
        return false;
    }
    let mut rest = &output[first.len()..];
    for chunk in middle {
        let mut starts = 0..=rest.len().saturating_sub(chunk.len());
        let Some(at) = starts.find(|at| rest[*at..].starts_with(chunk)) else {
            return false;
        };
        rest = &rest[at + chunk.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn blocks_and_commands_are_found() {
    let page =
        "# A\n```console\n$ one\nshown\n$ two\n```\n\n   ```text\n   a\n  b\n   ```\n## B\n```sh,norun\nthree\n```\n";
    let found = blocks(page);
    let seen: Vec<_> = found
        .iter()
        .map(|block| (block.line, block.language.as_str(), block.section))
        .collect();
    assert_eq!(seen, [(2, "console", 1), (8, "text", 1), (13, "sh,norun", 2)]);
    assert_eq!(found[1].text, "a\nb\n");
    let commands = commands(&found[0].text);
    assert_eq!(
        commands,
        [
            ("one".to_owned(), "shown\n".to_owned()),
            ("two".to_owned(), String::new())
        ]
    );
}

#[test]
fn a_cut_stands_for_any_number_of_lines_and_nothing_else_does() {
    let check = |output: &str, shown: &str, expected: bool| {
        assert_eq!(is_as_shown(output, shown), expected, "{output:?} {shown:?}");
    };
    check("a  \nb\n", "a\nb\n", true);
    check("a\nb\nc\n", "a\nb\n", false);
    check("a\nb\nc\n", "a\n[…]\nc\n", true);
    check("a\nc\n", "a\n[…]\nc\n", true);
    check("a\nb\nc\nd\n", "[…]\nb\n[…]\n", true);
    check("a\nb\nc\nd\n", "[…]\nb\n[…]\nb\n[…]\n", false);
    check("a\n", "a\n[…]\na\n", false);
    check("a\nb\n", "[…]\nc\n", false);
}
