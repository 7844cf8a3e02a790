//! `bulkhead run` in settings that it refuses.

use std::net::TcpListener;

use super::{Program, folder, has_kubectl};
use crate::bulkhead;

#[test]
fn run_without_a_mode_refuses_beside_a_controller_of_karmada() {
    if !has_kubectl("run_without_a_mode_refuses_beside_a_controller_of_karmada") {
        return;
    }
    let embedded = Program::start(&folder("beside-karmada"), &["--members", "0"]);
    let lease = embedded.folder.join("lease.json");
    let renewed = embedded.kubectl_output(&[
        "get",
        "namespace",
        "default",
        "-o",
        "jsonpath={.metadata.creationTimestamp}",
    ]);
    let object = serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "karmada-controller-manager", "namespace": "karmada-system"},
        "spec": {
            "holderIdentity": "karmada-controller-manager-0",
            "renewTime": renewed.replace('Z', ".000000Z"),
            "leaseDurationSeconds": 3600,
        },
    });
    std::fs::write(&lease, object.to_string()).unwrap();
    embedded.kubectl_output(&["apply", "-f", &lease.display().to_string()]);
    let kubeconfig = embedded.kubeconfig().display().to_string();
    let run = [
        "run",
        "--kubeconfig",
        &kubeconfig,
        "--health-probe-bind-address=127.0.0.1:0",
    ];
    let output = bulkhead().args(run).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    for part in [
        "ERROR bulkhead_server: cannot run in mode all, the default, on https://127.0.0.1:",
        "karmada-controller-manager-0 holds the lease karmada-system/karmada-controller-manager",
        "choose --mode report, interpret, finish or evict",
    ] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
}

#[test]
fn a_second_process_whose_probe_port_is_taken_leaves_the_kubeconfig_alone() {
    let folder = folder("taken-port");
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, "of the first process").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = [
        "run",
        "--embedded",
        "--members=0",
        "--health-probe-bind-address",
        &address,
        "--write-kubeconfig",
    ];
    let output = bulkhead().args(run).arg(&kubeconfig).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{complaint}");
    assert!(
        complaint.contains(&format!("--health-probe-bind-address: listening on {address}")),
        "{complaint}"
    );
    assert_eq!(std::fs::read_to_string(&kubeconfig).unwrap(), "of the first process");
}

#[test]
fn the_kubeconfig_of_a_running_control_plane_is_not_overwritten() {
    let first = Program::start(&folder("running"), &["--members", "0"]);
    let kubeconfig = first.kubeconfig();
    let before = std::fs::read_to_string(&kubeconfig).unwrap();
    let run = [
        "run",
        "--embedded",
        "--members=0",
        "--health-probe-bind-address=127.0.0.1:0",
        "--write-kubeconfig",
    ];
    let output = bulkhead().args(run).arg(&kubeconfig).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{complaint}");
    let expected = format!(
        "{} is the kubeconfig of a running control plane at https://127",
        kubeconfig.display()
    );
    assert!(complaint.contains(&expected), "{complaint}");
    assert!(complaint.contains("--write-kubeconfig"), "{complaint}");
    assert_eq!(std::fs::read_to_string(&kubeconfig).unwrap(), before);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, expected) in [
        (vec!["--members", "3"], "--embedded"),
        (vec!["--embedded", "--kubeconfig", "x"], "cannot be used with"),
        (
            vec!["--embedded", "--bind-address", "0.0.0.0:0"],
            "it must be a loopback address",
        ),
        (vec!["--embedded", "--members", "1000"], "1000 is not in 0..=100"),
        (
            vec![
                "--mode=interpret",
                "--webhook-bind-address=127.0.0.1:0",
                "--webhook-client-ca-file=ca.crt",
            ],
            "--webhook-client-ca-file: Karmada presents no client certificate",
        ),
    ] {
        let output = bulkhead().arg("run").args(&arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && complaint.contains(expected),
            "{arguments:?}: {complaint}"
        );
    }
}
