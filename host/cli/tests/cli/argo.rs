//! Health scripts for Argo CD in `host/deploy/argo-cd`: their cases and the laws, and the copies that Argo CD reads.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Kinds of `bulkhead.dev` with a script, and its folder.
const SCRIPTS: [(&str, &str); 3] = [
    ("Plugin", "plugin"),
    ("PluginTrust", "plugin-trust"),
    ("ClusterDrain", "drain"),
];

fn deploy() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join("host/deploy")
}

#[test]
fn the_scripts_pass_their_cases_and_the_laws() {
    for (_, name) in SCRIPTS {
        let output = super::bulkhead()
            .args(["plugin", "test"])
            .arg(deploy().join("argo-cd").join(name))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(", 0 failed"), "{name}: {text}");
        assert!(text.contains("no input makes it fail"), "{name}: {text}");
    }
}

#[test]
fn argo_cd_reads_the_scripts_that_are_tested() {
    let text = fs::read_to_string(deploy().join("argo-cd/argocd-cm.yaml")).unwrap();
    let patch: Value = serde_saphyr::from_str(&text).unwrap();
    let data = patch["data"].as_object().unwrap();
    assert_eq!(data.len(), SCRIPTS.len());
    for (kind, name) in SCRIPTS {
        let script = fs::read_to_string(deploy().join("argo-cd").join(name).join("health.lua")).unwrap();
        let key = format!("resource.customizations.health.bulkhead.dev_{kind}");
        assert_eq!(data[&key], script.as_str(), "{key}");
    }
}

#[test]
fn every_kind_whose_status_reports_progress_has_a_script() {
    let text = fs::read_to_string(deploy().join("crds/bulkhead.yaml")).unwrap();
    let definitions: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    // Records are written by the program, and no repository has them.
    let is_written_by_hand = |definition: &&Value| {
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        schema.get("spec").is_some() && schema.get("status").is_some()
    };
    let mut kinds: Vec<_> = definitions
        .iter()
        .filter(is_written_by_hand)
        .map(|definition| definition["spec"]["names"]["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    let mut scripts = SCRIPTS.map(|(kind, _)| kind);
    scripts.sort_unstable();
    assert_eq!(kinds, scripts);
}
