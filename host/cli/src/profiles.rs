//! `bulkhead profiles`.

use std::process::ExitCode;

use bulkhead_controllers::profile::{Profile, Setting};
use bulkhead_simulator::table::{Column, Table};
use clap::Args;
use serde_json::{Value, json};

use crate::output::Format;

/// Print the profiles: named sets of flags, each of which reproduces one documented failover behaviour.
///
/// A scenario selects one with `profile: classic`; flags set in the scenario override those of the profile one by
/// one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead profiles
  bulkhead profiles -o json")]
pub(crate) struct Arguments {
    /// Output format. Text shows the differences from the defaults, data every flag.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    crate::exit::code(arguments.output.print(table, &data()).map(|()| true))
}

fn table() -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for profile in Profile::ALL {
        let _ = writeln!(text, "{}: {}", profile.name(), profile.describe());
        let settings = profile.settings();
        if settings.is_empty() {
            text += "  every flag has its default\n";
        }
        let mut table = Table::new(2, &[Column::Fit, Column::Left(20)]);
        for Setting { flag, value, default } in &settings {
            table.row([flag.clone(), plain(value), format!("default {}", plain(default))]);
        }
        for line in table.lines() {
            let _ = writeln!(text, "  {line}");
        }
        text.push('\n');
    }
    text
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(gates) if gates.is_empty() => "none".to_owned(),
        Value::Object(gates) => gates
            .iter()
            .map(|(gate, on)| format!("{gate}={on}"))
            .collect::<Vec<_>>()
            .join(","),
        other => other.to_string(),
    }
}

fn data() -> Value {
    let profile = |profile: Profile| {
        json!({
            "name": profile.name(),
            "description": profile.describe(),
            "settings": profile.settings(),
            "flags": profile.flags(),
        })
    };
    Profile::ALL.into_iter().map(profile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_printed_with_what_they_change() {
        let text = table();
        let classic = text.split("classic: ").nth(1).unwrap();
        let line = classic
            .lines()
            .find(|line| line.contains("failover-eviction-timeout"))
            .unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words, ["failover-eviction-timeout", "5m", "default", "0s"]);
        assert!(text.starts_with("modern: ") && text.contains("Failover=true"), "{text}");
        let data = data();
        assert_eq!(data.as_array().map(Vec::len), Some(Profile::ALL.len()));
        assert_eq!(data[1]["flags"]["failover-eviction-timeout"], "5m");
    }
}
