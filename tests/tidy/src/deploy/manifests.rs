//! Checks that the manifests parse, meet the requirements of a restricted pod, and use only arguments that the
//! program has.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{at, files, one_yaml, text, yaml};

const FOLDER: &str = "host/deploy";
const BASE: &str = "host/deploy/kustomize/base";
const AGENT: &str = "host/deploy/kustomize/agent";
const CHART: &str = "host/deploy/chart";
const IN_CLUSTER: &str = "host/deploy/kustomize/in-cluster/deployment.yaml";
/// Files that declare arguments of `bulkhead run`. Those of the controllers are fields of `Flags`.
const ARGUMENTS: &[&str] = &[
    "host/server/src/arguments.rs",
    "host/server/src/lib.rs",
    "host/server/src/agent.rs",
    "host/server/src/hub_config.rs",
    "host/server/src/journal.rs",
    "host/server/src/queries/mod.rs",
    "host/server/src/leader.rs",
    "host/server/src/plugin_state.rs",
    "host/server/src/engines.rs",
];

/// Returns the extension of a file name.
fn ending(file: &str) -> &str {
    file.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn is_template(file: &str) -> bool {
    file.starts_with("host/deploy/chart/templates/")
}

#[test]
fn every_manifest_parses() {
    let mut seen = 0;
    for file in files(FOLDER) {
        if ending(&file) == "json" {
            let parsed = serde_json::from_str::<Value>(&text(&file));
            assert!(parsed.is_ok(), "{file}: {parsed:?}");
            seen += 1;
        } else if ending(&file) == "yaml" && !is_template(&file) {
            assert!(!yaml(&file).is_empty(), "{file} is empty");
            seen += 1;
        }
    }
    assert!(seen > 25, "only {seen} files");
}

#[test]
fn what_a_kustomization_names_is_there() {
    for file in files(FOLDER)
        .iter()
        .filter(|file| file.ends_with("/kustomization.yaml"))
    {
        let folder = file.trim_end_matches("/kustomization.yaml");
        let kustomization = one_yaml(file);
        let resources = kustomization["resources"].as_array().cloned().unwrap_or_default();
        let patches = kustomization["patches"].as_array().cloned().unwrap_or_default();
        let named = resources
            .iter()
            .chain(patches.iter().filter_map(|patch| patch.get("path")));
        for name in named.filter_map(Value::as_str) {
            assert!(super::path(folder).join(name).exists(), "{file} names {name}");
        }
    }
}

#[test]
fn a_pod_may_do_nothing_that_it_need_not() {
    // An agent needs a token, because it talks to the API server of its own cluster.
    for (folder, replicas, token) in [(BASE, 2, false), (AGENT, 1, true)] {
        let deployment = one_yaml(&format!("{folder}/deployment.yaml"));
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(deployment["spec"]["replicas"], replicas, "{folder}");
        assert_eq!(pod["automountServiceAccountToken"], token, "{folder}");
        is_locked_down(pod);
    }
}

fn is_locked_down(pod: &Value) {
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        })
    );
    assert!(container["resources"]["requests"].is_object() && container["resources"]["limits"]["memory"].is_string());
    let probes = [
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ];
    for (probe, path) in probes {
        assert_eq!(
            container[probe]["httpGet"],
            json!({"path": path, "port": "metrics"}),
            "{probe}"
        );
    }
    let user = &pod["securityContext"]["runAsUser"];
    assert!(
        text("host/deploy/Dockerfile").contains(&format!("USER {user}:{user}")),
        "the image is for another user"
    );
}

/// Without Helm, the chart is only text. `check.sh` renders it and compares it with the base.
#[test]
fn the_chart_locks_its_pods_down_as_the_base_does() {
    let (base, chart) = (
        text(&format!("{BASE}/deployment.yaml")),
        text(&format!("{CHART}/templates/deployment.yaml")),
    );
    for part in [
        "runAsNonRoot",
        "seccompProfile",
        "allowPrivilegeEscalation",
        "readOnlyRootFilesystem",
        "drop:",
    ] {
        let line = |text: &str| {
            text.lines()
                .find(|line| line.contains(part))
                .map(|line| line.trim().to_owned())
        };
        assert!(line(&base).is_some() && line(&base) == line(&chart), "{part}");
    }
}

#[test]
fn nothing_selects_every_pod() {
    for (file, pointer) in [
        ("disruption.yaml", "/spec/selector/matchLabels"),
        ("network.yaml", "/spec/podSelector/matchLabels"),
        (
            "deployment.yaml",
            "/spec/template/spec/topologySpreadConstraints/0/labelSelector/matchLabels",
        ),
    ] {
        let object = one_yaml(&format!("{BASE}/{file}"));
        assert_eq!(
            at(&object, &format!("{pointer}/app.kubernetes.io~1name")),
            "bulkhead",
            "{file}"
        );
    }
    let network = one_yaml(&format!("{AGENT}/network.yaml"));
    assert_eq!(
        at(&network, "/spec/podSelector/matchLabels/app.kubernetes.io~1name"),
        "bulkhead-agent"
    );
    // kustomize adds the selectors of the Deployment and the Service.
    for folder in [BASE, AGENT] {
        let labels = &one_yaml(&format!("{folder}/kustomization.yaml"))["labels"][0];
        assert_eq!(labels["includeSelectors"], true, "{folder}");
    }
}

/// Returns the long arguments that a manifest passes to the program.
fn arguments(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let given = lines.filter_map(|line| {
        let argument = line.split_once("--")?.1;
        let end = argument
            .find(|c: char| !c.is_ascii_lowercase() && c != '-')
            .unwrap_or(argument.len());
        let is_argument = line.starts_with("- --") || line.contains("value: --") || line.contains("value: \"--");
        is_argument.then(|| argument[..end].to_owned())
    });
    given.filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_program_knows_every_argument_that_it_is_given() {
    let declared: String = ARGUMENTS.iter().map(|file| text(file)).collect();
    let flags = text("host/controllers/src/flags.rs");
    let mut given = BTreeSet::new();
    for file in files(FOLDER)
        .iter()
        .filter(|file| ["yaml", "tpl"].contains(&ending(file)))
    {
        given.extend(arguments(&text(file)));
    }
    assert!(given.len() > 8, "{given:?}");
    let is_known = |name: &&String| {
        let field = format!("{}:", name.replace('-', "_"));
        declared.contains(&format!(" {field}")) || flags.contains(&format!("pub {field}"))
    };
    let unknown: Vec<_> = given.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "bulkhead run has no {unknown:?}");
}

#[test]
fn every_value_of_the_chart_is_in_its_schema() {
    let values = one_yaml(&format!("{CHART}/values.yaml"));
    let schema: Value = serde_json::from_str(&text(&format!("{CHART}/values.schema.json"))).unwrap();
    let mut missing = Vec::new();
    compare(&values, &schema, "", &mut missing);
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Checks that objects whose properties the schema lists have the same members in the values.
fn compare(values: &Value, schema: &Value, at: &str, missing: &mut Vec<String>) {
    let (Some(values), Some(properties)) = (values.as_object(), schema["properties"].as_object()) else {
        return;
    };
    for (name, value) in values {
        match properties.get(name) {
            Some(schema) => compare(value, schema, &format!("{at}/{name}"), missing),
            None => missing.push(format!("{at}/{name} is not in the schema")),
        }
    }
    for name in properties
        .keys()
        .filter(|name| !values.contains_key(*name) && *name != "global")
    {
        missing.push(format!("{at}/{name} is not in the values"));
    }
}

/// A pod whose emptyDir exceeds its limit is evicted.
#[test]
fn a_journal_has_room_for_what_it_may_take() {
    let values = one_yaml(&format!("{CHART}/values.yaml"));
    let (bytes, limit) = (
        values["journal"]["bytesMax"].as_u64().unwrap(),
        at(&values, "/journal/sizeLimit"),
    );
    let mebibytes: u64 = limit.strip_suffix("Mi").unwrap().parse().unwrap();
    assert!(bytes < mebibytes << 20, "{bytes} in {limit}");
    let component = text("host/deploy/kustomize/journal/kustomization.yaml");
    for part in [
        format!("--journal-bytes-max={bytes}}}"),
        format!("sizeLimit: {limit}}}"),
    ] {
        assert!(component.contains(&part), "the component has another size than {part}");
    }
}

/// A plugin that ends the process is found by the next container of the pod only if the record is still there.
#[test]
fn the_record_of_plugins_that_ended_a_process_survives_the_container() {
    const FLAG: &str = "--plugin-state-directory=";
    for folder in [BASE, AGENT] {
        let deployment = one_yaml(&format!("{folder}/deployment.yaml"));
        let pod = &deployment["spec"]["template"]["spec"];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let container = &pod["containers"][0];
        let arguments = list(&container["args"]);
        let directory = arguments
            .iter()
            .find_map(|argument| argument.as_str()?.strip_prefix(FLAG))
            .unwrap();
        let mounts = list(&container["volumeMounts"]);
        let holds = |mount: &&Value| directory.starts_with(&format!("{}/", at(mount, "/mountPath")));
        let mount = mounts.iter().find(holds).unwrap();
        let volumes = list(&pod["volumes"]);
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        assert!(
            volume["emptyDir"].is_object() && mount.get("readOnly").is_none(),
            "{folder}: {volume} {mount}"
        );
        // The chart and the other kustomizations have the same directory.
        for file in [format!("{CHART}/templates/deployment.yaml"), IN_CLUSTER.to_owned()] {
            assert!(text(&file).contains(&format!("- {FLAG}{directory}\n")), "{file}");
        }
    }
}

#[test]
fn versions_are_those_of_the_workspace() {
    let workspace = text("Cargo.toml");
    let value = |key: &str| {
        let line = workspace
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.map(|rest| rest.trim_end_matches('"').to_owned())
            .unwrap_or_default()
    };
    let (version, rust) = (value("version"), value("rust-version"));
    let chart = one_yaml(&format!("{CHART}/Chart.yaml"));
    assert_eq!(
        (at(&chart, "/version"), at(&chart, "/appVersion")),
        (version.as_str(), version.as_str())
    );
    for folder in [BASE, AGENT] {
        assert_eq!(
            at(&one_yaml(&format!("{folder}/kustomization.yaml")), "/images/0/newTag"),
            version,
            "{folder}"
        );
    }
    let dockerfile = text("host/deploy/Dockerfile");
    assert!(
        dockerfile.contains(&format!("FROM rust:{rust}-")),
        "the image is built with another Rust than {rust}"
    );
    let templates = "host/cli/src/plugin/templates";
    let sdk = text(&format!("{templates}/sdk.toml"));
    assert!(
        sdk.contains(&format!("\nversion = \"{version}\"\n")),
        "the copy of the SDK has another version than {version}"
    );
    let plugin = text(&format!("{templates}/plugin.toml"));
    assert!(
        plugin.contains(&format!("\nbulkhead-sdk = {{ version = \"{version}\", path")),
        "new plugins need another SDK than {version}"
    );
}
