//! Case files: accepted fields, rejected fields, and the outcome of a case.

use std::sync::Arc;

use bulkhead_core::call::CallKind;
use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::Policy;
use bulkhead_plugin::{LoadError, LoadStage};
use serde_json::Value;

use super::*;
use crate::scripted::Scripted;

fn one(case: &str) -> String {
    let lines: Vec<_> = case.trim_matches('\n').lines().collect();
    format!(
        "cases:\n  - name: one\n{}\n",
        lines
            .iter()
            .map(|line| format!("    {line}"))
            .collect::<Vec<_>>()
            .join("\n")
    )
}

fn problems(text: &str) -> String {
    parse_cases("c.yaml", text).map_or_else(|error| error.to_string(), |cases| format!("{} cases", cases.len()))
}

/// Returns the outcome of one case with a well-behaved policy.
fn outcome(kind: CallKind, case: &str) -> Outcome {
    let cases = parse_cases("c.yaml", &one(case)).unwrap();
    let policy = Scripted::good(kind);
    let mut checks = run(&Subject::new(&policy, Budget::default()), &cases);
    checks.remove(0).outcome
}

const GAME: &str = "
kind: health
input:
  object: {apiVersion: example.io/v1, kind: Game, status: {readyReplicas: 3}}
";

const CANDIDATES: &str = "
input:
  binding: {name: b, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}
  clusters:
    - {name: m1, labels: {tier: gold}, spec: {syncMode: Push, region: eu-west}}
    - {metadata: {name: m2}, spec: {syncMode: Push}}
";

#[test]
fn errors_name_file_line_column_and_field() {
    let check = |case: &str, expected: &str| assert_eq!(problems(&one(case)), expected);
    let game = |expect: &str| format!("{GAME}{expect}");
    check(
        &game("expect: {}"),
        "c.yaml:6:13: cases[0].expect: expects nothing; a health case needs health or fault",
    );
    check(
        &game("expect:\n  health: Healthy\n  scores: {m1: 1}"),
        "c.yaml:8:15: cases[0].expect.scores: a health case expects health, reason, message or fault",
    );
    check(
        &game("expect:\n  fault: trap\n  reason: Broken"),
        "c.yaml:8:15: cases[0].expect.reason: a fault is the whole answer, nothing else can be expected",
    );
    check(
        "kind: health\ninput: {}\nexpect: {health: Healthy}",
        "c.yaml:4:12: cases[0].input.object: is missing",
    );
    check(
        "kind: health\ninput:\n  object: {}\n  cluster: {}\nexpect: {health: Healthy}",
        "c.yaml:6:16: cases[0].input.cluster: is not an input of this health case, which has object",
    );
    check(
        "kind: cluster-taint\ninput:\n  cluster: {name: m1, spec: {syncMode: Push}, statsu: {a: 1}}\nexpect: {taints: []}",
        "c.yaml:5:16: cases[0].input.cluster: there is no field statsu",
    );
    check(
        &format!("kind: filter{CANDIDATES}expect:\n  clusters: {{m3: fit}}"),
        "c.yaml:10:17: cases[0].expect.clusters: there is no cluster \"m3\" in the input",
    );
    check(
        "kind: health\ninput:\n  object: {}\n  now: yesterday\nexpect: {health: Healthy}",
        "c.yaml:6:12: cases[0].input.now: \"yesterday\" is not an RFC 3339 time, such as 2026-01-01T00:00:00Z",
    );
    check(
        "kind: interpret\ninput: {object: {}}\nexpect: {noRule: true}",
        "c.yaml:2:5: cases[0].operation: is missing; an interpret case needs one, such as InterpretReplica",
    );
    check(
        "kind: cluster-taint\ninput: {cluster: {name: m1}}\nexpect:\n  taints:\n    - {reason: A}",
        "c.yaml:7:11: cases[0].expect.taints[0]: needs either add or remove",
    );
}

#[test]
fn every_problem_of_a_file_is_reported() {
    let game = "kind: health, input: {object: {}}, expect: {health: Healthy}";
    let twice = format!(
        "cases:\n  - {{name: a, {game}}}\n  - {{name: a, {game}}}\n  - {{name: b, kind: score, input: {{}}, expect: {{}}}}\n"
    );
    let expected = "c.yaml:3:12: cases[1].name: there are two cases \"a\"\n\
                    c.yaml:4:35: cases[2].input.clusters: is missing\n\
                    c.yaml:4:35: cases[2].input.binding: is missing\n\
                    c.yaml:4:47: cases[2].expect: expects nothing; a score case needs scores or order or fault";
    assert_eq!(problems(&twice), expected);
    assert_eq!(problems("cases: []\n"), "c.yaml:1:8: cases: there are none");
}

#[test]
fn misspelt_fields_and_words_are_refused_with_their_line() {
    let check = |case: &str, words: &[&str]| {
        let problems = problems(&one(case));
        for word in words {
            assert!(problems.contains(word), "no {word:?} in:\n{problems}");
        }
    };
    check(
        "knid: health\ninput: {}\nexpect: {}",
        &["c.yaml:3:5: cases[0].knid: unknown field, did you mean kind?"],
    );
    check(
        &format!("{GAME}expect: {{haelth: Healthy}}"),
        &["c.yaml:6:", "haelth", "did you mean health?"],
    );
    check(
        &format!("{GAME}expect: {{health: Fine}}"),
        &["c.yaml:6:", "Fine", "Healthy"],
    );
    check(
        &format!("kind: filter{CANDIDATES}expect: {{clusters: {{m1: perhaps}}}}"),
        &["c.yaml:9:", "`fit`, `unfit`, `abstain`"],
    );
    check(
        &format!("{GAME}budget: {{setps: 1}}\nexpect: {{health: Healthy}}"),
        &["setps: unknown field, did you mean steps?"],
    );
}

#[test]
fn a_case_passes_when_the_answer_is_as_expected() {
    let passes = |kind, case: &str| assert_eq!(outcome(kind, case), Outcome::Passed, "{case}");
    passes(
        CallKind::Health,
        &format!("{GAME}expect: {{health: Healthy, reason: Ready, message: as reported}}"),
    );
    let verdicts = "expect: {clusters: {m1: fit, m2: {verdict: unfit, reason: NotGold}}}";
    passes(CallKind::Filter, &format!("kind: filter{CANDIDATES}{verdicts}"));
    passes(
        CallKind::Score,
        &format!("kind: score{CANDIDATES}expect: {{scores: {{m1: 100}}, order: [m1, m2]}}"),
    );
    let eviction = "kind: eviction-check\ninput:\n  binding: {name: b, spec: {resource: {apiVersion: v1, kind: Pod, name: p}}}\n  \
                    task: {fromCluster: m1, reason: Tainted, producer: test}\n  reports: [{clusterName: m1}]\n";
    passes(
        CallKind::EvictionCheck,
        &format!("{eviction}expect: {{verdict: hold, reason: Reports, recheckAfterSeconds: 10}}"),
    );
    passes(
        CallKind::EvictionCheck,
        &format!(
            "{}expect: {{verdict: hold, reason: Reports, recheckAfterSeconds: 10}}",
            eviction.replace("  reports: [{clusterName: m1}]\n", "")
        ),
    );
    let taints = "expect:\n  taints:\n    - {add: {key: example.io/unreachable, effect: NoExecute}, reason: NotReady}";
    passes(
        CallKind::ClusterTaint,
        &format!("kind: cluster-taint\ninput: {{cluster: {{name: m1}}}}\n{taints}"),
    );
    let game = |operation: &str, more: &str| {
        let object = "{apiVersion: example.io/v1, kind: Game, spec: {rooms: 2}}";
        format!("kind: interpret\noperation: {operation}\ninput: {{object: {object}{more}}}\n")
    };
    passes(
        CallKind::Interpret,
        &format!("{}expect: {{result: {{replicas: 3.0}}}}", game("InterpretReplica", "")),
    );
    passes(
        CallKind::Interpret,
        &format!("{}expect: {{result: null}}", game("InterpretStatus", "")),
    );
    passes(
        CallKind::Interpret,
        &format!(
            "{}expect: {{contains: {{spec: {{replicas: 7}}}}}}",
            game("ReviseReplica", ", replicas: 7")
        ),
    );
    passes(
        CallKind::Interpret,
        &format!("{}expect: {{noRule: true}}", game("InterpretDependency", "")),
    );
}

#[test]
fn a_case_fails_with_what_was_expected_and_what_came() {
    let fails = |kind, case: &str, expected: &str| match outcome(kind, case) {
        Outcome::Failed { why } => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    };
    fails(
        CallKind::Health,
        &format!("{GAME}expect: {{health: Healthy, reason: Fine}}"),
        "c.yaml:2: \nexpected Healthy (Fine)\n     got Healthy (Ready: as reported)",
    );
    fails(
        CallKind::Health,
        &format!("{GAME}expect: {{fault: guest-error}}"),
        "c.yaml:2: \nexpected the fault guest-error\n     got Healthy (Ready: as reported)",
    );
    fails(
        CallKind::Filter,
        &format!("kind: filter{CANDIDATES}expect: {{clusters: {{m1: abstain, m2: fit}}}}"),
        "c.yaml:2: \nm1: expected abstain, got fit\nm2: expected fit, got unfit (NotGold)",
    );
    fails(
        CallKind::Health,
        &format!("{GAME}budget: {{steps: 999}}\nexpect: {{health: Healthy}}"),
        "c.yaml:2: took 1000 steps, at most 999 were expected",
    );
    fails(
        CallKind::Score,
        &format!("{GAME}expect: {{health: Healthy}}"),
        "c.yaml:2: it does not answer health calls about example.io/v1 Game",
    );
}

#[test]
fn a_case_with_a_configuration_needs_a_way_to_load() {
    let case = format!("{GAME}config: {{fine: true}}\nexpect: {{health: Healthy}}");
    let skipped = "it cannot be loaded with another configuration";
    assert_eq!(outcome(CallKind::Health, &case), Outcome::skipped(skipped));
    let load = |config: &Value| {
        if config.get("fine").is_some() {
            return Ok(Arc::new(Scripted::good(CallKind::Health)) as Arc<dyn Policy>);
        }
        let message = "unknown field `other`".to_owned();
        Err(LoadError {
            plugin: "p".into(),
            origin: "p.lua".into(),
            stage: LoadStage::Configured,
            message,
        })
    };
    let policy = Scripted::good(CallKind::Health);
    let subject = Subject::new(&policy, Budget::default()).with_loader(&load);
    let ask = |case: &str| run(&subject, &parse_cases("c.yaml", &one(case)).unwrap()).remove(0);
    assert_eq!(ask(&case).outcome, Outcome::Passed);
    assert_eq!(ask(&case).steps, 1_000);
    let other = ask(&case.replace("fine:", "other:"));
    assert!(matches!(&other.outcome, Outcome::Failed { why } if why.contains("does not load with {\"other\":true}")));
    assert_eq!(policy.calls(), 0);
}

#[test]
fn a_directory_without_cases_is_an_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases");
    let error = read_cases(&folder).unwrap_err().to_string();
    assert!(error.ends_with("there is no .yaml file with cases in it"), "{error}");
    assert!(read_cases(Path::new("nowhere.yaml")).is_err());
}
