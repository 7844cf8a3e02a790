//! The steps of the GitHub Action in `host/deploy/action`, run by a shell as a runner would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::folder;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

fn action() -> Value {
    let text = fs::read_to_string(root().join("host/deploy/action/action.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// Returns the value of an input expression such as `${{ inputs.plugin }}`: a given one, or the default.
fn value(action: &Value, expression: &str, given: &[(&str, &str)]) -> String {
    let name = expression.trim_start_matches("${{ inputs.").trim_end_matches(" }}");
    let default = action["inputs"][name]["default"].as_str();
    let default = default.unwrap_or_else(|| panic!("{expression} is no input with a default"));
    let given = given.iter().find(|(input, _)| *input == name);
    given.map_or(default, |(_, value)| value).to_owned()
}

/// Runs a step with inputs, in the root of the repository.
fn step(name: &str, given: &[(&str, &str)]) -> Output {
    let action = action();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == name).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-eo", "pipefail", "-c", step["run"].as_str().unwrap()])
        .current_dir(root());
    let given = [given, &[("program", env!("CARGO_BIN_EXE_bulkhead"))][..]].concat();
    for (variable, expression) in step["env"].as_object().unwrap() {
        command.env(variable, value(&action, expression.as_str().unwrap(), &given));
    }
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Command that makes a plugin with cases.
const NEW: [&str; 7] = ["plugin", "new", "hold", "--kind", "eviction-check", "--lang", "lua"];
/// Check that releases no old copy.
const NEVER: &str = "function EvictionCheck(binding, task, observed, now)
    return { verdict = 'hold', reason = 'Never', message = 'the old copy stays' }
end
";
#[test]
fn the_action_runs_the_cases_of_a_plugin_and_writes_their_results() {
    let here = folder("action-test");
    let made = super::bulkhead().current_dir(&here).args(NEW).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    let (plugin, junit) = (
        here.join("hold").display().to_string(),
        here.join("results of cases.xml"),
    );
    let (cases, file) = (format!("{plugin}/cases"), junit.display().to_string());
    for given in [
        &[("plugin", &*plugin)][..],
        &[("plugin", &*plugin), ("cases", &*cases), ("junit", &*file)],
    ] {
        let output = step("bulkhead plugin test", given);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    assert!(fs::read_to_string(&junit).unwrap().contains("<testsuite"));
    let output = step("bulkhead plugin test", &[("plugin", "no such plugin; echo injected")]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("injected"),
        "{}",
        text(&output)
    );
}

#[test]
fn the_action_compares_a_plugin_with_a_journal_if_it_gets_one() {
    let journal = folder("action-journal").display().to_string();
    let scenario = root().join("examples/drain/scenario.yaml");
    let recorded = super::bulkhead()
        .arg("simulate")
        .arg(scenario)
        .args(["--journal", &journal])
        .output()
        .unwrap();
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded));
    let plugin = folder("action-plugin").join("never.lua");
    fs::write(&plugin, NEVER).unwrap();
    let plugin = plugin.display().to_string();
    let output = step("bulkhead diff", &[("plugin", &plugin), ("journal", &journal)]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let output = step(
        "bulkhead diff",
        &[("plugin", &plugin), ("journal", &journal), ("replaces", "absent")],
    );
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let action = action();
    let diff = action["runs"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["name"] == "bulkhead diff");
    assert_eq!(diff.unwrap()["if"], "inputs.journal != ''");
}
