//! `bulkhead plugin`: new plugins build, load, and pass their own tests.

use std::fs;
use std::path::{Path, PathBuf};

use super::folder;

/// Runs `bulkhead plugin` in a folder. Returns exit code and combined output.
fn plugin(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = super::bulkhead();
    // One target directory for all tests, so that the SDK is compiled once.
    command.env(
        "CARGO_TARGET_DIR",
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plugin-builds"),
    );
    let output = command
        .arg("plugin")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let (code, text) = plugin(folder, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {text}");
    text
}

/// Kinds of plugins, as `--kind` takes them.
pub(crate) const KINDS: [&str; 6] = [
    "health",
    "cluster-taint",
    "filter",
    "score",
    "eviction-check",
    "resource-interpreter",
];

#[test]
fn a_new_script_of_each_kind_loads_and_passes_its_tests() {
    for kind in KINDS {
        let folder = folder(&format!("lua-{kind}"));
        succeeds(&folder, &["new", "--kind", kind, "--lang", "lua", "mine"]);
        let mine = folder.join("mine");
        let message = succeeds(&mine, &["test"]);
        assert!(message.contains("passed"), "{kind}: {message}");
        assert!(succeeds(&mine, &["inspect"]).contains("sha256"), "{kind}");
        assert!(succeeds(&mine, &["bench"]).contains(" us"), "{kind}");
    }
}

#[test]
fn a_new_crate_of_each_kind_builds_loads_and_passes_its_tests() {
    for kind in KINDS {
        let folder = folder(&format!("rust-{kind}"));
        succeeds(&folder, &["new", "--kind", kind, "--lang", "rust", "mine"]);
        let mine = folder.join("mine");
        succeeds(&mine, &["build"]);
        let size = fs::metadata(mine.join("mine.wasm")).unwrap().len();
        assert!(size <= 100 << 10, "{kind}: {size} bytes");
        let message = succeeds(&mine, &["test"]);
        assert!(message.contains("passed"), "{kind}: {message}");
        assert!(succeeds(&mine, &["test", "--reused"]).contains("passed"), "{kind}");
        assert!(
            succeeds(&mine, &["inspect"]).contains("bulkhead:policy@0.1.0"),
            "{kind}"
        );
        assert!(succeeds(&mine, &["bench"]).contains(" us"), "{kind}");
    }
}

#[test]
fn a_benchmark_of_calls_that_fail_is_no_success() {
    let folder = folder("bench-faults");
    succeeds(&folder, &["new", "--kind", "health", "--lang", "lua", "mine"]);
    let mine = folder.join("mine");
    let cost = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&succeeds(&mine, &[&["bench", "-o", "json"], arguments].concat())).unwrap()
    };
    let own = cost(&[]);
    let number = |row: &serde_json::Value, field: &str| row[field].as_u64().unwrap();
    assert!(number(&own[0], "steps") > 0 && own[0]["memoryBytes"].is_u64(), "{own}");
    let script = fs::read_to_string(mine.join("mine.lua")).unwrap();
    let slow = script.replacen("InterpretHealth(", "Before(", 1)
        + "\nfunction InterpretHealth(...)\n  for i = 1, 5000 do end\n  print('slow')\n  return Before(...)\nend\n";
    fs::write(mine.join("slow.lua"), slow).unwrap();
    let (code, text) = plugin(&mine, &["bench", "--against", "slow.lua", "-o", "json"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("slow [info] slow"), "{text}");
    let pairs = text
        .find('[')
        .map(|_| &text[text.find("[\n").unwrap()..=text.rfind("]\n").unwrap()]);
    let pairs: serde_json::Value = serde_json::from_str(pairs.unwrap()).unwrap();
    assert!(
        number(&pairs[0]["against"], "steps") > number(&pairs[0], "steps") + 5_000,
        "{pairs}"
    );
    fs::write(
        mine.join("bad.lua"),
        "function InterpretHealth(obj)\n  return obj.none.x\nend\n",
    )
    .unwrap();
    let (code, text) = plugin(&mine, &["bench", "bad.lua", "--cases", "cases"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(" fault ") && text.contains("bad.lua:2: "), "{text}");
    let (code, text) = plugin(&mine, &["bench", "--against", "none.lua"]);
    assert!(code == Some(2) && text.contains("none.lua: No such file"), "{text}");
}

#[test]
fn one_question_is_asked_and_answered() {
    let folder = folder("run");
    succeeds(&folder, &["new", "--kind", "eviction-check", "--lang", "lua", "mine"]);
    let mine = folder.join("mine");
    let message = succeeds(&mine, &["run", "--input", "cases/cases.yaml"]);
    assert!(
        message.contains("verdict: hold") && message.contains("2 of 3 replicas"),
        "{message}"
    );
    let (code, message) = plugin(&mine, &["run", "--input", "cases/cases.yaml", "--name", "nothing"]);
    assert_eq!(code, Some(2));
    assert!(
        message.contains("there is no such case; there are: the old copy is held"),
        "{message}"
    );
}

#[test]
fn a_recorded_decision_is_made_again_with_the_plugin() {
    let folder = folder("from-journal");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let scenario = workspace.join("examples/nginx-divided/scenario.yaml");
    let mut simulate = super::bulkhead();
    let simulate = simulate.arg("simulate").arg(scenario).args(["--journal", "journal"]);
    assert!(simulate.current_dir(&folder).output().unwrap().status.success());
    let history = super::bulkhead()
        .args([
            "history",
            "--journal",
            "journal",
            "--decision",
            "Released",
            "-o",
            "json",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    let history: serde_json::Value = serde_json::from_slice(&history.stdout).unwrap();
    let id = history
        .pointer("/0/record/id")
        .and_then(serde_json::Value::as_u64)
        .unwrap();
    let script = |name: &str, verdict: &str| {
        let code = format!("function EvictionCheck(binding, task, observed, now)\n  return {verdict}\nend\n");
        fs::write(folder.join(name), code).unwrap();
    };
    script(
        "holds.lua",
        "{verdict = 'hold', reason = 'OnPurpose', message = 'not yet'}",
    );
    script("silent.lua", "{verdict = 'abstain'}");
    let id = id.to_string();
    let run = |name: &str| plugin(&folder, &["run", name, "--journal", "journal", "--from-journal", &id]);
    let (code, message) = run("holds.lua");
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("- ") && message.contains("OnPurpose"), "{message}");
    let (code, message) = run("silent.lua");
    assert_eq!(code, Some(0), "{message}");
    assert!(message.contains("the same with silent: Released: "), "{message}");
    let (code, message) = plugin(
        &folder,
        &["run", "silent.lua", "--journal", "journal", "--from-journal", "web"],
    );
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("is not the id of a decision"), "{message}");
}

#[test]
fn the_message_of_a_panic_is_shown() {
    let folder = folder("panic");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let guest = workspace.join("target/guests/asks-wasi.wasm").display().to_string();
    let case = "\
cases:
- name: a task
  kind: eviction-check
  input:
    binding: {name: web, spec: {resource: {apiVersion: apps/v1, kind: Deployment, name: web}}}
    task: {fromCluster: member1, reason: TaintUntolerated}
    reports: []
  expect: {verdict: hold, reason: AskedWasi}
";
    fs::write(folder.join("case.yaml"), case).unwrap();
    let run = ["run", guest.as_str(), "--config", "panics", "--input", "case.yaml"];
    let (code, message) = plugin(&folder, &run);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("asks-wasi [warn] panicked at "), "{message}");
    assert!(message.contains("on purpose"), "{message}");
}

#[test]
fn a_plugin_that_breaks_its_cases_ends_with_1() {
    let folder = folder("broken");
    succeeds(&folder, &["new", "--kind", "score", "--lang", "lua", "mine"]);
    let mine = folder.join("mine");
    fs::write(
        mine.join("mine.lua"),
        "function Score(binding, clusters, now) return {} end",
    )
    .unwrap();
    let (code, message) = plugin(&mine, &["test", "--junit", "junit.xml"]);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("clusters of the region come first"), "{message}");
    let junit = fs::read_to_string(mine.join("junit.xml")).unwrap();
    assert!(junit.starts_with("<?xml") && junit.contains("<failure"), "{junit}");
}

#[test]
fn unusable_input_ends_with_2_and_a_reason() {
    let folder = folder("bad");
    let check = |arguments: &[&str], part: &str| {
        let (code, message) = plugin(&folder, arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: no {part:?} in: {message}");
    };
    fs::write(folder.join("text.wasm"), "no component").unwrap();
    fs::write(folder.join("empty.lua"), "local x = 1").unwrap();
    fs::write(folder.join("readme.txt"), "no plugin").unwrap();
    fs::write(
        folder.join("broken.lua"),
        "function InterpretHealth(obj)\n  return obj.\nend",
    )
    .unwrap();
    check(&["inspect", "text.wasm"], "is not WebAssembly in binary form");
    check(&["inspect", "empty.lua"], "none of the known global functions");
    check(&["inspect", "broken.lua"], "broken.lua:3:");
    check(&["inspect", "gone.lua"], "failed to fetch");
    check(&["inspect", "gone"], "gone: no such file or directory");
    check(
        &["inspect", "readme.txt"],
        "neither a component (.wasm), a script (.lua), a customization (.yaml) nor a directory",
    );
    check(&["test", "."], "plugin.yaml; a plugin directory has one");
    check(&["build", "."], "has neither a Cargo.toml nor a build.yaml");
    check(&["new", "--kind", "health", "Not A Name"], "is not a plugin name");
}

#[test]
fn compiled_components_are_kept_where_the_user_says_and_change_no_answer() {
    let folder = folder("cache");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let guest = workspace.join("target/guests/most-free.wasm");
    assert!(
        guest.is_file(),
        "{} is missing; run `cargo xtask guests`",
        guest.display()
    );
    let inspect = |cache: &str| {
        succeeds(
            &folder,
            &["inspect", &guest.display().to_string(), "--plugin-cache", cache],
        )
    };
    let kept = |cache: &str| fs::read_dir(folder.join(cache)).map_or(0, Iterator::count);
    let compiled = inspect("off");
    assert_eq!(kept("off"), 0);
    for _ in 0..2 {
        assert_eq!(inspect("kept"), compiled);
        assert_eq!(kept("kept"), 1);
    }
    fs::write(folder.join("file"), "").unwrap();
    let (code, message) = plugin(
        &folder,
        &["inspect", &guest.display().to_string(), "--plugin-cache", "file"],
    );
    assert_eq!(code, Some(2));
    assert!(
        message.contains("--plugin-cache: cannot create the folder file for compiled components"),
        "{message}"
    );
}

#[test]
fn a_customization_is_tested_and_has_to_run_on_karmadas_machine() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let library = workspace.join("plugins/lua/kinds/apps.kruise.io/v1alpha1/CloneSet");
    let message = succeeds(&library, &["test", "customization.yaml"]);
    assert!(
        message.contains("ok      Karmada's Lua engine accepts its scripts"),
        "{message}"
    );
    assert!(
        message.matches("  ok ").count() > 10,
        "its own cases were not run: {message}"
    );
    let folder = folder("customization");
    let script =
        "function InterpretHealth(o)\n          local n = 0\n          n += 1\n          return n == 1\n        end";
    let text = format!(
        "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {{name: a}}\nspec:\n  \
         target: {{apiVersion: v1, kind: A}}\n  customizations:\n    healthInterpretation:\n      luaScript: |\n        {script}\n"
    );
    fs::write(folder.join("a.yaml"), &text).unwrap();
    let (code, message) = plugin(&folder, &["test", "a.yaml"]);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("a.yaml:11:13: Karmada does not take +="), "{message}");
    // A bare script may be for this program only: this is reported, and is no failure.
    fs::write(folder.join("a.lua"), script).unwrap();
    let message = succeeds(&folder, &["test", "a.lua"]);
    assert!(
        message.contains("skipped Karmada's Lua engine") && message.contains("a.lua:3:13: Karmada does not take +="),
        "{message}"
    );
    assert!(succeeds(&folder, &["inspect", "a.lua"]).contains("a.lua:3:13:"));
    fs::write(folder.join("two.yaml"), format!("{text}---\n{text}")).unwrap();
    let (code, message) = plugin(&folder, &["test", "two.yaml"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("two.yaml must contain one customization"), "{message}");
}

/// Both commands name the line of the file, with the same words.
#[test]
fn a_fault_of_a_customization_has_the_coordinates_of_interpret() {
    let folder = folder("coordinates");
    let text = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\n\
                spec:\n  target: {apiVersion: v1, kind: A}\n  customizations:\n    healthInterpretation:\n      \
                luaScript: |\n        function InterpretHealth(o)\n          return o.gone.ready == true\n        end\n";
    fs::write(folder.join("a.yaml"), text).unwrap();
    fs::write(folder.join("object.yaml"), "apiVersion: v1\nkind: A\n").unwrap();
    let cause = "a.yaml:10: attempt to index nil with 'ready': o.gone is nil, test it first (in healthInterpretation)";
    let (code, message) = plugin(&folder, &["test", "a.yaml"]);
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains(cause), "{message}");
    let mut interpret = super::bulkhead();
    interpret.args([
        "interpret",
        "-f",
        "a.yaml",
        "--operation",
        "InterpretHealth",
        "--observed-file",
        "object.yaml",
    ]);
    let output = interpret.current_dir(&folder).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(cause), "{message}");
    fs::write(folder.join("a.yaml"), text.replace("o.gone.ready == true", "o.")).unwrap();
    let (code, message) = plugin(&folder, &["test", "a.yaml"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(
        message.contains("a.yaml:11: Expected identifier, got 'end'"),
        "{message}"
    );
}

#[test]
fn a_plugin_becomes_an_object_that_says_the_same() {
    let folder = folder("object");
    succeeds(&folder, &["new", "--kind", "score", "--lang", "lua", "mine"]);
    let text = succeeds(&folder, &["object", "mine", "--name", "vital", "--config", "{}"]);
    let object: bulkhead_api::Plugin = serde_saphyr::from_str(&text).unwrap();
    let found = bulkhead_plugin::find_object(&object.to_object()).unwrap();
    let mut files = fs::read_dir(folder.join("mine"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let script = files
        .find(|path| path.extension().is_some_and(|extension| extension == "lua"))
        .unwrap();
    assert_eq!(
        (found.source.name.as_str(), &*found.source.modules[0].code),
        ("vital", &*fs::read(script).unwrap())
    );
    assert_eq!(found.source.config, serde_json::json!({}));
    fs::write(folder.join("broken.lua"), "function Score(").unwrap();
    let (code, message) = plugin(&folder, &["object", "broken.lua"]);
    assert!(
        code != Some(0) && message.contains("broken.lua") && message.contains("failed to compile"),
        "{message}"
    );
    assert!(!message.contains("kind: Plugin"), "{message}");
}
