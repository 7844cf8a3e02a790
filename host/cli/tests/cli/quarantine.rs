//! Plugins that end the process: a kill during a load has the same effect as a crash.

use std::path::{Path, PathBuf};

use crate::embedded::{Program, folder, has_kubectl, metric};

/// Script whose load does not end.
const ENDLESS: &str = "while true do end function EvictionCheck() end";

/// Creates a list of plugins whose loads do not end. Returns its directory.
fn endless_plugins(folder: &Path, names: &[&str]) -> String {
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    let budget = "{steps: 18446744073709551615, wallClockMs: 600000}";
    let lines = names.iter().map(|name| {
        // Each plugin has code of its own.
        std::fs::write(plugins.join(format!("{name}.lua")), format!("{ENDLESS} -- {name}")).unwrap();
        format!("- {{name: {name}, lua: {name}.lua, budget: {budget}}}\n")
    });
    let lines: String = lines.collect();
    let list = format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginList\nplugins:\n{lines}");
    std::fs::write(plugins.join("plugins.yaml"), list).unwrap();
    plugins.display().to_string()
}

/// Returns the names of the plugins that are being loaded according to the record in a directory.
fn loading(record: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(record.join("plugins-running")).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("running "));
    let mut names: Vec<_> = lines
        .filter_map(|line| line.rsplit(' ').next())
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

fn is_quarantined(program: &Program, name: &str) -> bool {
    program
        .log()
        .contains(&format!("{name}.lua failed to leave quarantine"))
}

#[test]
fn a_plugin_whose_load_ended_the_process_is_quarantined_at_the_next_start() {
    if !has_kubectl("a_plugin_whose_load_ended_the_process_is_quarantined_at_the_next_start") {
        return;
    }
    let folder = folder("quarantine");
    let (plugins, data) = (endless_plugins(&folder, &["freeze"]), folder.join("data"));
    let stored = data.display().to_string();
    let arguments = ["--members", "0", "--plugin-directory", &plugins, "--data-dir", &stored];
    let mut embedded = Program::start(&folder, &arguments);
    embedded.until("the plugin is being loaded", |_| loading(&data) == ["freeze"]);
    drop(embedded);
    let mut embedded = Program::start(&folder, &arguments);
    embedded.until("it is quarantined", |embedded| is_quarantined(embedded, "freeze"));
    assert!(loading(&data).is_empty());
    assert!(
        embedded
            .log()
            .contains("plugin freeze is quarantined: a process ended during load of its code")
    );
    assert!(data.join("plugins-quarantined").exists());
    assert_eq!(embedded.stop(), Some(0));
}

#[test]
fn of_two_plugins_that_were_loaded_when_the_process_ended_the_one_that_ends_it_alone_is_quarantined() {
    let test = "of_two_plugins_that_were_loaded_when_the_process_ended_the_one_that_ends_it_alone_is_quarantined";
    if !has_kubectl(test) {
        return;
    }
    let folder = folder("suspects");
    let (plugins, state) = (endless_plugins(&folder, &["first", "second"]), folder.join("state"));
    let record = state.display().to_string();
    let arguments = [
        "--members",
        "0",
        "--plugin-directory",
        &plugins,
        "--plugin-state-directory",
        &record,
    ];
    let mut embedded = Program::start(&folder, &arguments);
    embedded.until("both are being loaded", |_| loading(&state) == ["first", "second"]);
    drop(embedded);
    let mut embedded = Program::start(&folder, &arguments);
    embedded.until("a suspect is being loaded", |_| !loading(&state).is_empty());
    assert!(
        embedded.log().contains("they are loaded one at a time now"),
        "{}",
        embedded.log()
    );
    assert_eq!(loading(&state), ["first"]);
    drop(embedded);
    let mut embedded = Program::start(&folder, &arguments);
    embedded.until("one is quarantined", |embedded| is_quarantined(embedded, "first"));
    embedded.until("the other one is being loaded", |_| loading(&state) == ["second"]);
    assert!(!is_quarantined(&embedded, "second"), "{}", embedded.log());
    assert_eq!(embedded.stop(), Some(0));
    assert!(loading(&state).is_empty(), "the end was orderly");
}

/// Writes a kubeconfig whose current context is a simulated member.
fn member_kubeconfig(embedded: &Program, member: &str) -> PathBuf {
    let text = embedded.kubectl_output(&["config", "view", "--raw", "--minify", "--flatten", "--context", member]);
    let path = embedded.kubeconfig().with_extension(member);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn an_agent_quarantines_a_plugin_whose_load_ended_it_and_runs_without_a_writable_directory() {
    let test = "an_agent_quarantines_a_plugin_whose_load_ended_it_and_runs_without_a_writable_directory";
    if !has_kubectl(test) {
        return;
    }
    let folder = folder("agent-quarantine");
    let embedded = Program::start(&folder.join("hub"), &["--members", "1"]);
    let (hub, member) = (
        embedded.kubeconfig().display().to_string(),
        member_kubeconfig(&embedded, "member1"),
    );
    let (plugins, member) = (endless_plugins(&folder, &["freeze"]), member.display().to_string());
    let state = folder.join("state");
    let start = |record: &Path| {
        let record = record.display().to_string();
        let of_agent = [
            "agent",
            "--cluster-name=member1",
            "--health-probe-bind-address=127.0.0.1:0",
        ];
        let more = [
            "--kubeconfig",
            &hub,
            "--cluster-kubeconfig",
            &member,
            "--plugin-directory",
            &plugins,
        ];
        let of_record = ["--plugin-state-directory", &record];
        Program::spawn(&folder.join("agent"), &[&of_agent[..], &more, &of_record].concat())
    };
    let mut agent = start(&state);
    agent.until("the plugin is being loaded", |_| loading(&state) == ["freeze"]);
    drop(agent);
    let mut agent = start(&state);
    agent.until("it is quarantined", |agent| is_quarantined(agent, "freeze"));
    assert_eq!(agent.stop(), Some(0));

    let mut agent = start(&folder.join("hub/log/below-a-file"));
    let warning =
        "WARN bulkhead_server::plugin_state: a plugin that ends this process will be loaded again at the next start";
    agent.until("a warning is logged", |agent| agent.log().contains(warning));
    let loaded = "bulkhead_plugin_loaded{plugin=\"freeze\"}";
    agent.until("it works with its plugins", |agent| metric(agent, loaded) == Some(0.0));
    assert_eq!(agent.log().matches(warning).count(), 1);
    assert_eq!(agent.stop(), Some(0));
}
