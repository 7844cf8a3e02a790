//! Rehearsal of a take-over, and comparison with a journal, on an embedded control plane.

use std::process::Output;

use serde_json::Value;

use super::{Program, folder, has_kubectl, root};
use crate::bulkhead;

/// Runs a command on the control plane. Returns its exit code and output.
fn ask(embedded: &Program, words: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = bulkhead()
        .args(words)
        .arg("--kubeconfig")
        .arg(embedded.kubeconfig())
        .output()
        .unwrap();
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8(text).unwrap())
}

/// Returns uid and generation of all Works.
fn works(embedded: &Program) -> String {
    let columns = "custom-columns=A:.metadata.namespace,B:.metadata.name,C:.metadata.uid,D:.metadata.generation";
    embedded.kubectl_output(&["get", "works", "-A", "--no-headers", "-o", columns])
}

/// A control plane that this program runs already has nothing to change. A journal of another run differs from it.
#[test]
fn a_take_over_of_an_own_control_plane_changes_nothing() {
    if !has_kubectl("a_take_over_of_an_own_control_plane_changes_nothing") {
        return;
    }
    let mut embedded = Program::start(
        &folder("takeover"),
        &["--members", "2", "--allow-no-execute-taint-policy"],
    );
    embedded.apply_example(&["taint-policy.yaml", "policy.yaml", "nginx.yaml"]);
    embedded.until("nginx is healthy", |embedded| {
        let health = "jsonpath={.status.aggregatedStatus[*].health}";
        let output = embedded.kubectl(&["get", "resourcebinding", "nginx-deployment", "-o", health]);
        String::from_utf8_lossy(&output.stdout) == "Healthy Healthy"
    });
    let before = works(&embedded);
    let (_, said) = ask(&embedded, &["doctor", "--for=all", "-o", "json"]);
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let checks = said["checks"].as_array().unwrap();
    let rehearsal = checks.iter().find(|check| check["check"] == "rehearsal").unwrap();
    let findings = rehearsal["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|finding| finding["severity"] == "note"),
        "{rehearsal:#}"
    );
    let summary = rehearsal["summary"].as_str().unwrap();
    assert!(summary.starts_with("mode all for 60 s on a copy of "), "{summary}");
    assert_eq!(works(&embedded), before);

    // In the journal of the simulated example, member2 is lost for good: it is tainted, nginx leaves it, and the old
    // copy is released. This member2 is well, so the taints differ.
    let journal = folder("takeover-journal").display().to_string();
    let scenario = root()
        .join("examples/nginx-duplicated/scenario.yaml")
        .display()
        .to_string();
    let simulated = bulkhead()
        .args(["simulate", &scenario, "--journal", &journal])
        .output()
        .unwrap();
    assert!(simulated.status.success(), "{simulated:?}");
    let (code, said) = ask(&embedded, &["report", "--journal", &journal]);
    for part in [
        "TAINTS: 2\n  member2: Bulkhead adds cluster.karmada.io/not-ready:NoExecute (#",
        "ALIKE: 1 evicted, 1 ended, 0 held by both",
    ] {
        assert!(code == Some(1) && said.contains(part), "no {part:?}: {said}");
    }
    embedded.kubectl_output(&["delete", "deployment", "nginx"]);
    embedded.until("the binding is gone", |embedded| {
        !embedded
            .kubectl(&["get", "resourcebinding", "nginx-deployment"])
            .status
            .success()
    });
    let (code, said) = ask(&embedded, &["report", "--journal", &journal, "-o", "json"]);
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(
        (code, &said["alike"]["evicted"]),
        (Some(1), &Value::from(0)),
        "{said:#}"
    );
}
