//! Settings of the controllers as arguments: one per field of [`Flags`], with its name, description and default. A
//! new field becomes an argument automatically.

use bulkhead_controllers::flags::Flags;
use clap::builder::{StyledStr, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use serde_json::{Map, Value};

use super::usage_error::UsageError;

/// Settings from the command line, as data in the shape of [`Flags`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Map<String, Value>);

impl Settings {
    /// Returns the defaults overridden by the settings.
    ///
    /// # Errors
    ///
    /// A setting is out of range; the message names it and the valid range.
    pub fn flags(&self) -> anyhow::Result<Flags> {
        let flags: Flags = serde_json::from_value(Value::Object(self.0.clone()))?;
        flags.validate().map_err(UsageError::of_text)?;
        Ok(flags)
    }
}

/// Value name of a comma-separated list in the help.
pub const LIST: &str = "A,B";
/// Value name of a map in the help.
pub const MAP: &str = "KEY=VALUE,...";
/// Value name of a boolean in the help.
pub const BOOLEAN: &str = "true|false";

/// Names of the settings by help heading, in the order of the help.
const GROUPS: [(&str, &[&str]); 8] = [
    (
        "Member clusters",
        &[
            "cluster-failure-threshold",
            "cluster-success-threshold",
            "cluster-status-update-frequency",
            "cluster-monitor-period",
            "cluster-monitor-grace-period",
            "cluster-startup-grace-period",
            "cluster-lease-duration",
            "cluster-lease-renew-interval-fraction",
            "enable-cluster-resource-modeling",
        ],
    ),
    (
        "Taints and tolerations",
        &[
            "enable-no-execute-taint-eviction",
            "enable-taint-manager",
            "failover-eviction-timeout",
            "default-not-ready-toleration-seconds",
            "default-unreachable-toleration-seconds",
            "allow-no-execute-taint-policy",
            "cluster-taint-policy-clean-up",
            "cluster-taint-policy-damping-window",
        ],
    ),
    (
        "Evictions",
        &[
            "resource-eviction-rate",
            "resource-eviction-rate-per-cluster",
            "secondary-resource-eviction-rate",
            "unhealthy-cluster-threshold",
            "large-cluster-num-threshold",
            "eviction-brake-by",
            "eviction-pre-check",
            "eviction-aging",
            "no-execute-taint-eviction-purge-mode",
            "graceful-eviction-timeout",
            "purge-without-replacement",
            "replacement-health",
            "restore-recovered-source",
            "allow-never-purging-clusters",
            "enable-failback",
            "failback-stabilization-window",
            "failback-concurrency",
            "failover-records",
        ],
    ),
    (
        "Scheduling",
        &[
            "scheduler-name",
            "plugins",
            "enable-empty-workload-propagation",
            "enable-scheduler-estimator",
            "disable-scheduler-estimator-in-pull-mode",
            "scheduler-estimator-timeout",
            "scheduler-estimator-service-namespace",
            "scheduler-estimator-service-prefix",
            "scheduler-estimator-port",
            "scheduler-estimator-cert-file",
            "scheduler-estimator-key-file",
            "scheduler-estimator-ca-file",
            "insecure-skip-estimator-verify",
        ],
    ),
    (
        "Interpreters",
        &[
            "third-party-interpreters",
            "health-without-interpreter",
            "interpreter-webhook-transport",
        ],
    ),
    ("Take-over from Karmada", &["ignore-unimplemented"]),
    ("Requests", &["kube-api-qps", "kube-api-burst"]),
    ("Feature gates", &["feature-gates"]),
];
/// Heading of a setting that has no group.
const UNGROUPED: &str = "Other settings";

/// Returns the positions of the group of a setting and of the setting in it.
fn position(name: &str) -> Option<(usize, usize)> {
    let found = |(group, (_, names)): (usize, &(&str, &[&str]))| {
        names
            .iter()
            .position(|known| *known == name)
            .map(|index| (group, index))
    };
    GROUPS.iter().enumerate().find_map(found)
}

/// Setting according to its schema.
struct Setting {
    name: String,
    meaning: String,
    type_: String,
    default: Value,
    /// Valid values, or names of a map; empty if any value is valid.
    names: Vec<String>,
}

fn settings() -> Vec<Setting> {
    let schema = schemars::schema_for!(Flags).to_value();
    let defaults = serde_json::to_value(Flags::default()).unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let setting = |(name, property): (String, Value)| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // An optional value has a list of types, with its own type first.
        let type_ = property["type"]
            .as_array()
            .and_then(|types| types.first())
            .unwrap_or(&property["type"]);
        Setting {
            meaning: text(&property["description"]),
            type_: text(type_),
            default: defaults[&name].clone(),
            names: names(&schema, &property),
            name,
        }
    };
    let mut settings: Vec<_> = properties.into_iter().map(setting).collect();
    settings.sort_by_key(|setting| position(&setting.name).unwrap_or((GROUPS.len(), 0)));
    settings
}

/// Returns the values that a schema permits, or the names that it permits in a map; none if it permits any.
fn names(schema: &Value, property: &Value) -> Vec<String> {
    let keys = property.get("propertyNames").unwrap_or(property);
    let reference = keys
        .get("$ref")
        .or_else(|| keys.pointer("/allOf/0/$ref"))
        .and_then(Value::as_str);
    let referred = reference.and_then(|reference| schema.pointer(reference.strip_prefix('#')?));
    let values = referred.unwrap_or(keys);
    let listed = values["enum"].as_array().into_iter().flatten();
    let described = values["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|value| &value["const"]);
    listed
        .chain(described)
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

impl Setting {
    fn argument(self) -> Arg {
        let default = shown(&self.default);
        let mut help = self.meaning.clone();
        if self.type_ == "object" && !self.names.is_empty() {
            help = format!("{help} The names are {}.", self.names.join(", "));
        }
        if !default.is_empty() {
            help = format!("{help} [default: {default}]");
        }
        let group = position(&self.name).and_then(|(group, _)| GROUPS.get(group));
        let argument = Arg::new(self.name.clone())
            .long(self.name.clone())
            .help(StyledStr::from(help.replace('\n', " ")))
            .help_heading(group.map_or(UNGROUPED, |(heading, _)| *heading))
            .action(ArgAction::Set);
        let type_ = self.type_;
        let argument = match type_.as_str() {
            "boolean" => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            _ => argument,
        };
        let argument = argument.value_name(match type_.as_str() {
            "boolean" => BOOLEAN.to_owned(),
            "number" | "integer" => "NUMBER".to_owned(),
            "array" => LIST.to_owned(),
            "object" => MAP.to_owned(),
            _ if self.names.is_empty() => "VALUE".to_owned(),
            _ => self.names.join("|"),
        });
        let name = self.name;
        argument.value_parser(ValueParser::new(move |text: &str| {
            let value = parse(text, &type_)?;
            // The field's type checks more than the schema: names of gates, units of durations.
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            serde_json::from_value::<Flags>(Value::Object(alone)).map_err(|error| error.to_string())?;
            Ok::<_, String>(value)
        }))
    }
}

/// Formats a value as on the command line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(","),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| format!("{key}={}", shown(value)))
            .collect::<Vec<_>>()
            .join(","),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn parse(text: &str, type_: &str) -> Result<Value, String> {
    match type_ {
        "boolean" => text
            .parse()
            .map(Value::Bool)
            .map_err(|_| "must be true or false".to_owned()),
        "number" | "integer" => serde_json::from_str::<serde_json::Number>(text)
            .map(Value::Number)
            .map_err(|_| "must be a number".to_owned()),
        "array" => Ok(text
            .split(',')
            .filter(|item| !item.is_empty())
            .map(|item| Value::from(item.trim()))
            .collect()),
        "object" => text
            .split(',')
            .filter(|pair| !pair.is_empty())
            .map(pair)
            .collect::<Result<Map<_, _>, _>>()
            .map(Value::Object),
        _ => Ok(Value::from(text)),
    }
}

fn pair(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} must be KEY=VALUE"))?;
    let value = value.trim();
    let value = value.parse().map_or_else(|_| Value::from(value), Value::Bool);
    Ok((key.trim().to_owned(), value))
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        settings()
            .into_iter()
            .fold(command, |command, setting| command.arg(setting.argument()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for Setting { name, .. } in settings() {
            if let Some(value) = matches.get_one::<Value>(&name) {
                self.0.insert(name, value.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bulkhead_controllers::flags::{FeatureGate, GoDuration};
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        settings: Settings,
    }

    fn flags(arguments: &[&str]) -> Result<Flags, String> {
        let arguments = ["program"].iter().chain(arguments);
        let program = Program::try_parse_from(arguments).map_err(|error| error.to_string())?;
        program.settings.flags().map_err(|error| error.to_string())
    }

    #[test]
    fn every_setting_has_one_heading_in_the_help() {
        let names: BTreeSet<_> = settings().into_iter().map(|setting| setting.name).collect();
        let grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().map(|&name| name.to_owned()))
            .collect();
        assert_eq!(grouped.len(), names.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), names);
    }

    #[test]
    fn the_help_of_a_setting_shows_its_values() {
        let mut command = Program::command();
        command.build();
        let argument = |name: &str| {
            command
                .get_arguments()
                .find(|argument| argument.get_long() == Some(name))
                .unwrap()
        };
        for (name, shown) in [
            ("eviction-pre-check", "<feasible|proposal|none>"),
            (
                "no-execute-taint-eviction-purge-mode",
                "<Directly|Immediately|Gracefully|Graciously|Never>",
            ),
            ("replacement-health", "<covering|reported>"),
            ("scheduler-name", "<VALUE>"),
        ] {
            assert_eq!(argument(name).to_string(), format!("--{name} {shown}"));
        }
        let gates = argument("feature-gates")
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(gates.contains("The names are Failover, GracefulEviction, "), "{gates}");
        // A new setting with fixed values has them in its schema, and so in the help.
        let enumerated = settings()
            .into_iter()
            .filter(|setting| !setting.names.is_empty())
            .count();
        assert!(enumerated >= 8, "only {enumerated} settings have fixed values");
    }

    #[test]
    fn settings_are_given_as_to_karmada() {
        assert_eq!(flags(&[]), Ok(Flags::default()));
        let given = flags(&[
            "--feature-gates=Failover=true,WorkloadAffinity=true",
            "--cluster-failure-threshold=10s",
            "--resource-eviction-rate",
            "2.5",
            "--enable-no-execute-taint-eviction",
            "--enable-taint-manager=false",
            "--plugins=*,-ClusterLocality",
        ]);
        let given = given.unwrap();
        assert!(given.gate(FeatureGate::Failover) && given.gate(FeatureGate::WorkloadAffinity));
        assert_eq!(given.cluster_failure_threshold, GoDuration::from_secs(10));
        assert!((given.resource_eviction_rate - 2.5).abs() < f64::EPSILON);
        assert!(given.enable_no_execute_taint_eviction && !given.enable_taint_manager);
        assert_eq!(given.plugins, ["*", "-ClusterLocality"]);
    }

    #[test]
    fn an_invalid_setting_is_named() {
        let check = |arguments: &[&str], expected: &str| {
            let error = flags(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments:?} says: {error}");
        };
        check(&["--resource-eviction-rate=fast"], "must be a number");
        check(&["--resource-eviction-rate=-1"], "resource-eviction-rate: must be 0");
        check(&["--enable-taint-manager=perhaps"], "must be true or false");
        check(&["--cluster-monitor-period=10"], "is not a duration");
        check(&["--feature-gates=Failover"], "must be KEY=VALUE");
        check(
            &["--feature-gates=Failver=true"],
            "unknown variant `Failver`, expected one of `Failover`",
        );
        check(&["--no-such-setting=1"], "--no-such-setting");
    }
}
