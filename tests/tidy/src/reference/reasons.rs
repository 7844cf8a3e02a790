//! The page about reasons has every decision, and names every reason and no other word.

use std::collections::BTreeSet;

use super::items::{Item, items};
use super::{code, golden, quoted, read};

const PAGE: &str = "docs/src/reference/reasons.md";
const JOURNAL: &str = "host/core/src/journal.rs";
const POLICY: &str = "host/core/src/policy.rs";
/// Folders with the program.
const PROGRAM: [&str; 2] = ["host", "plugins"];
/// Folders with decisions, conditions and events.
const DECIDING: [&str; 3] = ["host/core/src", "host/controllers/src", "plugins/builtin/src"];

/// Words in literals of the deciding folders that are no reasons.
const NO_REASONS: &[&str] = &[
    // Entry points of plugins.
    "ClusterTaint",
    "EvictionCheck",
    "GetComponents",
    "GetDependencies",
    "GetReplicas",
    "ReflectStatus",
    // States of the queue, in `explain --waiting`.
    "InProgress",
    "NotDue",
    // A kind of Bulkhead.
    "PluginTrust",
    // Kinds of Kubernetes and of Karmada.
    "ClusterPropagationPolicy",
    "ClusterResourceBinding",
    "ClusterRole",
    "ConfigMap",
    "CronJob",
    "DaemonSet",
    "EndpointSlice",
    "HorizontalPodAutoscaler",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "PriorityClass",
    "PropagationPolicy",
    "ReplicaSet",
    "ResourceBinding",
    "ResourceInterpreterCustomization",
    "ServiceAccount",
    "ServiceImport",
    "StatefulSet",
    "WorkloadRebalancer",
    // Values of their fields, and names in their schemas.
    "ClusterIP",
    "DoesNotExist",
    "ExternalName",
    "LoadBalancer",
    "NodePort",
    "NotIn",
    "PreferNoExecute",
    "PreferNoSchedule",
    "PurgeMode",
    "SelectorOperator",
    "TaintEffect",
    "TargetClusters",
    // Operations of an interpreter.
    "AggregateStatus",
    "InterpretComponent",
    "InterpretDependency",
    "InterpretHealth",
    "InterpretReplica",
    "InterpretStatus",
    "ReviseReplica",
    // Policies and the producers of eviction tasks.
    "APIEnablement",
    "ClusterAffinity",
    "ClusterDrains",
    "ClusterEviction",
    "ClusterLocality",
    "FailoverEviction",
    "NativeHealth",
    "NativeInterpreter",
    "ReadyCondition",
    "RecentEviction",
    "ResourceHealth",
    "SpreadConstraint",
    "TaintManager",
    "TaintToleration",
    "WorkloadAffinity",
    "WorkloadAntiAffinity",
    // Labels of metrics, a clock, and errors of a recorded plan.
    "BadInput",
    "BindingAdd",
    "BindingUpdate",
    "ClusterChanged",
    "NoPlacement",
    "ReconcileSchedule",
    "ScaleSchedule",
    "ScheduleAttemptFailure",
];

/// Returns true for words with a capital letter inside.
fn is_compound(word: &str) -> bool {
    let capitals = word.chars().filter(char::is_ascii_uppercase).count();
    capitals > 1 && is_word(word) && word.chars().any(|c| c.is_ascii_lowercase())
}

/// Returns true for words that start with a capital letter.
fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns the literals in a source that consist of one word.
fn literals(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in source.lines() {
        // Parts outside of quotes are separated from words by punctuation, so they do not look like one word.
        let parts: Vec<_> = line.split('"').collect();
        let inner = parts.len().saturating_sub(2);
        found.extend(
            parts
                .into_iter()
                .skip(1)
                .take(inner)
                .filter(|part| is_word(part))
                .map(str::to_owned),
        );
    }
    found
}

/// Returns true if the source builds the word from a prefix in a format string and the name of a variant.
fn is_formed(word: &str, source: &str) -> bool {
    let boundaries = word
        .char_indices()
        .skip(1)
        .filter(|(_, letter)| letter.is_ascii_uppercase());
    let mut parts = boundaries.map(|(at, _)| word.split_at(at));
    parts.any(|(prefix, suffix)| source.contains(&format!("\"{prefix}{{")) && source.contains(suffix))
}

fn all_code(folders: &[&str]) -> String {
    let mut text = String::new();
    for folder in folders {
        code(&crate::root().join(folder), &mut text);
    }
    text
}

/// Returns a row for each variant of an enum, with the word that the program writes for it.
fn rows(source: &str, head: &str, word: impl Fn(&str) -> String) -> Vec<Vec<String>> {
    let row = |item: &Item| {
        let meaning = golden::prose(item.documentation.trim_end_matches('.'));
        assert!(!meaning.is_empty(), "{} has no documentation", item.name);
        vec![format!("`{}`", word(&item.name)), meaning]
    };
    items(source, head).iter().map(row).collect()
}

/// Returns the reason of a kind of fault.
fn reason(source: &str, fault: &str) -> String {
    let arm = source.split_once(&format!("Self::{fault} => \""));
    let word = arm
        .and_then(|(_, rest)| rest.split('"').next())
        .unwrap_or_else(|| panic!("{fault} has no reason"));
    word.to_owned()
}

#[test]
fn the_page_of_reasons_has_the_decisions_and_faults_of_the_program() {
    let (journal, policy) = (read(JOURNAL), read(POLICY));
    let decisions = rows(&journal, "pub enum Decision", str::to_owned);
    let faults = rows(&policy, "pub enum FaultKind", |fault| reason(&policy, fault));
    assert!(
        decisions.len() > 20 && faults.len() > 10,
        "{} decisions, {} faults",
        decisions.len(),
        faults.len()
    );
    let parts = [
        ("decisions", golden::table(&["decision", "meaning"], &decisions)),
        ("faults", golden::table(&["reason", "meaning"], &faults)),
    ];
    golden::check("reasons.md", &parts);
}

#[test]
fn the_page_of_reasons_names_only_words_of_the_program() {
    let source = all_code(&PROGRAM);
    let mut known = literals(&source);
    known.extend(
        items(&read(JOURNAL), "pub enum Decision")
            .into_iter()
            .map(|item| item.name),
    );
    let named: Vec<_> = quoted(&read(PAGE)).into_iter().filter(|word| is_word(word)).collect();
    assert!(named.len() > 100, "only {} words were found", named.len());
    let strange: Vec<_> = named
        .iter()
        .filter(|word| !known.contains(*word) && !is_formed(word, &source))
        .collect();
    assert!(
        strange.is_empty(),
        "{PAGE} names words that the program does not use: {strange:?}"
    );
}

#[test]
fn every_reason_of_the_program_is_on_the_page_of_reasons() {
    let found = literals(&all_code(&DECIDING));
    let found: BTreeSet<_> = found.into_iter().filter(|word| is_compound(word)).collect();
    assert!(found.len() > 100, "only {} words were found", found.len());
    let named = quoted(&read(PAGE));
    let missing: Vec<_> = found
        .iter()
        .filter(|word| !named.contains(*word) && !NO_REASONS.contains(&word.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{PAGE} does not name {missing:?}; words that are no reasons belong to NO_REASONS"
    );
    let surplus: Vec<_> = NO_REASONS
        .iter()
        .filter(|word| !found.contains(**word) || named.contains(**word))
        .collect();
    assert!(
        surplus.is_empty(),
        "NO_REASONS has words that are no exceptions: {surplus:?}"
    );
}

#[test]
fn words_are_found_in_literals_and_format_strings() {
    let source = "a(\"OneTwo\", \"no word\", Three);\nformat!(\"Not{stage:?}\");\nLoaded\n\"quoted\"OneTwoThree\n";
    assert_eq!(literals(source), BTreeSet::from(["OneTwo".to_owned()]));
    assert!(is_formed("NotLoaded", source) && !is_formed("NotActive", source) && !is_formed("OneTwo", source));
    assert!(is_compound("NoHome") && !is_compound("Home") && !is_compound("URL"));
}
