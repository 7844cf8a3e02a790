//! Checks of the help texts of all commands.

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Command, CommandFactory as _};

    use crate::{Arguments, config};

    /// Beginning of an example in a help text.
    const EXAMPLE: &str = "  bulkhead ";
    /// Minimum number of examples of a command.
    const EXAMPLES_MIN: usize = 2;

    /// Calls `visit` for the command and all commands below it, with the names that lead to each.
    fn walk(command: &Command, path: &[&str], visit: &mut impl FnMut(&Command, &[&str])) {
        visit(command, path);
        for below in command.get_subcommands() {
            walk(below, &[path, &[below.get_name()]].concat(), visit);
        }
    }

    fn examples(command: &Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        text.lines()
            .filter(|line| line.starts_with(EXAMPLE))
            .map(str::to_owned)
            .collect()
    }

    /// Returns the words of an example as a shell passes them, without redirections and further commands.
    fn words(example: &str) -> Vec<OsString> {
        let end = [" | ", " > ", " < "]
            .iter()
            .filter_map(|mark| example.find(mark))
            .min()
            .unwrap_or(example.len());
        example[..end]
            .split_whitespace()
            .map(|word| OsString::from(word.trim_matches('\'')))
            .collect()
    }

    fn parse(example: &str) -> Result<(), clap::Error> {
        let (command, words) = (Arguments::command(), words(example));
        if words.iter().any(|word| word == "--config") && !words.iter().any(|word| word == "object") {
            // The file of the example does not exist.
            return command.try_get_matches_from(words).map(drop);
        }
        config::parse(&command, &words).map(drop)
    }

    #[test]
    fn every_command_has_two_examples_that_parse() {
        let mut seen = 0;
        walk(&Arguments::command(), &[], &mut |command, path| {
            let examples = examples(command);
            assert!(
                examples.len() >= EXAMPLES_MIN,
                "bulkhead {}: {} examples",
                path.join(" "),
                examples.len()
            );
            for example in &examples {
                let is_about = example[EXAMPLE.len()..].starts_with(&path.join(" "));
                assert!(
                    is_about,
                    "bulkhead {}: {example} is about another command",
                    path.join(" ")
                );
                if let Err(error) = parse(example) {
                    panic!("{example}\n{error}");
                }
                seen += 1;
            }
        });
        assert!(seen > 50, "only {seen} examples were found");
    }

    #[test]
    fn an_example_that_does_not_parse_is_detected() {
        for wrong in [
            "  bulkhead crds --no-such-flag | cat",
            "  bulkhead drain",
            "  bulkhead run --mode report,evict",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            words("  bulkhead run --controllers '*' > log"),
            ["bulkhead", "run", "--controllers", "*"]
        );
    }

    #[test]
    fn every_summary_is_an_imperative() {
        walk(&Arguments::command(), &[], &mut |command, path| {
            let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
            let first = summary.split_whitespace().next().unwrap_or_default();
            let is_verb = first.starts_with(char::is_uppercase) && !first.ends_with('s');
            assert!(path.is_empty() || is_verb, "bulkhead {}: {summary}", path.join(" "));
        });
    }

    #[test]
    fn every_choice_shows_its_values() {
        let mut seen = 0;
        walk(&Arguments::command(), &[], &mut |command, path| {
            for argument in command
                .get_arguments()
                .filter(|argument| argument.get_action().takes_values())
            {
                let values = argument.get_possible_values();
                let shown = !argument.is_hide_possible_values_set() && values.iter().any(|value| !value.is_hide_set());
                assert!(
                    values.is_empty() || shown,
                    "bulkhead {}: {}",
                    path.join(" "),
                    argument.get_id()
                );
                seen += usize::from(!values.is_empty());
            }
        });
        assert!(seen > 20, "only {seen} arguments with fixed values were found");
    }

    #[test]
    fn the_flags_of_run_have_headings() {
        let command = Arguments::command();
        let run = command.find_subcommand("run").unwrap();
        let plain = run
            .get_arguments()
            .filter(|argument| argument.get_help_heading().is_none());
        let plain: Vec<_> = plain.filter_map(clap::Arg::get_long).collect();
        assert_eq!(plain, ["mode", "controllers", "config"]);
    }
}
