//! Mistakes in files and arguments: the message names the place and says what would be right, once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Creates a folder with files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = super::folder(&format!("mistakes/{name}"));
    for (file, text) in files {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// Runs a command in a folder. Returns exit code, standard output and standard error.
fn bulkhead(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = super::bulkhead().args(words).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn an_explanation_of_a_binding_that_does_not_exist_names_those_that_do() {
    let scenario = "name: a\nduration: 30s\nclusters: [{name: member1}]\n";
    let folder = folder("explain", &[("a.yaml", scenario)]);
    let (code, _, error) = bulkhead(&folder, &["simulate", "a.yaml", "--explain", "default/none"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.starts_with("error: ") && error.contains("default/none"),
        "{error}"
    );
}

#[test]
fn a_misspelt_part_of_a_scenario_is_named_with_place_path_and_suggestion() {
    let head = "name: a\nduration: 30s\nclusters: [{name: member1}]\n";
    let check = |text: &str, expected: &str| {
        let folder = folder("scenario", &[("a.yaml", text)]);
        let (code, output, error) = bulkhead(&folder, &["simulate", "a.yaml"]);
        assert_eq!(
            (code, output.as_str(), error),
            (Some(2), "", format!("error: a.yaml:{expected}\n")),
            "{text}"
        );
    };
    check(
        "name: a\nduraton: 30s\n",
        "2:1: duraton: unknown field, did you mean duration?",
    );
    check(
        "name: a\nduration: 30s\nclusters:\n- name: member1\n  replicasReadyAfter: 4s\n",
        "5:3: clusters[0].replicasReadyAfter: unknown field, did you mean replicaReadyAfter?",
    );
    check(
        &format!("{head}flags:\n  resource-evicton-rate: 3\n"),
        "5:3: flags.resource-evicton-rate: unknown field, did you mean resource-eviction-rate?",
    );
    check(
        &format!("{head}flags: {{feature-gates: {{Failver: true}}}}\n"),
        "4:25: flags.feature-gates.Failver: unknown value \"Failver\", did you mean Failover?",
    );
    check(
        &format!("{head}events:\n- at: 3s\n  cluster: member1\n  state: unreachabel\n"),
        "7:10: events[0].state: unknown value \"unreachabel\", did you mean unreachable?",
    );
    check(
        &format!("{head}events:\n- at: 3s\n  fault: {{kind: late-watches, four: 3s}}\n"),
        "6:31: events[0].fault.four: unknown field, did you mean for?",
    );
    check(
        &format!("{head}plugins: [{{name: freeze, lua: a.lua, mod: shadow}}]\n"),
        "4:38: plugins[0].mod: unknown field, did you mean mode?",
    );
    check(
        &format!("{head}manifests: [{{fiel: web.yaml}}]\n"),
        "4:13: manifests[0]: expected a file name, {file, count}, or {objects}: unknown field `fiel`, expected one of \
         `file`, `first`, `count`, did you mean file?",
    );
    check(
        "name: a\nduration: 10\n",
        "2:11: duration: \"10\" is not a duration such as 10s, 1m30s or 500ms",
    );
    check("name: a\nclusters: [{name: b}\n", "2:11: unclosed bracket '['");
}

#[test]
fn misspelt_parts_of_other_files_have_suggestions_too() {
    let list =
        "apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\nplugins:\n- {name: freeze, lua: a.lua, mod: shadow}\n";
    let case = "cases:\n- name: a\n  kind: heatlh\n";
    let script = "function InterpretHealth(object)\n  return true\nend\n";
    let files = [("plugins.yaml", list), ("cases.yaml", case), ("health.lua", script)];
    let folder = folder("others", &files);
    let (code, output, _) = bulkhead(
        &folder,
        &[
            "doctor",
            "--mode=finish",
            "--kubeconfig=/nowhere/a",
            "--plugin-directory=.",
            "-o",
            "json",
        ],
    );
    let expected = "./plugins.yaml:4:30: plugins[0].mod: unknown field, did you mean mode?";
    assert!(code == Some(1) && output.contains(expected), "{output}");
    let (code, _, error) = bulkhead(&folder, &["plugin", "test", "health.lua", "--cases", "cases.yaml"]);
    let expected = "error: cases.yaml:3:9: cases[0].kind: unknown value \"heatlh\", did you mean health?\n";
    assert_eq!((code, error.as_str()), (Some(2), expected));
}

#[test]
fn a_directory_in_place_of_a_scenario_is_an_error_with_the_file_to_name() {
    let folder = folder("directory", &[("scenario.yaml", super::HEAD)]);
    fs::create_dir_all(folder.join("empty")).unwrap();
    let (code, _, error) = bulkhead(&folder, &["simulate", "."]);
    assert_eq!(
        (code, error.as_str()),
        (Some(2), "error: . is a directory; its scenario is ./scenario.yaml\n")
    );
    let (code, _, error) = bulkhead(&folder, &["simulate", "empty"]);
    let expected = "error: empty is a directory without a scenario.yaml; name a scenario file\n";
    assert_eq!((code, error.as_str()), (Some(2), expected));
}

#[test]
fn a_replay_without_an_id_names_the_ways_to_an_id() {
    let folder = folder("replay", &[("scenario.yaml", super::HEAD)]);
    assert_eq!(
        bulkhead(&folder, &["simulate", "scenario.yaml", "--journal", "journal"]).0,
        Some(0)
    );
    let (code, _, error) = bulkhead(&folder, &["replay", "--journal", "journal"]);
    assert_eq!(code, Some(2), "{error}");
    for part in [
        "bulkhead history --journal journal",
        "bulkhead.dev/decision",
        "--all",
        "the journal has 1 to ",
    ] {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
}

#[test]
fn a_plugin_directory_that_is_not_there_is_an_error_with_its_expected_content() {
    let folder = folder("plugins", &[("health.lua", "")]);
    for path in ["missing", "health.lua"] {
        let argument = format!("--plugin-directory={path}");
        let words = [
            "doctor",
            "--mode=finish",
            "--kubeconfig=/nowhere/a",
            &argument,
            "-o",
            "json",
        ];
        let (code, output, _) = bulkhead(&folder, &words);
        let expected = format!("{path}: there is no such directory; a directory of plugins has a plugins.yaml, or ");
        assert!(code == Some(1) && output.contains(&expected), "{output}");
    }
}

#[test]
fn a_call_of_nil_in_a_script_names_the_function() {
    let object = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n";
    let check = |body: &str, expected: &str| {
        let script = format!("local check = nil\nfunction InterpretHealth(object)\n  return {body}\nend\n");
        let folder = folder("nil", &[("health.lua", &script), ("object.yaml", object)]);
        let words = [
            "interpret",
            "-f",
            "health.lua",
            "--operation",
            "InterpretHealth",
            "--observed-file",
            "object.yaml",
        ];
        let (code, output, error) = bulkhead(&folder, &words);
        let expected = format!("health.lua:3: attempt to call a nil value: {expected}\n");
        assert!(
            code == Some(1) && (output.clone() + &error).contains(&expected),
            "{body}: {output}{error}"
        );
    };
    check("isHealthy(object)", "isHealthy is not defined");
    check("chek(object)", "chek is not defined; did you mean check?");
    check("check(object)", "check is nil");
    check("object.isHealthy()", "there is no function object.isHealthy");
    check("string.trim(object.kind)", "there is no function string.trim");
}

#[test]
fn a_file_in_place_of_the_directory_of_generated_scenarios_is_named() {
    let folder = folder("random", &[("base.yaml", "name: a\n")]);
    let (code, _, error) = bulkhead(&folder, &["simulate", "--random", "base.yaml", "--seeds", "1"]);
    assert_ne!(code, Some(0), "{error}");
    assert!(
        error.contains("--random base.yaml: cannot create this directory"),
        "{error}"
    );
}

#[test]
fn a_negative_number_of_replicas_is_refused() {
    let folder = folder("replicas", &[]);
    let (code, _, error) = bulkhead(
        &folder,
        &["interpret", "--operation", "ReviseReplica", "--desired-replica=-3"],
    );
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("-3 is not in 0.."), "{error}");
}

#[test]
fn a_plugin_name_that_control_planes_refuse_is_refused() {
    let script = "function EvictionCheck(binding, task, observed, now) return { verdict = \"abstain\" } end";
    let folder = folder("plugin-name", &[("hold.lua", script)]);
    for name in ["Bad_Name ü", "", "a..b"] {
        let (code, output, error) = bulkhead(&folder, &["plugin", "object", "hold.lua", "--name", name]);
        assert!(code != Some(0) && output.is_empty(), "{name:?}: {output}");
        assert!(
            error.contains("cannot be the name of an object: use --name"),
            "{name:?}: {error}"
        );
    }
    let (code, _, error) = bulkhead(&folder, &["plugin", "object", "hold.lua", "--name", "hold-1.example"]);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_journal_file_of_no_bytes_is_not_a_journal_without_decisions() {
    let (first, second) = ("segment-0000000001.journal", "segment-0000000002.journal");
    let new = folder("new-journal", &[(first, "")]);
    for words in [
        ["history", "--journal", "."].as_slice(),
        &["replay", "--all", "--journal", "."],
    ] {
        let (code, output, error) = bulkhead(&new, words);
        assert_eq!((code, output.as_str()), (Some(2), ""), "{words:?}: {error}");
        assert!(error.contains("segment-0000000001.journal: has no bytes"), "{error}");
    }
    let opened = folder("opened-journal", &[]);
    drop(bulkhead_journal::Writer::open(&opened, bulkhead_journal::Bounds::default(), |_| {}).unwrap());
    let (code, output, error) = bulkhead(&opened, &["history", "--journal", "."]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{output}");
    assert!(output.contains("no matching decisions"), "{output}");
    let folder = folder("empty-journal", &[(first, ""), (second, "")]);
    for words in [
        ["history", "--journal", "."].as_slice(),
        &["replay", "--all", "--journal", "."],
    ] {
        let (code, output, error) = bulkhead(&folder, words);
        assert_eq!((code, output.as_str()), (Some(2), ""), "{words:?}: {error}");
        assert!(
            error.contains("segment-0000000001.journal: ends at byte 0"),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn a_cut_journal_is_not_a_journal_without_the_decision() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nginx-duplicated/scenario.yaml");
    let folder = folder("cut-journal", &[]);
    let (code, _, error) = bulkhead(
        &folder,
        &["simulate", &example.display().to_string(), "--journal", "journal"],
    );
    assert_eq!(code, Some(0), "{error}");
    let released = ["history", "--journal", "journal", "--decision", "released"];
    let (code, output, error) = bulkhead(&folder, &released);
    assert!(code == Some(0) && output.contains("Released"), "{output}{error}");
    let file = folder.join("journal/segment-0000000001.journal");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 3]).unwrap();
    let (code, output, error) = bulkhead(&folder, &released);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(
        output,
        "no matching decisions in the part of the journal that can be read\n"
    );
    assert!(
        error.contains("the file was cut and later records are missing"),
        "{error}"
    );
}

#[test]
fn a_problem_with_a_field_of_a_scenario_has_its_line_and_column() {
    let check = |name: &str, text: &str, expected: &str| {
        let folder = folder(&format!("line-{name}"), &[("s.yaml", text)]);
        let (code, _, error) = bulkhead(&folder, &["simulate", "s.yaml"]);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    check(
        "duration",
        "name: x\nduration: 0s\nclusters: [{name: a}]\n",
        "s.yaml:2:11: duration: must be greater than 0",
    );
    check(
        "clusters",
        "name: x\nduration: 5m\n\n\n\nclusters: []\n",
        "s.yaml:6:11: clusters: must name at least one",
    );
    let flags = "name: x\nduration: 5m\nflags:\n  failback-concurrency: 0\nclusters: [{name: a}]\n";
    check(
        "flags",
        flags,
        "s.yaml:4:25: flags.failback-concurrency: must be 1 or more",
    );
    let inline =
        "name: x\nduration: 5m\nflags: {enable-failback: true, failback-concurrency: 0}\nclusters: [{name: a}]\n";
    check(
        "flag-inline",
        inline,
        "s.yaml:3:54: flags.failback-concurrency: must be 1 or more",
    );
    let rate = "name: x\nduration: 5m\nflags: {resource-eviction-rate: .inf}\nclusters: [{name: a}]\n";
    check("infinite", rate, "s.yaml:3:33: .inf is not a finite number");
}

/// Karmada's proposal "Optimize cluster failover" names this flag.
#[test]
fn a_flag_that_only_a_document_names_is_refused_with_the_alternative() {
    let scenario = "name: x\nduration: 5m\nflags: {evict-plugins: [ResourceHealth]}\nclusters: [{name: a}]\n";
    let file = "apiVersion: bulkhead.dev/v1alpha1\nkind: BulkheadConfiguration\nevict-plugins: [ResourceHealth]\n";
    let folder = folder("document-flag", &[("s.yaml", scenario), ("c.yaml", file)]);
    let check = |words: &[&str], place: &str| {
        let (code, _, error) = bulkhead(&folder, words);
        assert_eq!(code, Some(2), "{words:?}: {error}");
        let advice = "eviction checks are plugins, and `composition: {eviction-check: …}`";
        assert!(error.contains(place) && error.contains(advice), "{words:?}: {error}");
    };
    check(
        &["run", "--evict-plugins=ResourceHealth"],
        "error: unexpected argument '--evict-plugins'; ",
    );
    check(
        &["config", "print", "--config", "c.yaml"],
        "c.yaml:3:1: evict-plugins: unknown field; ",
    );
    check(
        &["simulate", "s.yaml"],
        "s.yaml:3:9: flags.evict-plugins: unknown field; ",
    );
}

#[test]
fn a_link_to_its_own_directory_is_searched_once() {
    let folder = folder("loop", &[("web.lua", "function GetReplicas(obj) return 1 end")]);
    let check = || bulkhead(&folder, &["interpret", "-R", "-f", ".", "--check"]);
    let before = check();
    std::os::unix::fs::symlink(".", folder.join("itself")).unwrap();
    assert_eq!(check(), before);
    assert!(
        before.1.contains("web.lua") || before.2.contains("web.lua"),
        "{before:?}"
    );
}
