//! `--journal` and the commands that read it: output, exit codes, and errors for bad input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::bulkhead;

fn example() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join("examples/nginx-duplicated/scenario.yaml")
}

/// Returns the path of the test's own directory, after removing earlier contents.
fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("journal").join(name);
    let _ = fs::remove_dir_all(&directory);
    directory
}

/// Records a journal of the example.
fn journal(name: &str) -> PathBuf {
    let directory = directory(name);
    simulate(&example(), &directory);
    directory
}

fn record(scenario: &Path, directory: &Path) -> Output {
    bulkhead()
        .arg("simulate")
        .arg(scenario)
        .arg("--journal")
        .arg(directory)
        .output()
        .unwrap()
}

/// Simulates a scenario, whose expectations hold, and keeps its journal.
fn simulate(scenario: &Path, journal: &Path) {
    let output = record(scenario, journal);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Runs a command on a journal. Returns exit code, standard output and standard error.
fn ask(journal: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = bulkhead()
        .args(arguments)
        .arg("--journal")
        .arg(journal)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[track_caller]
fn check(journal: &Path, arguments: &[&str], code: i32, parts: &[&str]) -> String {
    let (got, message, complaint) = ask(journal, arguments);
    assert_eq!(got, Some(code), "{arguments:?}: {message}{complaint}");
    for part in parts {
        assert!(
            message.contains(part) || complaint.contains(part),
            "{arguments:?}: no {part:?} in: {message}{complaint}"
        );
    }
    message
}

#[test]
fn a_recorded_run_is_listed_explained_and_made_again() {
    let journal = journal("whole");
    let message = check(
        &journal,
        &["history"],
        0,
        &[
            "Evicted",
            "ResourceBinding default/nginx-deployment",
            "TaintUntolerated",
        ],
    );
    let evicted = message.lines().find(|line| line.contains("  Evicted ")).unwrap();
    let id = evicted.split_whitespace().next().unwrap().trim_start_matches('#');
    check(
        &journal,
        &["explain", id],
        0,
        &[
            "taints: not tolerated",
            "target available: yes",
            "would change it:",
            "snapshot ",
        ],
    );
    check(
        &journal,
        &["explain", "default/nginx-deployment"],
        0,
        &["Scheduled", "Evicted", "Released"],
    );
    check(&journal, &["replay", id], 0, &["1 decision repeated, 1 identical"]);
    let all = check(&journal, &["replay", "--all"], 0, &[" identical\n"]);
    assert!(!all.contains("different"), "{all}");
    let only = check(
        &journal,
        &["history", "member1", "--decision", "tainted", "--last", "1"],
        0,
        &["Tainted"],
    );
    assert_eq!(only.lines().count(), 1, "{only}");
}

/// Tolerations of a placement do not delay evictions by `PreferNoExecute`.
#[test]
fn a_preferred_eviction_is_explained_by_the_toleration_of_its_policy() {
    let folder = directory("preferred");
    fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("scenario.yaml");
    let text = "\
name: preferred
duration: 4m
flags: {feature-gates: {Failover: true, PreferNoExecute: true}, enable-no-execute-taint-eviction: true}
clusters: [{name: member1, taints: [{key: example.com/slow, effect: PreferNoExecute}]}, {name: member2}]
manifests:
- objects:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: default}
    spec:
      replicas: 1
      selector: {matchLabels: {app: web}}
      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: app}]}}
  - apiVersion: policy.karmada.io/v1alpha1
    kind: PropagationPolicy
    metadata: {name: web, namespace: default}
    spec:
      resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
      placement:
        clusterAffinity: {clusterNames: [member1, member2]}
        clusterTolerations: [{key: example.com/slow, operator: Exists}]
        spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
      failover: {cluster: {purgeMode: Gracefully, tolerationSeconds: 50}}
";
    fs::write(&scenario, text).unwrap();
    let journal = folder.join("journal");
    simulate(&scenario, &journal);
    let explained = check(&journal, &["explain", "default/web-deployment"], 0, &[]);
    let expected = "against: tolerationSeconds 50 of failover.cluster\n";
    assert!(
        explained.contains(expected) && !explained.contains("tolerations in the applied placement"),
        "{explained}"
    );
    assert!(
        explained.contains("would change it: a longer tolerationSeconds in failover.cluster"),
        "{explained}"
    );
}

#[test]
fn a_namespace_is_given_as_to_kubectl() {
    let journal = journal("namespace");
    let whole = check(&journal, &["explain", "default/nginx-deployment"], 0, &["Evicted"]);
    assert_eq!(
        check(&journal, &["explain", "nginx-deployment", "-n", "default"], 0, &[]),
        whole
    );
    check(&journal, &["explain", "nginx-deployment", "-n", "other"], 2, &[]);
    let named = check(&journal, &["history", "-n", "default"], 0, &["nginx-deployment"]);
    assert!(named.lines().all(|line| line.contains(" default/")), "{named}");
    check(
        &journal,
        &["history", "--namespace", "other"],
        0,
        &["no matching decisions"],
    );
}

#[test]
fn data_is_json() {
    let journal = journal("json");
    let data = |arguments: &[&str]| -> serde_json::Value {
        let (code, message, complaint) = ask(&journal, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {complaint}");
        serde_json::from_str(&message).unwrap()
    };
    let history = data(&["history", "-o", "json"]);
    assert_eq!(history[0]["record"]["id"], 1);
    assert!(history[0]["atMs"].is_i64());
    let (code, yaml, _) = ask(&journal, &["history", "-o", "yaml"]);
    assert_eq!(
        (code, serde_saphyr::from_str::<serde_json::Value>(&yaml).unwrap()),
        (Some(0), history)
    );
    let explained = data(&["explain", "default/nginx-deployment", "-o", "json"]);
    assert!(explained[0]["findings"][0]["gate"].is_string());
    let replayed = data(&["replay", "--all", "-o", "json"]);
    assert!(replayed["exact"].as_u64().unwrap() > 5 && replayed["different"].as_array().unwrap().is_empty());
}

#[test]
fn a_plugin_that_changes_verdicts_ends_with_1() {
    let journal = journal("plugin");
    let folder = directory("scripts");
    fs::create_dir_all(&folder).unwrap();
    let script = |name: &str, verdict: &str| {
        let path = folder.join(name);
        fs::write(
            &path,
            format!("function EvictionCheck(binding, task, observed, now)\n  return '{verdict}'\nend\n"),
        )
        .unwrap();
        path.display().to_string()
    };
    let (holds, silent) = (script("holds.lua", "hold"), script("silent.lua", "abstain"));
    check(
        &journal,
        &["diff", "--plugin", &holds],
        1,
        &["old copies that went would be held", "- released", "+ held (holds: "],
    );
    check(&journal, &["diff", "--plugin", &silent], 0, &["unchanged"]);
    check(
        &journal,
        &["diff", "--plugin", &holds, "--replaces", "nobody"],
        2,
        &["no recorded decision had a plugin of that name"],
    );
    check(&journal, &["diff", "--plugin", "missing.lua"], 2, &["missing.lua"]);
}

#[test]
fn journals_of_several_processes_are_read_as_one() {
    let folder = directory("several");
    let (first, second) = (folder.join("first"), folder.join("second"));
    for journal in [&first, &second] {
        simulate(&example(), journal);
    }
    let lines = |journal: &Path, more: &[&str]| {
        let (code, listed, complaint) = ask(journal, &[&["history"], more].concat());
        assert_eq!(code, Some(0), "{complaint}");
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let one = lines(&first, &[]);
    let twice: Vec<_> = one.iter().flat_map(|line| [line.clone(), line.clone()]).collect();
    let mut both = lines(&folder, &[]);
    let second = second.display().to_string();
    assert_eq!(lines(&first, &["--journal", &second]), both);
    assert_eq!(
        lines(&folder, &["--journal", &second]),
        both,
        "each journal counts once"
    );
    both.sort();
    let mut expected = twice;
    expected.sort();
    assert_eq!(both, expected);
    check(&folder, &["replay", "--all"], 0, &["identical"]);
}

#[test]
fn bad_names_say_what_there_is() {
    let journal = journal("names");
    check(
        &journal,
        &["explain", "100000"],
        2,
        &["there is no decision 100000; the journal has 1 to "],
    );
    check(
        &journal,
        &["history", "default/nginx"],
        2,
        &["did you mean default/nginx-deployment?"],
    );
    check(
        &journal,
        &["history", "--decision", "evict"],
        2,
        &["there is no decision evict; there are Bound, "],
    );
    check(
        &journal,
        &["replay"],
        2,
        &["no decision is named", "bulkhead history --journal", "--all"],
    );
    check(&journal, &["replay", "nginx"], 2, &["is not a decision ID"]);
}

#[test]
fn bad_journals_say_what_is_wrong() {
    let nothing = directory("nothing");
    check(&nothing, &["history"], 2, &["reading the directory", "nothing"]);
    fs::create_dir_all(&nothing).unwrap();
    check(
        &nothing,
        &["replay", "--all"],
        2,
        &["there is no journal in this directory"],
    );
    let journal = journal("damaged");
    assert_eq!(
        record(&example(), &journal).status.code(),
        Some(2),
        "a second run must not be added to the first"
    );
    let segment = journal.join("segment-0000000001.journal");
    let mut bytes = fs::read(&segment).unwrap();
    let whole = bytes.clone();
    bytes.truncate(whole.len() - 3);
    fs::write(&segment, &bytes).unwrap();
    check(
        &journal,
        &["replay", "--all"],
        0,
        &["note: ", "bytes are an incomplete record"],
    );
    let mut bytes = whole;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    check(
        &journal,
        &["replay", "--all"],
        2,
        &["damaged or changed at byte", "cannot read every decision"],
    );
    check(&journal, &["history"], 0, &["warning: ", "Bound"]);
}

#[test]
fn faults_are_named_and_promises_hold() {
    let trials = |arguments: &[&str]| {
        bulkhead()
            .arg("simulate")
            .arg(example())
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = trials(&["--seeds", "2", "--faults", "flap,crash-after-write,late-watches"]);
    let message = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{message}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        message.contains("2 seeds") && message.contains("every invariant held"),
        "{message}"
    );
    let output = trials(&["--seeds", "2", "--faults", "earthquake"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no fault \"earthquake\""));
}

/// Writes a scenario with a script that holds old copies for a time.
fn with_plugin(name: &str, reason: &str) -> PathBuf {
    let folder = directory(name);
    fs::create_dir_all(&folder).unwrap();
    let example = example();
    let example = example.parent().unwrap().display();
    let text = format!(
        "name: scripted\nduration: 4m\nflags: {{feature-gates: {{Failover: true}}, \
         enable-no-execute-taint-eviction: true, allow-no-execute-taint-policy: true}}\n\
         clusters: [{{name: member1}}, {{name: member2}}, {{name: member3}}]\n\
         manifests: [{example}/taint-policy.yaml, {example}/nginx.yaml, {example}/policy.yaml]\n\
         files:\n  hold.lua: |\n    function EvictionCheck(binding, task, observed, now)\n      \
         return {{verdict = 'hold', reason = '{reason}', recheckAfterSeconds = 60}}\n    end\n\
         plugins: [{{name: hold, lua: hold.lua}}]\n\
         events: [{{at: 60s, cluster: member1, state: unreachable}}]\n"
    );
    let file = folder.join("scenario.yaml");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn plugins_are_asked_again_where_their_digests_are_those_of_the_record() {
    let scenario = with_plugin("replay-plugin", "Freeze");
    let journal = directory("replay-plugin-journal");
    simulate(&scenario, &journal);
    check(&journal, &["history"], 0, &["Held", "Freeze"]);
    check(
        &journal,
        &["replay", "--all"],
        0,
        &["note: hold", "is not loaded, so its answers are those of the record"],
    );
    let again = ["replay", "--all", "--plugins", scenario.to_str().unwrap()];
    let message = check(&journal, &again, 0, &["plugins called again: hold"]);
    assert!(!message.contains("note: "), "{message}");
    let other = with_plugin("replay-plugin-other", "Thaw");
    let again = ["replay", "--all", "--plugins", other.to_str().unwrap()];
    check(&journal, &again, 0, &["note: hold", "is here with other code"]);
    check(
        &journal,
        &["replay", "--all", "--plugins", "nowhere"],
        2,
        &["--plugins", "nowhere"],
    );
}

#[test]
fn random_federations_are_written_and_run() {
    let folder = directory("random");
    let random = |arguments: &[&str]| {
        let output = bulkhead()
            .args(["simulate", "--random"])
            .arg(&folder)
            .args(arguments)
            .output()
            .unwrap();
        let message = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.code(), message)
    };
    let (code, message) = random(&["--seeds", "3", "--seed", "5"]);
    assert_eq!(code, Some(0), "{message}");
    assert!(
        message.contains("3 seeds") && message.contains("every invariant held"),
        "{message}"
    );
    let (code, message) = random(&["--seeds", "1", "--seed", "7", "--write-only"]);
    assert_eq!(code, Some(0), "{message}");
    let written = folder.join("random-7.yaml");
    let output = bulkhead().arg("simulate").arg(&written).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(random(&[]).0, Some(2), "--random needs --seeds");
}
